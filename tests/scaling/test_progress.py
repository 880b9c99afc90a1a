"""Who is stalled: work in flight and nothing that moves, for long enough for that engine."""

from collections.abc import Iterator
from itertools import pairwise

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Reading
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.progress import Judged, judge
from adapter.scaling.state import Progress
from tests.build import T0, a_fleet, a_gap, a_histogram, a_reading, a_replica


def readings(
    *, every: float = 5.0, engine: str = "vllm", until: float = 600.0, running: float = 3
) -> Iterator[Reading]:
    """Yield readings of one engine whose counters stand still."""
    at = 0.0
    while at <= until:
        yield a_reading(
            at=T0 + at,
            engine=engine,
            running=running,
            ttft=a_histogram([1.0] * 4),
            more={Metric.GENERATION_TOKENS: 400, Metric.ENGINE_STEPS: 90},
        )
        at += every


def judged(series: list[Reading], *, phase: Phase = Phase.SERVING) -> list[Judged]:
    """Return the judgement after each reading of one replica."""
    memory: dict[str, Progress] = {}
    told = []
    for before, reading in pairwise([None, *series]):
        assert reading is not None
        replica = a_replica("a", phase=phase, sample=reading, previous=before)
        told.append(judge(a_fleet(replica, at=reading.at), memory))
        memory = dict(told[-1].progress)
    return told


def stalled_after(series: list[Reading]) -> float | None:
    """Return the seconds after which the replica was first called stalled."""
    for judgement in judged(series):
        if judgement.fleet.replicas[0].phase is Phase.STALLED:
            return judgement.fleet.at - T0
    return None


@pytest.mark.parametrize(
    ("engine", "every", "seconds"),
    [("vllm", 5.0, 30.0), ("vllm", 15.0, 45.0), ("sglang", 5.0, 120.0), ("triton", 60.0, 180.0)],
)
def test_work_without_movement_stalls_after_three_readings_and_the_engines_patience(
    engine: str, every: float, seconds: float
) -> None:
    """VLLM counts every step; the others when a request ends, so they get two minutes."""
    series = list(readings(engine=engine, every=every))

    assert stalled_after(series) == seconds


def test_an_idle_engine_is_never_stalled() -> None:
    assert stalled_after(list(readings(running=0))) is None


def test_a_waiting_request_alone_is_work_in_flight() -> None:
    series = [
        a_reading(at=T0 + 5.0 * n, waiting=1, more={Metric.GENERATION_TOKENS: 4}) for n in range(9)
    ]

    assert stalled_after(series) == 30.0


def test_an_engine_that_counts_nothing_is_never_stalled() -> None:
    series = [a_reading(at=T0 + 5.0 * n, running=9) for n in range(100)]

    assert stalled_after(series) is None
    assert judged(series)[-1].progress == {}


@pytest.mark.parametrize("metric", [Metric.GENERATION_TOKENS, Metric.ENGINE_STEPS])
@pytest.mark.parametrize("step", [1.0, -1.0])
def test_any_change_of_any_counter_is_movement(metric: Metric, step: float) -> None:
    """A counter that fell is an engine that was reset: it is at work."""
    series = [
        a_reading(at=T0 + 20.0 * n, running=3, more={metric: 1000 + step * n}) for n in range(12)
    ]

    assert stalled_after(series) is None


def test_a_first_token_is_movement() -> None:
    series = [
        a_reading(at=T0 + 20.0 * n, running=3, ttft=a_histogram([1.0] * n)) for n in range(12)
    ]

    assert stalled_after(series) is None


def test_the_time_is_that_of_the_readings() -> None:
    """A source that repeats its last answer does not age the engine."""
    reading = next(readings())
    fleet = a_fleet(a_replica("a", sample=reading), at=T0)

    memory = judge(fleet, {}).progress
    later = judge(a_fleet(a_replica("a", sample=reading), at=T0 + 600.0), memory)

    assert later.fleet.replicas[0].phase is Phase.SERVING


@pytest.mark.parametrize("phase", [Phase.WARMING, Phase.DRAINING, Phase.LOADING])
def test_only_a_serving_replica_can_stall(phase: Phase) -> None:
    """A first request that compiles for minutes is warming; a draining one is leaving anyway."""
    last = judged(list(readings()), phase=phase)[-1]

    assert last.fleet.replicas[0].phase is phase
    assert last.stuck == frozenset()


def test_what_the_outside_calls_isolated_stays_isolated() -> None:
    assert judged(list(readings()), phase=Phase.ISOLATED)[-1].fleet.replicas[0].phase is (
        Phase.ISOLATED
    )


def test_a_replica_that_moves_again_serves_again() -> None:
    frozen = list(readings(until=60.0))
    moving = a_reading(at=T0 + 65.0, running=3, more={Metric.GENERATION_TOKENS: 401})

    told = judged([*frozen, moving])

    assert told[-2].fleet.replicas[0].phase is Phase.STALLED
    assert told[-1].fleet.replicas[0].phase is Phase.SERVING


def test_patience_learns_from_the_longest_pause_of_the_fleet() -> None:
    """Twice 100 s: an answer that took that long is no stall the next time."""
    paused = {"b": Progress(Timestamp(T0), 1.0, None, None, longest=Seconds(100.0))}
    series = list(readings(engine="sglang", until=250.0))
    memory = dict(paused)
    stalled = []

    for reading in series:
        fleet = a_fleet(
            a_replica("a", sample=reading), a_replica("b", sample=a_gap()), at=reading.at
        )
        told = judge(fleet, memory)
        memory = dict(told.progress)
        if told.fleet.replicas[0].phase is Phase.STALLED:
            stalled.append(reading.at - T0)

    assert stalled[0] == 200.0


def test_a_recovered_hang_does_not_excuse_the_next_for_long() -> None:
    """A pause of 1,000 s counts as 300 s: patience ends at ten minutes."""
    frozen = list(readings(engine="sglang", until=1000.0, every=50.0))
    moving = a_reading(
        at=T0 + 1050.0, engine="sglang", running=3, more={Metric.GENERATION_TOKENS: 401}
    )

    told = judged([*frozen, moving])

    assert told[-1].progress["a"].longest == 300.0


def test_a_pause_without_work_teaches_nothing() -> None:
    idle = list(readings(engine="sglang", running=0, until=100.0))
    busy = a_reading(at=T0 + 500.0, engine="sglang", running=3, more={Metric.ENGINE_STEPS: 91})

    assert judged([*idle, busy])[-1].progress["a"].longest == 0.0


def test_a_silent_replica_keeps_its_memory_and_a_gone_one_loses_it() -> None:
    memory = judge(a_fleet(a_replica("a", sample=next(readings()))), {}).progress

    silent = judge(a_fleet(a_replica("a", sample=a_gap())), memory)
    gone = judge(a_fleet(), memory)

    assert silent.progress == memory
    assert gone.progress == {}


def test_a_queue_that_neither_moves_nor_grows_for_five_minutes_is_stuck() -> None:
    """WVA#769: the clients are gone; before that it may be a stall with callers."""
    told = judged(list(readings()))

    stuck = [judgement.fleet.at - T0 for judgement in told if judgement.stuck]

    assert stuck[0] == 300.0


def test_a_queue_that_grows_has_callers_and_is_not_stuck() -> None:
    series = [
        a_reading(at=T0 + 5.0 * n, running=3, waiting=n // 20, more={Metric.GENERATION_TOKENS: 400})
        for n in range(120)
    ]

    assert not any(judgement.stuck for judgement in judged(series))
    assert judged(series)[-1].fleet.replicas[0].phase is Phase.STALLED
