"""The TTFT signal: the quantile one lead time ahead, where there is load; it only raises."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import Between, between
from adapter.fleet.reading import Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.demand import Demand
from adapter.scaling.first_tokens import ttft_points
from adapter.scaling.offered import Offered
from adapter.scaling.progress import judge
from adapter.scaling.signals.ttft import TtftSection, trend
from adapter.scaling.state import LEVELS, Carried, RatePoint, ScalingState, TtftPoint
from adapter.scaling.view import look
from tests.build import T0, a_fleet, a_histogram, a_reading, a_replica, serving, silent

BOUNDS = (0.5, 1.0, 2.0, 4.0, 8.0)


def asked(
    *points: TtftPoint,
    fleet: FleetSnapshot | None = None,
    lead: float = 60.0,
    rates: tuple[RatePoint, ...] = (),
) -> Demand:
    """Return what the signal asks for: p50 within 2 s over two minutes, half the target loaded."""
    here = fleet or a_fleet(*serving(4, running=5))
    view = look(
        judge(here, {}), ScalingState(ttft=points, rates=rates), lead=Seconds(lead), target=10
    )
    section = TtftSection.model_validate({"objective": "2s", "quantile": 0.5, "window": "2m"})
    return section.demand(view)


def a_point(seconds: float, *, age: float, serving: int = 4, count: int = 10) -> TtftPoint:
    """Return ``count`` first tokens that took this long, ``age`` seconds ago."""
    seen = a_histogram([seconds] * count, bounds=BOUNDS)
    return TtftPoint(Timestamp(T0 - age), BOUNDS, seen.counts, seen.sum_seconds, serving)


def test_within_the_objective_it_asks_for_nothing() -> None:
    demand = asked(a_point(0.4, age=10))

    assert demand.replicas is None
    assert demand.because == "p50 0.25 s, 0.25 s in 60 s: within 2 s"
    assert not demand.blocks_down


def test_beyond_the_objective_it_asks_for_as_much_more() -> None:
    """The median of ten in the bucket from 2 to 4 s is 3 s: 4 serving x 1.5."""
    demand = asked(a_point(3.0, age=10))

    assert demand.replicas == pytest.approx(6.0)
    assert demand.evidence == {"ttft_seconds": 3.0, "projected_ttft_seconds": 3.0}


@pytest.mark.parametrize("seconds", [7.0, 100.0])
def test_it_never_asks_for_more_than_twice_what_serves(seconds: float) -> None:
    """Beyond the last bucket is "more than we can say", which is no number to multiply by."""
    demand = asked(a_point(seconds, age=10), a_point(seconds, age=30), a_point(seconds, age=50))

    assert demand.replicas == 8.0
    assert all(math.isfinite(number) for number in demand.evidence.values())


def test_a_slow_first_token_on_an_idle_fleet_is_a_long_prompt() -> None:
    idle = a_fleet(*serving(4, running=1))

    demand = asked(a_point(7.0, age=10), fleet=idle)

    assert demand.replicas is None
    assert "10% of the target in flight: long prompts, not load" in demand.because


def test_a_queue_in_the_last_minutes_is_load() -> None:
    queued = RatePoint(Timestamp(T0 - 60.0), 5.0, 1.0, 1.0, 4, queued=True)

    demand = asked(a_point(7.0, age=10), fleet=a_fleet(*serving(4)), rates=(queued,))

    assert demand.replicas == 8.0


def test_nobody_serving_is_no_load() -> None:
    demand = asked(a_point(7.0, age=10), fleet=a_fleet(a_replica("z", phase=Phase.STALLED)))

    assert demand.replicas is None


@pytest.mark.parametrize("age", [120.0, 500.0])
def test_what_is_older_than_the_window_is_forgotten(age: float) -> None:
    demand = asked(a_point(7.0, age=age))

    assert demand.replicas is None
    assert demand.because == "no first token in 120 s"


def test_a_rising_trend_is_projected_to_when_a_replica_would_serve() -> None:
    """0.75, 1.5, 1.5, 3 s in the last minute: all within 2 s but the newest; 4.5 s ahead."""
    points = [a_point(s, age=a) for s, a in ((0.9, 100), (0.9, 80), (1.5, 50), (1.5, 35), (3, 5))]

    demand = asked(*points)

    seen, projected = demand.evidence["ttft_seconds"], demand.evidence["projected_ttft_seconds"]
    assert seen < 2.0 < projected
    assert demand.replicas == pytest.approx(4 * min(2.0, projected / 2.0))


def test_a_falling_trend_asks_for_nothing() -> None:
    """6, 4, 3 s: beyond 2 s, and over by the time a replica would serve."""
    half = a_histogram([7.0] * 5 + [3.0] * 5, bounds=BOUNDS)
    between = TtftPoint(Timestamp(T0 - 85), BOUNDS, half.counts, half.sum_seconds, 4)

    demand = asked(a_point(7.0, age=110), between, a_point(3.0, age=60))

    assert demand.evidence == {"ttft_seconds": 4.0, "projected_ttft_seconds": 0.0}
    assert demand.replicas is None


def test_what_is_over_is_over() -> None:
    """Ninety seconds of misses, then half a minute within the objective."""
    demand = asked(a_point(7.0, age=100, count=90), a_point(0.4, age=5, count=3))

    assert demand.because == "p50 0.25 s, 0.25 s in 60 s: within 2 s"


def passed(replicas: Sequence[Replica]) -> dict[str, Between]:
    return {
        one.uid: between(one.reading, one.previous)
        for one in replicas
        if one.reading is not None and one.previous is not None
    }


def a_flow(*, arriving: float) -> tuple[RatePoint, ...]:
    """Return a minute of queueing at four replicas that finish ten requests a second each."""
    return tuple(
        RatePoint(Timestamp(T0 - age), 10.0, 10.0 * arriving, 400.0, 4, queued=True)
        for age in (60, 50, 40, 30, 20, 10)
    )


@pytest.mark.parametrize(("arriving", "replicas"), [(36.0, None), (37.0, 8.0)])
def test_late_first_tokens_of_a_backlog_that_is_worked_off_order_nothing(
    arriving: float, replicas: float | None
) -> None:
    """They tell of when their requests came; 36/s over 40/s leave a tenth to work it off."""
    now = [
        a_replica(
            f"p{n}",
            sample=a_reading(
                running=10, waiting=3, more={Metric.REQUESTS_FINISHED: arriving * 2.5}
            ),
            previous=a_reading(
                at=T0 - 10.0, running=10, waiting=3, more={Metric.REQUESTS_FINISHED: 0}
            ),
        )
        for n in range(4)
    ]

    demand = asked(a_point(7.0, age=10), fleet=a_fleet(*now), rates=a_flow(arriving=arriving))

    assert demand.replicas == replicas
    assert ("it is the backlog's past" in demand.because) is (replicas is None)


def test_capacity_that_came_within_the_window_has_not_shown_yet() -> None:
    """2 served when most of it was seen; 4 do now: the need is counted from 2."""
    demand = asked(a_point(7.0, age=60, serving=2), a_point(7.0, age=5, serving=4))

    assert demand.replicas == 4.0


def test_only_the_layout_with_the_most_observations_is_read() -> None:
    """In the bounds that two layouts share, everything can lie beyond the last one."""
    other = TtftPoint(Timestamp(T0 - 5), (100.0,), (0.0, 5.0), 9.0, 4)

    demand = asked(a_point(0.4, age=10), other)

    assert demand.because.startswith("p50 0.25 s")


@pytest.mark.parametrize(
    ("line", "slope"),
    [
        ([], 0.0),
        ([(0, 1), (1, 2)], 0.0),
        ([(0, 1), (1, 2), (2, 3)], 1.0),
        ([(0, 1), (1, 2), (2, 3), (3, 4), (4, 50)], 1.0),
        ([(0, 3), (1, 2), (2, 1)], -1.0),
        ([(0, 1), (1, 3), (2, 1), (3, 3)], 0.0),
        ([(0, 1), (1, 1), (2, 1)], 0.0),
    ],
)
def test_a_trend_is_what_most_pairs_agree_on(line: list[tuple[float, float]], slope: float) -> None:
    assert trend(line) == pytest.approx(slope)


# --- what is seen in one tick


def told(count: int, *, at: float, bounds: tuple[float, ...] = BOUNDS) -> Reading:
    return a_reading(at=at, running=5, ttft=a_histogram([3.0] * count, bounds=bounds))


def test_first_tokens_are_the_difference_of_two_scrapes() -> None:
    """A lifetime histogram never forgets: 90 fast ones before do not hide 10 slow ones now.

    Trap 7.
    """
    before = a_reading(at=T0 - 5, ttft=a_histogram([0.1] * 90))
    now = a_reading(ttft=a_histogram([0.1] * 90 + [3.0] * 10))
    fleet = a_fleet(*(a_replica(uid, sample=now, previous=before) for uid in "ab"))

    points = ttft_points(fleet.replicas, fleet.at, passed=passed(fleet.replicas))

    assert points == (
        TtftPoint(T0, BOUNDS, (0.0, 0.0, 0.0, 20.0, 20.0, 20.0), pytest.approx(60.0), 2),
    )


def test_a_tick_without_a_first_token_leaves_no_point() -> None:
    same = a_replica("a", sample=told(4, at=T0), previous=told(4, at=T0 - 5))
    first = a_replica("b", sample=told(4, at=T0))
    reset = a_replica("c", sample=told(2, at=T0), previous=told(4, at=T0 - 5))

    fleet = (same, first, reset, *silent(1))

    assert ttft_points(fleet, T0, passed=passed(fleet)) == ()


def test_two_layouts_in_one_fleet_are_two_points() -> None:
    old = a_replica("a", sample=told(4, at=T0), previous=told(1, at=T0 - 5))
    new = a_replica(
        "b",
        sample=told(9, at=T0, bounds=(1.0, 5.0)),
        previous=told(1, at=T0 - 5, bounds=(1.0, 5.0)),
    )

    points = ttft_points((old, new), T0, passed=passed((old, new)))

    assert [(point.bounds, point.counts[-1]) for point in points] == [
        (BOUNDS, 3.0),
        ((1.0, 5.0), 8.0),
    ]


def test_an_engine_without_first_tokens_is_told_from_one_without_requests() -> None:
    never = asked(fleet=a_fleet(*serving(2, unserved=("ttft",))))
    idle = asked(fleet=a_fleet(*serving(2)))

    assert (never.replicas, never.unserved) == (None, True)
    assert (idle.replicas, idle.unserved, idle.blocks_down) == (None, False, False)


def test_a_trend_within_what_was_learned_to_be_carried_is_noise() -> None:
    """The same rise asks for more where the work is beyond it, or where nothing was learned."""
    rising = [a_point(0.4 + 0.3 * n, age=110 - 15 * n) for n in range(5)]
    rates = [
        RatePoint(
            Timestamp(T0 - 10.0 * n),
            10.0,
            100.0,
            100.0,
            4,
            queued=True,
            prompt_tokens=1e5,
            output_tokens=0.0,
        )
        for n in (3, 2, 1)
    ]
    view = look(
        judge(a_fleet(*serving(4, running=9)), {}),
        ScalingState(ttft=tuple(rising), rates=tuple(rates)),
        lead=Seconds(400.0),
        target=10,
    )
    view = replace(view, flow=None)
    section = TtftSection.model_validate({"objective": "2s", "quantile": 0.5, "window": "2m"})

    def told(level: float) -> Demand:
        carried = Carried(unit="tokens", levels=(level,) * LEVELS)
        return section.demand(replace(view, carried=carried))

    assert told(3000.0).replicas is None
    assert "1e+04 tokens/s arrive and 1.2e+04 are carried: it is noise" in told(3000.0).because
    assert told(2000.0).replicas is not None
    assert section.demand(view).replicas is not None


def test_first_tokens_that_are_late_already_are_no_noise() -> None:
    late = [a_point(3.0, age=10.0)]
    view = look(
        judge(a_fleet(*serving(4, running=9)), {}),
        ScalingState(ttft=tuple(late)),
        lead=Seconds(60.0),
        target=10,
    )
    offered = Offered("tokens", calm=1.0, recent=1.0, sudden=1.0, each=1.0, seconds=60.0)
    carried = Carried(unit="tokens", levels=(3000.0,) * LEVELS)
    section = TtftSection.model_validate({"objective": "2s", "quantile": 0.5, "window": "2m"})

    demand = section.demand(replace(view, offered=offered, carried=carried))

    assert demand.replicas == pytest.approx(6.0)
