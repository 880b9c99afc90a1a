import dataclasses
import importlib.util
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.controller.errors import SourceError
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    Behavior,
    HpaController,
    HpaSpec,
    HpaState,
    RatePolicy,
    Rules,
    Scale,
    Select,
    Unit,
    Verdict,
    reconcile,
)

NONE = Seconds(0.0)
FREE = Rules(NONE, (RatePolicy(Unit.PERCENT, 1000),), tolerance=0.0)
OURS = Behavior(up=FREE, down=dataclasses.replace(FREE, policies=DEFAULT_DOWN.policies))
"""What our manifests write: windows 0, tolerance "0"."""


def a_spec(*, low: int = 1, high: int = 60, behavior: Behavior | None = OURS) -> HpaSpec:
    return HpaSpec(min_replicas=low, max_replicas=high, behavior=behavior)


def a_scale(count: int, *, status: int | None = None) -> Scale:
    return Scale(spec_replicas=count, status_replicas=count if status is None else status)


def one(
    spec: HpaSpec, count: int, published: float, *, state: HpaState | None = None, at: float = 0.0
) -> Verdict:
    verdict, _ = reconcile(
        spec,
        a_scale(count),
        values=(round(published * 1000),),
        at=Timestamp(at),
        state=state or HpaState(),
    )
    return verdict


class Sequence:
    """Several syncs 15 s apart, the count following every verdict."""

    def __init__(self, spec: HpaSpec, count: int) -> None:
        self.spec, self.count, self.at, self.state = spec, count, Timestamp(0.0), HpaState()

    def sync(self, published: int | str, *, after: float = 15.0) -> Verdict:
        values = published if isinstance(published, str) else (published * 1000,)
        self.at = Timestamp(self.at + after)
        verdict, self.state = reconcile(
            self.spec, a_scale(self.count), values=values, at=self.at, state=self.state
        )
        self.count = verdict.replicas
        return verdict

    def follow(self, *published: int | str) -> list[int]:
        return [self.sync(number).replicas for number in published]


def shared_port():
    root = Path(os.environ.get("LEADTIME_SHARED", Path(__file__).parents[3] / "shared"))
    path = root / "contract" / "hpa_port.py"
    if not path.is_file():
        pytest.skip(f"{path} is absent: the port of the real arithmetic comes with ../shared")
    spec = importlib.util.spec_from_file_location("hpa_port", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- the arithmetic, through a whole sync


TOLERANCES = st.sampled_from([0.0, 0.01, 0.1, 0.5])


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.integers(-2_000, 900_000), min_size=1, max_size=3),
    st.integers(1, 400),
    st.integers(1, 400),
    st.integers(1, 5_000),
    TOLERANCES,
    TOLERANCES,
)
def test_one_sync_agrees_with_the_port_of_the_real_controller(items, spec, status, target, up, dn):
    """Any items, target, tolerance and surge: N of the port, inside 1..1000, and no other."""
    port = shared_port()
    rules = Behavior(
        up=Rules(NONE, (RatePolicy(Unit.PERCENT, 1_000_000),), tolerance=up),
        down=Rules(NONE, (RatePolicy(Unit.PERCENT, 100),), tolerance=dn),
    )

    verdict, _ = reconcile(
        HpaSpec(1, 1000, target_milli=target, behavior=rules),
        Scale(spec, status),
        values=tuple(items),
        at=Timestamp(0.0),
        state=HpaState(),
    )

    wanted = port.average_value(items, target, status, up, dn)
    assert verdict.wanted == wanted
    assert verdict.replicas == max(1, min(1000, wanted))


@pytest.mark.parametrize(("published", "count"), [(21, 21), (22, 22), (19, 19), (20, 20)])
def test_with_tolerance_zero_every_step_arrives(published, count):
    assert one(a_spec(), 20, published).replicas == count


@pytest.mark.parametrize(
    ("published", "count"), [(21, 20), (22, 20), (22.001, 23), (19, 20), (18, 20), (17.999, 18)]
)
def test_with_the_default_tolerance_small_steps_disappear(published, count):
    """From 20, the default 10 % swallows 18..22: the reason our manifests write "0"."""
    loose = Behavior(up=DEFAULT_UP, down=dataclasses.replace(DEFAULT_DOWN, window=NONE))

    assert one(a_spec(behavior=loose), 20, published).replicas == count


def test_inside_the_tolerance_surge_pods_leak_into_the_count():
    """Spec 20, status 25 during a rollout, metric 23: the real controller answers 25."""
    loose = Behavior(up=DEFAULT_UP, down=dataclasses.replace(DEFAULT_DOWN, window=NONE))

    verdict, _ = reconcile(
        a_spec(behavior=loose),
        Scale(spec_replicas=20, status_replicas=25),
        values=(23_000,),
        at=Timestamp(0.0),
        state=HpaState(),
    )

    assert verdict.replicas == 25


