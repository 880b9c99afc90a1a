"""Work that arrives: from counters, calm where it is noise, at once where it is a burst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.metrics import Metric
from adapter.fleet.snapshot import Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import RatePoint, WorkSlice
from adapter.scaling.work_rate import (
    KEPT,
    OUTPUT_WEIGHT,
    SLICE,
    Arrivals,
    arriving,
    over,
    with_tick,
)
from tests.build import T0, a_gap, a_histogram, a_reading, a_replica

TWO = Seconds(2.0)


def did(
    name: str = "a",
    *,
    prompt: float | None = 1000.0,
    output: float | None = 100.0,
    cached: float | None = None,
    ttfts: tuple[float, ...] | None = (0.4, 0.4, 1.5, 3.0),
    phase: Phase = Phase.SERVING,
    tick: float = 5.0,
) -> Replica:
    """Return a replica that did so much between its two readings."""
    grown = {
        Metric.PROMPT_TOKENS: prompt,
        Metric.GENERATION_TOKENS: output,
        Metric.CACHED_PROMPT_TOKENS: cached,
    }
    told = {metric: value for metric, value in grown.items() if value is not None}
    now = a_reading(more=told, ttft=None if ttfts is None else a_histogram(ttfts))
    before = a_reading(
        at=T0 - tick, more=dict.fromkeys(told, 0.0), ttft=None if ttfts is None else a_histogram([])
    )
    return a_replica(name, phase=phase, sample=now, previous=before)


def a_point(*, arrived: float = 10.0, finished: float = 8.0, serving: int = 1) -> RatePoint:
    return RatePoint(T0, 5.0, arrived, finished, serving, queued=False)


def ticked(*replicas: Replica, objective: Seconds | None = TWO, point: RatePoint | None = None):
    return with_tick((), point or a_point(), replicas, at=T0, objective=objective)


def a_slice(start: float, **counts: float) -> WorkSlice:
    known = {
        "seconds": 30.0, "arrived": 300.0, "finished": 300.0, "prompt": 300_000.0,
        "output": 60_000.0, "first": 300.0, "slow": 3.0, "replica_seconds": 120.0,
    }  # fmt: skip
    return WorkSlice(Timestamp(start), **{**known, **counts})


def steady(count: int, *, last: tuple[WorkSlice, ...] = ()) -> tuple[WorkSlice, ...]:
    """Return ``count`` slices of ten requests a second, and ``last`` after them."""
    return (*(a_slice(T0 + 30.0 * k) for k in range(count)), *last)


def test_a_tick_adds_the_work_of_every_serving_replica():
    """Output tokens weigh double; cached prompt tokens nothing."""
    (seen,) = ticked(did("a"), did("b", cached=400.0), point=a_point(serving=2))

    assert (seen.prompt, seen.output) == (1600.0, 200.0 * OUTPUT_WEIGHT)
    assert (seen.arrived, seen.finished, seen.seconds) == (10.0, 8.0, 5.0)
    assert seen.replica_seconds == 10.0


def test_a_first_token_is_slow_after_half_the_objective():
    """Of 0.4, 0.4, 1.5 and 3 s, the latter two are beyond 1 s."""
    (seen,) = ticked(did())

    assert (seen.first, seen.slow) == (4.0, 2.0)


def test_without_an_objective_no_first_token_is_slow():
    (seen,) = ticked(did(), objective=None)

    assert (seen.first, seen.slow) == (4.0, 0.0)


def test_without_first_tokens_the_work_is_told_all_the_same():
    (seen,) = ticked(did(ttfts=None))

    assert (seen.first, seen.slow, seen.prompt) == (0.0, 0.0, 1000.0)


@pytest.mark.parametrize(
    "replica",
    [
        did(prompt=None),
        did(output=None),
        did(phase=Phase.WARMING),
        did(tick=0.0),
        a_replica("a", sample=a_gap()),
        a_replica("a"),
    ],
)
def test_who_tells_no_tokens_or_does_not_serve_adds_nothing(replica):
    assert ticked(replica) == ()


def test_a_tick_in_which_nothing_is_known_adds_nothing():
    assert with_tick((), None, [did()], at=T0, objective=TWO) == ()


def test_ticks_of_the_same_half_minute_are_one_slice():
    once = ticked(did())
    twice = with_tick(once, a_point(), [did()], at=T0, objective=TWO)

    assert len(twice) == 1
    assert (twice[0].prompt, twice[0].seconds) == (2000.0, 10.0)
    assert twice[0].start == once[0].start


def test_the_next_half_minute_is_another_and_old_ones_go():
    old = a_slice(T0 - KEPT)
    kept = with_tick((old, a_slice(T0 - 60.0)), a_point(), [did()], at=T0, objective=TWO)

    assert [one.start for one in kept] == [T0 - 60.0, T0]


def test_slices_ahead_of_a_clock_that_was_set_back_go():
    assert with_tick((a_slice(T0 + 90.0),), None, [], at=T0, objective=TWO) == ()


def test_the_latest_slices_that_fill_a_span_are_summed():
    seen = over(steady(10), Seconds(60.0))

    assert (seen.seconds, seen.arrived) == (60.0, 600.0)
    assert seen.rate == pytest.approx(720_000 / 240)
    assert seen.slow_share == pytest.approx(0.01)


def test_nothing_seen_is_no_rate_and_no_share():
    assert (over((), SLICE).rate, over((), SLICE).slow_share) == (0.0, 0.0)


def test_arrivals_are_requests_times_what_each_weighs():
    """1,000 prompt tokens when it begins and 200 for its output when it ends."""
    assert arriving(steady(10)) == Arrivals(10.0, 1200.0)
    assert Arrivals(10.0, 1200.0).rate == 12_000.0


@pytest.mark.parametrize("slices", [(), (a_slice(T0, seconds=5.0),), (a_slice(T0, first=3.0),)])
def test_too_little_says_nothing(slices):
    assert arriving(slices) is None


def test_noise_of_half_a_minute_is_not_sized_by():
    """15 % more in the last slice: 300 requests and 7 % from minute to minute explain it."""
    seen = arriving(steady(9, last=(a_slice(T0 + 270.0, arrived=345.0),)))

    assert seen is not None
    assert seen.requests_per_second == pytest.approx((300 * 3 + 345) / 120)


def test_a_burst_is_seen_at_once():
    seen = arriving(steady(9, last=(a_slice(T0 + 270.0, arrived=900.0),)))

    assert seen is not None
    assert seen.requests_per_second == pytest.approx(30.0)


def test_prompts_that_grow_are_seen_within_a_minute():
    doubled = tuple(a_slice(T0 + 240.0 + 30.0 * k, prompt=600_000.0) for k in range(2))

    seen = arriving(steady(8, last=doubled))

    assert seen is not None
    assert seen.each == pytest.approx(2200.0)


def test_prompts_that_differ_by_chance_are_averaged():
    larger = tuple(a_slice(T0 + 240.0 + 30.0 * k, prompt=315_000.0) for k in range(2))

    seen = arriving(steady(8, last=larger))

    assert seen is not None
    assert seen.each == pytest.approx(1200.0 + 0.2 * 50.0)


def test_a_minute_without_a_request_weighs_as_the_others():
    quiet = tuple(
        a_slice(T0 + 240.0 + 30.0 * k, arrived=0.0, finished=0.0, prompt=0.0, output=0.0, first=0.0)
        for k in range(2)
    )

    seen = arriving(steady(8, last=quiet))

    assert seen is not None
    assert (seen.each, seen.requests_per_second) == (1200.0, 5.0)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e4), st.floats(0, 1e6), st.floats(0, 1e4)), min_size=1, max_size=20
    )
)
def test_what_arrives_is_never_negative_nor_infinite(rows):
    slices = tuple(
        a_slice(T0 + 30.0 * k, arrived=arrived, prompt=prompt, first=first)
        for k, (arrived, prompt, first) in enumerate(rows)
    )

    seen = arriving(slices)

    assert seen is None or 0.0 <= seen.rate < float("inf")
