"""Who works and who only looks like it: a replica with work that moves nothing is stalled."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import Progress
from adapter.scaling.work import Silence, Work, work_of

LIVE_PATIENCE: Final = Seconds(30.0)
"""For vLLM, whose counters move with every scheduler step."""

FINISH_PATIENCE: Final = Seconds(120.0)
"""For the others: SGLang and TensorRT-LLM count tokens when a request ends or every 40 decode
steps, so one long answer (4,000 tokens at 50 a second: 80 s) looks frozen while it is made."""

LONGEST_TRUSTED: Final = Seconds(300.0)
"""The longest pause that patience learns from: one recovered hang must not excuse the next."""

STUCK_AFTER: Final = Seconds(300.0)
"""Neither movement nor arrivals for this long: the queue's clients are gone (WVA#769)."""

READINGS: Final = 3
"""Readings without movement that it takes at the least, whatever the scrape interval."""


@dataclass(frozen=True, slots=True)
class Judged:
    """The fleet with its stalled replicas named, and what was learned on the way."""

    fleet: FleetSnapshot
    works: Mapping[str, Work | Silence]
    """By UID: what each replica has in hand."""

    progress: Mapping[str, Progress]
    stuck: frozenset[str]
    """UIDs of stalled replicas whose work has not grown for ``STUCK_AFTER``: no demand."""


def judge(fleet: FleetSnapshot, memory: Mapping[str, Progress]) -> Judged:
    """Return who is stalled: work in flight, and no token, first token or step in good time.

    An engine that exports none of the three is never called stalled. Any change counts as
    movement, a fall as well: an engine that was reset is at work. Time is that of the readings,
    so a source that repeats an answer does not age the engine. Replicas that are gone are
    forgotten; a silent one keeps what was known of it.
    """
    longest = max((known.longest for known in memory.values()), default=Seconds(0.0))
    works = {replica.uid: work_of(replica) for replica in fleet.replicas}
    progress: dict[str, Progress] = {}
    stalled: set[str] = set()
    for replica in fleet.replicas:
        now = _advanced(replica, works[replica.uid], memory.get(replica.uid))
        if now is not None:
            progress[replica.uid] = now
            if _is_stalled(replica, now, longest=longest):
                stalled.add(replica.uid)
    replicas = tuple(
        replace(r, phase=Phase.STALLED) if r.uid in stalled and r.phase is Phase.SERVING else r
        for r in fleet.replicas
    )
    stuck = frozenset(uid for uid in stalled if _is_stuck(progress[uid], fleet.at))
    return Judged(replace(fleet, replicas=replicas), works, progress, stuck)


def _advanced(replica: Replica, work: Work | Silence, known: Progress | None) -> Progress | None:
    """Return what is now known of the replica's progress; None when it cannot be told."""
    reading = replica.reading
    if reading is None:
        return known
    marks = _marks(reading)
    if marks == (None, None, None):
        return None
    in_flight = work.in_flight if isinstance(work, Work) else 0.0
    if known is None:
        return Progress(reading.at, *marks, in_flight, reading.at)
    grew_at = reading.at if in_flight > known.in_flight else known.grew_at
    if in_flight > 0 and marks == (known.tokens, known.first_tokens, known.steps):
        return replace(known, in_flight=in_flight, grew_at=grew_at)
    paused = replica.previous.at - known.at if replica.previous is not None else 0.0
    longest = Seconds(min(LONGEST_TRUSTED, max(known.longest, paused)))
    return Progress(reading.at, *marks, in_flight, grew_at, longest)


def _marks(reading: Reading) -> tuple[float | None, float | None, float | None]:
    return (
        reading.values.get(Metric.GENERATION_TOKENS),
        None if reading.ttft is None else reading.ttft.count,
        reading.values.get(Metric.ENGINE_STEPS),
    )


def _is_stalled(replica: Replica, now: Progress, *, longest: Seconds) -> bool:
    reading = replica.reading
    if reading is None or replica.phase not in {Phase.SERVING, Phase.STALLED}:
        return False
    patience = LIVE_PATIENCE
    if reading.engine != "vllm":
        patience = max(FINISH_PATIENCE, Seconds(2 * longest))
    if replica.previous is not None:
        patience = max(patience, Seconds(READINGS * (reading.at - replica.previous.at)))
    return now.in_flight > 0 and reading.at - now.at >= patience


def _is_stuck(now: Progress, at: Timestamp) -> bool:
    return at - max(now.at, now.grew_at) >= STUCK_AFTER