# --- bounds and errors


@pytest.mark.parametrize(
    ("count", "published", "expected", "reason"),
    [
        (5, 99, 10, "TooManyReplicas"),
        (5, 1, 2, "TooFewReplicas"),
        (12, 5, 10, "TooManyReplicas"),
        (1, 5, 2, "TooFewReplicas"),
        (0, 5, 0, "ScalingDisabled: the scale target is at zero"),
    ],
)
def test_the_bounds_come_before_the_metric(count, published, expected, reason):
    """Above max, below min and at zero the metric is not asked; inside, it is cut to 2..10."""
    verdict = one(a_spec(low=2, high=10), count, published)

    assert (verdict.replicas, verdict.because) == (expected, reason)


def test_outside_of_the_bounds_even_an_error_is_corrected():
    assert Sequence(a_spec(high=10), 12).sync("down for maintenance").replicas == 10


@pytest.mark.parametrize("values", ["no decision yet", ()])
def test_an_error_or_an_empty_list_holds(values):
    """Never to zero, and nothing is remembered of it."""
    verdict, state = reconcile(
        a_spec(), a_scale(7), values=values, at=Timestamp(30.0), state=HpaState()
    )

    assert verdict.replicas == 7
    assert verdict.wanted is None
    assert verdict.because.startswith("FailedGetExternalMetric: ")
    assert state.wanted.entries == ((30.0, 7),)


# --- without behavior


def test_without_behavior_up_is_doubled_at_most_but_four_from_one():
    assert Sequence(a_spec(behavior=None), 1).follow(50, 50, 50, 50, 50) == [4, 8, 16, 32, 50]


def test_without_behavior_down_waits_five_minutes_from_the_highest():
    """A restart counts too: the count it finds is the first recommendation."""
    hpa = Sequence(a_spec(behavior=None), 10)

    held = hpa.follow(*[3] * 21)

    assert held == [10] * 21
    assert hpa.sync(3).because == "DesiredWithinRange"
    assert hpa.count == 3


# --- windows


def with_rules(**sides: Rules) -> HpaSpec:
    return a_spec(behavior=Behavior(**sides))


def test_the_default_down_window_is_five_minutes():
    hpa = Sequence(with_rules(up=FREE), 10)

    assert hpa.follow(*[4] * 20) == [10] * 20
    assert hpa.sync(4).replicas == 4


def test_a_down_window_takes_the_highest_recommendation_in_it():
    """60 s: 8 asked for once keeps 8 for the next three syncs."""
    window = dataclasses.replace(FREE, window=Seconds(60.0), policies=DEFAULT_DOWN.policies)
    hpa = Sequence(with_rules(up=FREE, down=window), 10)
    hpa.follow(10, 5, 5, 8)

    assert hpa.follow(5, 5, 5, 5) == [8, 8, 8, 5]


def test_an_up_window_takes_the_lowest_recommendation_in_it():
    """60 s, from the count found at the start: a rise must last, and a dip restarts the wait."""
    window = dataclasses.replace(FREE, window=Seconds(60.0))
    hpa = Sequence(with_rules(up=window, down=OURS.down), 5)

    assert hpa.follow(9, 9, 9, 9, 9) == [5, 5, 5, 5, 9]
    assert hpa.follow(12, 10, 12, 12, 12, 12) == [9, 9, 9, 10, 10, 12]


def test_the_window_says_itself():
    assert Sequence(with_rules(up=FREE), 10).sync(4).because == "ScaleDownStabilized"
    slow = dataclasses.replace(FREE, window=Seconds(60.0))
    assert Sequence(with_rules(up=slow), 10).sync(14).because == "ScaleUpStabilized"


# --- rate policies


def rates(*policies: RatePolicy, select: Select = Select.MAX) -> Rules:
    return Rules(NONE, policies, select=select, tolerance=0.0)


def test_the_default_up_rate_is_the_larger_of_double_and_plus_four():
    spec = with_rules(up=dataclasses.replace(DEFAULT_UP, tolerance=0.0), down=OURS.down)

    assert Sequence(spec, 1).follow(50, 50, 50, 50) == [5, 10, 20, 40]


def test_pods_per_period_counts_what_was_added_in_the_period():
    """4 pods per minute with a sync every 15 s: once, then nothing until a minute has passed."""
    spec = with_rules(up=rates(RatePolicy(Unit.PODS, 4, Seconds(60.0))), down=OURS.down)

    assert Sequence(spec, 2).follow(*[20] * 9) == [6, 6, 6, 6, 10, 10, 10, 10, 14]


def test_percent_per_period_grows_from_the_periods_first_count():
    """50 % of 10 per minute is 5, however often it syncs; up is rounded up."""
    spec = with_rules(up=rates(RatePolicy(Unit.PERCENT, 50, Seconds(60.0))), down=OURS.down)

    assert Sequence(spec, 10).follow(*[99] * 5) == [15, 15, 15, 15, 23]


