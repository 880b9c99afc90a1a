"""What one replica carries: the requests in flight at which queueing began, learned."""

import math
from statistics import median
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import seconds_between
from adapter.fleet.snapshot import Replica
from adapter.fleet.units import Seconds
from adapter.scaling.view import View

MEMORY: Final = Seconds(120.0)
"""Time constant of learning, in seconds of queueing: prompts change within minutes."""

STRIDE: Final = 2.0
"""A learned value moves by this factor at the most per tick: a burst that is still being
prefilled shows few running and many waiting, which is no capacity."""


def learned_in_flight(known: float | None, view: View) -> float | None:
    """Return the requests in flight per replica at the onset of queueing; None before any queue.

    What teaches is a serving replica that had a queue in both of its last two readings: the
    requests it ran then, the larger of the two. Warming, stalled, silent and skewed replicas
    teach nothing.
    """
    even = [replica for replica, work in view.heard if work.waiting <= view.skew_limit]
    lessons = [lesson for replica in even if (lesson := _lesson(replica)) is not None]
    if not lessons:
        return known
    seen = max(1.0, median(running for running, _ in lessons))
    elapsed = median(seconds for _, seconds in lessons)
    if known is None:
        return seen
    bounded = min(known * STRIDE, max(known / STRIDE, seen))
    return known + (bounded - known) * (1.0 - math.exp(-elapsed / MEMORY))


def _lesson(replica: Replica) -> tuple[float, float] | None:
    """Return the requests that a replica with a queue ran, and for how many seconds it had one.

    None when it had no queue at both ends of that time, or its engine has no running gauge.
    """
    reading, before = replica.reading, replica.previous
    if reading is None or before is None:
        return None
    queued = min(r.values.get(Metric.REQUESTS_WAITING, 0.0) for r in (reading, before))
    running = max(r.values.get(Metric.REQUESTS_RUNNING, 0.0) for r in (reading, before))
    elapsed = seconds_between(reading, before)
    return (running, elapsed) if queued > 0 and running > 0 and elapsed > 0 else None
