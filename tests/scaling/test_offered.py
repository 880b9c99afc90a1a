"""The work that arrives: tokens that must be computed, calm against chance and quick at a burst."""

import math
from dataclasses import replace

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import between
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Timestamp
from adapter.scaling.flow import rate_point
from adapter.scaling.offered import OUTPUT_TOKEN, REQUESTS, TOKENS, offered_of
from adapter.scaling.progress import judge
from adapter.scaling.state import Carried, RatePoint
from tests.build import T0, a_fleet, a_reading, a_replica

TICK = 5.0


def point(
    number: int,
    *,
    requests: float = 50.0,
    prompt: float | None = 1000.0,
    output: float | None = 100.0,
    growth: float = 0.0,
) -> RatePoint:
    """Return a tick of five seconds in which each of ``requests`` had those tokens."""
    return RatePoint(
        Timestamp(T0 + TICK * number),
        TICK,
        requests + growth,
        requests,
        2,
        queued=growth > 0,
        prompt_tokens=None if prompt is None else prompt * requests,
        output_tokens=None if output is None else output * requests,
        queue_growth=growth,
    )


def test_work_is_prompt_tokens_and_weighted_output_tokens() -> None:
    offered = offered_of([point(n) for n in range(12)], Carried())

    assert offered is not None
    assert (offered.unit, offered.seconds) == (TOKENS, 60.0)
    assert offered.each == pytest.approx(1000 + OUTPUT_TOKEN * 100)
    assert offered.rate == offered.calm == pytest.approx(10 * 1200)
    assert offered.requests == pytest.approx(10)


@pytest.mark.parametrize("lacks", ["prompt", "output"])
def test_where_tokens_are_not_counted_requests_are_the_work(lacks: str) -> None:
    points = [point(n, growth=10.0) for n in range(11)]
    last = replace(point(11, growth=10.0), **{f"{lacks}_tokens": None})  # type: ignore[arg-type]
    offered = offered_of([*points, last], Carried())

    assert offered is not None
    assert (offered.unit, offered.each) == (REQUESTS, 1.0)
    assert offered.recent == pytest.approx(12)


def test_what_the_queue_grew_by_has_arrived_too_and_what_it_lost_has_not() -> None:
    grows = offered_of([point(n, growth=25.0) for n in range(12)], Carried())
    shrinks = offered_of([point(n, growth=-25.0) for n in range(12)], Carried())
    gone = offered_of([point(n, growth=-500.0) for n in range(12)], Carried())

    assert grows is not None
    assert shrinks is not None
    assert gone is not None
    assert grows.recent == pytest.approx(15 * 1200)
    assert shrinks.recent == pytest.approx(5 * 1200)
    assert gone.recent == gone.rate == 0.0


def test_the_calm_mean_follows_over_minutes() -> None:
    known = Carried(unit=TOKENS, arriving=6000.0)
    offered = offered_of([point(n) for n in range(12)], known)
    other = offered_of([point(n) for n in range(12)], Carried(unit=REQUESTS, arriving=5.0))

    assert offered is not None
    assert other is not None
    assert offered.calm == pytest.approx(6000 + 6000 * (1 - math.exp(-5 / 240)))
    assert other.calm == pytest.approx(12_000)


def test_chance_is_no_burst_and_a_burst_is_seen_at_once() -> None:
    """Of 10 a second, 100 come in ten seconds: 2 x sqrt(2 x 100) more may be chance."""
    calm = [point(n) for n in range(10)]
    chance = offered_of([*calm, point(10, requests=58), point(11, requests=58)], Carried())
    burst = offered_of([*calm, point(10, requests=200), point(11, requests=200)], Carried())

    assert chance is not None
    assert burst is not None
    assert chance.rate == chance.calm
    assert burst.rate == pytest.approx(1200 * (40 - 2 * math.sqrt(2 * 40 / 10)))


@pytest.mark.parametrize(
    "points", [[], [point(0, requests=0.0)], [point(0, prompt=0.0, output=0.0)]]
)
def test_without_anything_done_nobody_can_tell(points: list[RatePoint]) -> None:
    assert offered_of(points, Carried()) is None


def read(phase: Phase = Phase.SERVING, *, cached: float | None = 300.0, tokens: bool = True):  # type: ignore[no-untyped-def]
    """Return a replica that took 1000 prompt tokens in, and made 50 tokens, in five seconds."""

    def counters(factor: float) -> dict[Metric, float]:
        told = {Metric.REQUESTS_FINISHED: 10.0 * factor}
        if tokens:
            told |= {
                Metric.PROMPT_TOKENS: 1000.0 * factor,
                Metric.GENERATION_TOKENS: 50.0 * factor,
            }
        if cached is not None:
            told[Metric.CACHED_PROMPT_TOKENS] = cached * factor
        return told

    before = a_reading(at=T0 - TICK, waiting=2, more=counters(1))
    return a_replica(
        str(phase), phase=phase, sample=a_reading(waiting=5, more=counters(2)), previous=before
    )


def seen(*replicas) -> RatePoint:  # type: ignore[no-untyped-def]
    judged = judge(a_fleet(*replicas), {})
    passed = {
        one.uid: between(one.reading, one.previous)
        for one in judged.fleet.replicas
        if one.reading is not None and one.previous is not None
    }
    found = rate_point(judged.fleet.replicas, judged.works, T0, passed=passed)
    assert found is not None
    return found


def test_cached_prompt_tokens_are_no_work() -> None:
    assert seen(read()).prompt_tokens == 700.0
    assert seen(read(cached=None)).prompt_tokens == 1000.0
    assert seen(read(cached=2000.0)).prompt_tokens == 0.0
    assert seen(read()).output_tokens == 50.0
    assert seen(read()).queue_growth == 3.0


def test_what_drains_is_no_arrival_and_a_warming_replica_takes_its_part() -> None:
    assert seen(read(), read(Phase.DRAINING)).prompt_tokens == 700.0
    assert seen(read(), read(Phase.WARMING)).prompt_tokens == 1400.0


def test_one_replica_that_does_not_count_leaves_the_work_unknown() -> None:
    found = seen(read(), read(Phase.WARMING, tokens=False))

    assert found.prompt_tokens is None
    assert found.output_tokens is None