def test_down_percent_rounds_the_rest_down():
    """10 % of 15 per period leaves int(13.5) = 13."""
    spec = with_rules(up=FREE, down=rates(RatePolicy(Unit.PERCENT, 10, Seconds(60.0))))

    assert Sequence(spec, 15).follow(1, 1, 1, 1, 1) == [13, 13, 13, 13, 11]


def test_what_went_up_in_the_period_may_come_down_again():
    """Down 2 a minute, but the period began at 10: after a step to 30 down to 8 is allowed."""
    spec = with_rules(up=FREE, down=rates(RatePolicy(Unit.PODS, 2, Seconds(60.0))))

    assert Sequence(spec, 10).follow(30, 1) == [30, 8]


@pytest.mark.parametrize(
    ("select", "up", "down"), [(Select.MAX, 20, 5), (Select.MIN, 12, 8), (Select.DISABLED, 10, 10)]
)
def test_select_policy_picks_the_larger_or_the_smaller_change_or_none(select, up, down):
    """Two rates, 2 pods and 100 % (50 % down), from 10."""
    spec = with_rules(
        up=rates(RatePolicy(Unit.PODS, 2), RatePolicy(Unit.PERCENT, 100), select=select),
        down=rates(RatePolicy(Unit.PODS, 2), RatePolicy(Unit.PERCENT, 50), select=select),
    )

    assert one(spec, 10, 50).replicas == up
    assert one(spec, 10, 1).replicas == down


def test_the_rate_says_itself():
    slow = with_rules(up=rates(RatePolicy(Unit.PODS, 1)), down=rates(RatePolicy(Unit.PODS, 1)))

    assert one(slow, 10, 50).because == "ScaleUpLimit"
    assert one(slow, 10, 2).because == "ScaleDownLimit"


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 80), st.just("gone")), min_size=1, max_size=30))
def test_whatever_is_published_the_count_stays_inside_the_bounds(published):
    """Also with every default, and errors in between."""
    for spec in (a_spec(low=2, high=24), a_spec(low=2, high=24, behavior=None)):
        counts = Sequence(spec, 5).follow(*published)

        assert all(2 <= count <= 24 for count in counts)


# --- the controller


class FakeMetric:
    def __init__(self, *answers: int | str) -> None:
        self._answers = list(answers)

    async def read(self) -> tuple[int, ...]:
        answer = self._answers.pop(0)
        if isinstance(answer, str):
            raise SourceError(answer)
        return (answer,)


class FakeTarget:
    def __init__(self, count: int) -> None:
        self.orders: list[int] = []
        self.scale = a_scale(count)

    def set_replicas(self, count: int) -> None:
        self.orders.append(count)
        self.scale = a_scale(count)


class StopError(Exception):
    """Raised by the fake clock when the test has seen enough."""


class FakeClock:
    def __init__(self, *, stop_at: float) -> None:
        self._now, self._stop_at = Timestamp(7.0), stop_at
        self.slept_until: list[float] = []

    def now(self) -> Timestamp:
        return self._now

    async def sleep_until(self, moment: Timestamp) -> None:
        if moment > self._stop_at:
            raise StopError
        self.slept_until.append(moment)
        self._now = moment


async def test_the_controller_syncs_every_fifteen_seconds_and_orders_only_changes():
    """5, 5, an error, 8: one order up, one more, none for what stays."""
    target, clock = FakeTarget(3), FakeClock(stop_at=60.0)
    hpa = HpaController(
        a_spec(), metric=FakeMetric(5000, 5000, "503", 8000), target=target, clock=clock
    )
    assert hpa.verdict is None

    with pytest.raises(StopError):
        await hpa.run()

    assert target.orders == [5, 8]
    assert clock.slept_until == [22.0, 37.0, 52.0]
    assert hpa.verdict == Verdict(8, "DesiredWithinRange", 8)


async def test_the_controller_passes_the_errors_words_on():
    target = FakeTarget(3)
    hpa = HpaController(
        a_spec(),
        metric=FakeMetric("no policy default/llama"),
        target=target,
        clock=FakeClock(stop_at=0.0),
    )

    await hpa.sync()

    assert target.orders == []
    assert hpa.verdict == Verdict(3, "FailedGetExternalMetric: no policy default/llama")


def test_the_memory_of_a_week_is_no_longer_than_the_longest_window():
    """40,320 syncs leave at most an hour of recommendations: 241 entries."""
    hpa = Sequence(a_spec(behavior=None), 5)

    hpa.follow(*[5, 6] * 500)

    assert len(hpa.state.wanted.entries) == 241
    assert len(hpa.state.changes.entries) <= 241
