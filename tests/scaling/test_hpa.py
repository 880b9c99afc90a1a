"""The HPA's arithmetic: the measured vectors, and an independent port on random input."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.scaling.hpa import average_value, dead_zone, follows, reachable, value

SHARED = Path(os.environ.get("LEADTIME_SHARED", Path(__file__).parents[3] / "shared"))
MAX_INT32 = 2**31 - 1


@pytest.fixture(scope="module")
def port() -> ModuleType:
    """Return the port of the arithmetic that was checked against a live cluster."""
    path = SHARED / "contract" / "hpa_port.py"
    if not path.exists():
        pytest.skip(f"{path} is not there: the arithmetic is checked by its vectors only")
    spec = importlib.util.spec_from_file_location("hpa_port", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("replicas", "published", "wanted"),
    [
        (20, [21], 20),
        (20, [22], 20),
        (20, [22.001], 23),
        (20, [23], 23),
        (9, [10], 10),
        (20, [10, 13], 23),
        (20, [19], 20),
        (20, [18], 20),
        (20, [17.999], 18),
        (20, [17.5], 18),
        (20, [17.001], 18),
        (10, [11], 10),
        (10, [11.001], 12),
        (0, [1], 1),
        (20, [-1], MAX_INT32),
        (20, [-1, 25], MAX_INT32),
        (20, [25, -1], 24),
        (20, [0], 0),
        (25, [23], 25),
    ],
)
def test_average_value_lands_where_a_cluster_was_seen_to_land(
    replicas: int, published: list[float], wanted: int
) -> None:
    """Target 1, tolerance 0.1: contract section 3.1, and the surge of section 3.4."""
    milli = [round(number * 1000) for number in published]

    assert average_value(milli, 1000, replicas) == wanted


@pytest.mark.parametrize(("surge", "wanted"), [(1, 20), (2, 20), (5, 20)])
def test_without_tolerance_a_rollout_does_not_ratchet(surge: int, wanted: int) -> None:
    """k/k#138505: inside the tolerance the HPA answers status.replicas, surge pods included."""
    assert average_value([20_000], 1000, 20 + surge, up=0, down=0) == wanted


def test_value_target_runs_away_with_a_desired_count() -> None:
    """Desired 6 with 2 ready comes out as 12."""
    assert value([6000], 1000, 2, ready=2) == 12
    assert value([1150], 1000, 20, ready=12) == 14
    assert value([5000], 1000, 20, ready=0) == 0
    assert value([5000], 1000, 0, ready=0) == 5
    assert value([1100], 1000, 7, ready=7) == 7
    assert value([10**17], 1000, 7, ready=10**6) == MAX_INT32


values = st.lists(st.integers(-(10**6), 10**12), min_size=1, max_size=4)
tolerances = st.sampled_from([0.0, 0.01, 0.05, 0.1, 0.2])


@given(values, st.integers(1, 10**6), st.integers(0, 500), tolerances, tolerances)
def test_average_value_equals_the_port(
    port: ModuleType, milli: list[int], target: int, replicas: int, up: float, down: float
) -> None:
    assert average_value(milli, target, replicas, up=up, down=down) == port.average_value(
        milli, target, replicas, up, down
    )


@given(values, st.integers(1, 10**6), st.integers(0, 500), st.integers(0, 500), tolerances)
def test_value_equals_the_port(
    port: ModuleType, milli: list[int], target: int, replicas: int, ready: int, tolerance: float
) -> None:
    ours = value(milli, target, replicas, ready=ready, up=tolerance, down=tolerance)

    assert ours == port.value(milli, target, replicas, ready, tolerance, tolerance)


@given(st.integers(1, 400), st.integers(1, 800))
def test_without_tolerance_every_count_is_reached_exactly(current: int, wanted: int) -> None:
    assert follows(wanted, current=current, up=0, down=0) == wanted


@pytest.mark.parametrize(
    ("current", "unreachable"),
    [
        (9, []),
        (10, [11]),
        (11, [12]),
        (19, [20]),
        (20, [19, 21, 22]),
        (21, [20, 22, 23]),
        (30, [28, 29, 31, 32, 33]),
        (50, [46, 47, 48, 49, 51, 52, 53, 54, 55]),
    ],
)
def test_what_no_number_reaches_under_the_default_tolerance(
    current: int, unreachable: list[int]
) -> None:
    """Contract section 3.2; a count on the way down may need half a replica less."""
    counts = [n for n in range(2 * current + 1) if not reachable(n, current=current)]

    assert counts == unreachable


@pytest.mark.parametrize(
    ("current", "up", "down"),
    [(1, 1, 2), (9, 1, 1), (10, 2, 2), (12, 2, 2), (15, 2, 2), (20, 3, 3), (30, 4, 4), (40, 5, 5)],
)
def test_the_smallest_step_that_gets_through(current: int, up: int, down: int) -> None:
    """Field reports section 1.9; from one replica there is no step down that is not zero."""
    zone = dead_zone(current)

    assert (zone.step_up, zone.step_down) == (up, down)


def test_an_ignored_step_is_said_with_the_one_that_works() -> None:
    """k/k#116984, crane#836."""
    zone = dead_zone(20)

    assert zone.ignores(21).startswith(
        "20→21 is inside the HPA's tolerance; smallest effective step +3"
    )
    assert "20→18" in zone.ignores(18)
    assert "smallest effective step -3" in zone.ignores(18)
    assert zone.ignores(20) == zone.ignores(23) == zone.ignores(17) == ""
    assert dead_zone(20, up=0, down=0).ignores(21) == ""
