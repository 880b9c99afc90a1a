"""Requests that came and requests that went: what tells a backlog from a lack of replicas."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import Between
from adapter.fleet.snapshot import Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import RatePoint
from adapter.scaling.work import Silence, Work

WINDOW: Final = Seconds(120.0)
"""How long a tick's rates speak: what a replica can do changes with the prompts it gets."""

RECENT: Final = Seconds(60.0)
SUDDEN: Final = Seconds(10.0)
"""Arrivals are the larger of these two means: the long one is calm, the short one sees a burst."""

ENOUGH_FINISHED: Final = 10.0
ENOUGH_SECONDS: Final = Seconds(30.0)
"""What one replica can do is read from the latest queueing: this much of it, if there is."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What the counters say of the last minutes."""

    arriving: float
    """Requests per second."""

    capacity: float
    """Requests per second that one replica finishes while requests wait."""

    settled: bool
    """True when ``capacity`` is known from before this tick."""


def rate_point(
    replicas: Sequence[Replica],
    works: Mapping[str, Work | Silence],
    at: Timestamp,
    *,
    passed: Mapping[str, Between],
) -> RatePoint | None:
    """Return what came and went between the replicas' last two readings.

    ``passed`` is by UID what happened between them. None when no serving replica tells: counters
    not exported, first reading, ranks that changed.
    Arrivals are what finished plus the growth of what is in flight; the load of stalled and
    draining replicas arrives like any other, but what a replica can do is read from serving ones.
    """
    changes = [(r, c) for r in replicas if (c := _change(passed.get(r.uid), works[r.uid]))]
    finishing = [change for replica, change in changes if replica.phase is Phase.SERVING]
    if not finishing:
        return None
    taking = [c for r, c in changes if r.phase in (Phase.SERVING, Phase.WARMING)]
    seconds = sum(change.seconds for change in finishing) / len(finishing)
    return RatePoint(
        at=at,
        seconds=seconds,
        arrived_requests=seconds * max(0.0, sum(c.arrived / c.seconds for _, c in changes)),
        finished_requests=seconds * sum(c.finished / c.seconds for c in finishing),
        serving=len(finishing),
        queued=any(change.work.waiting > 0 for change in finishing),
        busy_seconds=seconds * sum(c.work.running for c in finishing if c.work.by_law),
        refused_requests=seconds * sum(c.refused / c.seconds for c in finishing),
        prompt_tokens=_sum([c.prompt_tokens for c in taking], taking, seconds),
        output_tokens=_sum([c.output_tokens for c in taking], taking, seconds),
        queue_growth=seconds * sum(c.queue_growth / c.seconds for c in taking),
    )


def recent(points: Sequence[RatePoint], at: Timestamp) -> tuple[RatePoint, ...]:
    """Return the points that still speak at ``at``; one ahead of the clock does not."""
    return tuple(point for point in points if 0 <= at - point.at < WINDOW)


def flow_of(before: Sequence[RatePoint], now: RatePoint | None) -> Flow | None:
    """Return arrivals and capacity, or None while they cannot be told.

    Capacity rests on earlier ticks with a queue; only when there was none, on the present one.
    Otherwise one more waiting request could change what is known and lower the demand.
    """
    if now is None:
        return None
    queued = [point for point in before if point.queued]
    capacity = _capacity(queued or [now])
    if capacity is None:
        return None
    points = [*before, now]
    arriving = max(_arriving(points, RECENT), _arriving(points, SUDDEN))
    return Flow(arriving, capacity, settled=bool(queued))


def mean_running(points: Sequence[RatePoint]) -> float | None:
    """Return the requests running per replica by Little's law, over the latest ``RECENT`` seconds.

    Durations are added when a request ends: one that took a minute, seen in a tick of five
    seconds, would read as twelve. None without points.
    """
    latest = _latest(points, RECENT)
    replica_seconds = sum(point.seconds * point.serving for point in latest)
    return sum(p.busy_seconds for p in latest) / replica_seconds if latest else None


def turned_away(points: Sequence[RatePoint]) -> float:
    """Return the requests refused per request served, over the latest ``RECENT`` seconds, 0..1.

    Where the queue is limited (vLLM ``--max-num-queued-reqs``, TGI ``--max-concurrent-requests``)
    it stays short whatever the load. No more than 1: who is refused asks again and again.
    """
    latest = _latest(points, RECENT)
    refused = sum(point.refused_requests for point in latest)
    served = sum(point.finished_requests for point in latest)
    return refused / max(refused, served) if refused > 0 else 0.0


@dataclass(frozen=True, slots=True)
class _Change:
    seconds: float
    finished: float
    arrived: float
    refused: float
    prompt_tokens: float | None
    output_tokens: float | None
    queue_growth: float
    work: Work


def _change(between: Between | None, work: Work | Silence) -> _Change | None:
    if between is None or between.seconds <= 0 or not isinstance(work, Work):
        return None
    finished = between.increase(Metric.REQUESTS_FINISHED)
    if finished is None:
        return None
    queued = _growth(between, Metric.REQUESTS_WAITING)
    return _Change(
        seconds=between.seconds,
        finished=finished,
        arrived=finished + queued + _growth(between, Metric.REQUESTS_RUNNING),
        refused=between.increase(Metric.REQUESTS_REJECTED) or 0.0,
        prompt_tokens=_computed(between),
        output_tokens=between.increase(Metric.GENERATION_TOKENS),
        queue_growth=queued,
        work=work,
    )


def _growth(between: Between, gauge: Metric) -> float:
    return between.now.values.get(gauge, 0.0) - between.before.values.get(gauge, 0.0)


def _computed(between: Between) -> float | None:
    """Return the prompt tokens that were computed: those from the prefix cache cost nothing."""
    prompts = between.increase(Metric.PROMPT_TOKENS)
    cached = between.increase(Metric.CACHED_PROMPT_TOKENS) or 0.0
    return None if prompts is None else max(0.0, prompts - cached)


def _sum(
    tokens: Sequence[float | None], changes: Sequence[_Change], seconds: float
) -> float | None:
    """Return what all of ``changes`` add up to; None where one does not count."""
    known = [n / c.seconds for n, c in zip(tokens, changes, strict=True) if n is not None]
    return seconds * sum(known) if len(known) == len(changes) else None


def _capacity(points: Sequence[RatePoint]) -> float | None:
    """Return requests per second and replica over the latest points that are enough."""
    finished, seconds, replica_seconds = 0.0, 0.0, 0.0
    for point in reversed(points):
        finished += point.finished_requests
        seconds += point.seconds
        replica_seconds += point.seconds * point.serving
        if finished >= ENOUGH_FINISHED and seconds >= ENOUGH_SECONDS:
            break
    return finished / replica_seconds if finished >= ENOUGH_FINISHED else None


def _arriving(points: Sequence[RatePoint], span: Seconds) -> float:
    """Return requests per second over the latest points that fill ``span``."""
    latest = _latest(points, span)
    return sum(p.arrived_requests for p in latest) / sum(p.seconds for p in latest)


def _latest(points: Sequence[RatePoint], span: Seconds) -> list[RatePoint]:
    """Return the latest points that together fill ``span``; all when they do not."""
    latest: list[RatePoint] = []
    seconds = 0.0
    for point in reversed(points):
        if seconds >= span:
            break
        latest.append(point)
        seconds += point.seconds
    return latest
