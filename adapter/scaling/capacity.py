"""What one replica carries: the requests in flight up to which first tokens come in time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto
from statistics import median
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import Between
from adapter.fleet.units import Seconds
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.view import View

RISE: Final = Seconds(600.0)
"""Time constant of rising to what is carried well. Not tuned: an earlier rule, that rose to the
mean in flight and never halved, learned 126 at 120 s on Azure conv, with 99.0 % in time, and 33
at 600 s, with 99.98 %."""

FALL: Final = Seconds(60.0)
"""Time constant of halving while first tokens come late. Ten times as fast as rising: of a level
that is late for a tenth of the time, about 70 % are kept."""

LEAST: Final = 4.0
"""Late first tokens alone never lower the target below this: where the objective cannot be met,
a replica for each request would not meet it either."""

IN_TIME: Final = 0.5
"""Share of the TTFT objective within which a level is carried with something to spare."""

MEMORY: Final = Seconds(120.0)
"""Time constant of learning from queues alone, on engines that export no first tokens."""

STRIDE: Final = 2.0
"""A learned value moves by this factor at the most per tick: a burst that is still being
prefilled shows few running and many waiting, which is no capacity."""


def learned_in_flight(
    known: float | None, view: View, *, ttft: TtftSection | None = None
) -> float | None:
    """Return the requests in flight that one replica carries; None before the first lesson.

    What a replica ran from one reading to the next while first tokens came well within the
    objective is carried: the target rises to it. A queue and late first tokens say that the
    target is too high, whatever ran meanwhile. A queue alone says neither: a long prompt makes
    one at any load. Where first tokens tell nothing, what ran at a queue is the lesson.
    Warming, stalled, silent and skewed replicas teach nothing.

    Measured on Llama-70B/4xH100 at a load time of 240 s against learning from queues alone:
    Azure conv Monday 172 paid hours for 206, ServeGen m-large 153 for 193, both above 99.9 %
    in time; Azure code 99.6 % for 94.0 % in time, with 262 paid hours for 224.
    """
    even = [replica for replica, work in view.heard if work.waiting <= view.skew_limit]
    lessons = [
        lesson for r in even if (lesson := _lesson(view.passed.get(r.uid), ttft)) is not None
    ]
    target = view.target if known is None else known
    late = [lesson for lesson in lessons if lesson.says is _Says.LATE]
    queued = [lesson for lesson in lessons if lesson.says is _Says.QUEUED]
    more = [x for x in lessons if x.says is _Says.CARRIED and x.running > target]
    if late:
        lost = (1.0 - 1.0 / STRIDE) * _weight(late, FALL, share=len(late) / len(even))
        return max(min(target, LEAST), target * (1.0 - lost))
    if queued:
        seen = max(1.0, _running(queued))
        return seen if known is None else _moved(known, seen, _weight(queued, MEMORY))
    if more:
        return _moved(target, _running(more), _weight(more, RISE))
    return known


class _Says(Enum):
    LATE = auto()
    """A queue, and first tokens beyond the objective."""

    QUEUED = auto()
    """A queue, and no first tokens that tell what it meant."""

    CARRIED = auto()
    """First tokens well within the objective."""


@dataclass(frozen=True, slots=True)
class _Lesson:
    says: _Says
    running: float
    seconds: float


def _lesson(between: Between | None, ttft: TtftSection | None) -> _Lesson | None:
    """Return what the last two readings of a replica teach, or None.

    At a queue the larger of the two counts of running requests: the batch was full for a moment
    at least. What is carried is the smaller: a burst of a moment proves nothing.
    """
    if between is None or between.seconds <= 0:
        return None
    reading, before, seconds = between.now, between.before, between.seconds
    queue = min(r.values.get(Metric.REQUESTS_WAITING, 0.0) for r in (reading, before))
    ran = [r.values.get(Metric.REQUESTS_RUNNING, 0.0) for r in (reading, before)]
    full = queue > 0 and max(ran) > 0
    seen = between.first_tokens
    slow = None if seen is None or ttft is None else seen.quantile(ttft.quantile)
    if slow is None or ttft is None:
        return _Lesson(_Says.QUEUED, max(ran), seconds) if full else None
    if slow > ttft.objective:
        return _Lesson(_Says.LATE, max(ran), seconds) if full else None
    well = slow <= IN_TIME * ttft.objective
    return _Lesson(_Says.CARRIED, min(ran), seconds) if well else None


def _moved(known: float, seen: float, weight: float) -> float:
    bounded = min(known * STRIDE, max(known / STRIDE, seen))
    return known + (bounded - known) * weight


def _running(lessons: Sequence[_Lesson]) -> float:
    return median(lesson.running for lesson in lessons)


def _weight(lessons: Sequence[_Lesson], memory: Seconds, *, share: float = 1.0) -> float:
    """Return what a tick of these lessons counts against all before it, 0..1."""
    return 1.0 - math.exp(-share * median(lesson.seconds for lesson in lessons) / memory)
