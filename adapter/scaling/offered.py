"""The work that arrives: tokens to compute per second, or requests where tokens are not counted."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.scaling.state import Carried, RatePoint

OUTPUT_TOKEN: Final = 2.0
"""Computed prompt tokens that one output token weighs: on 70B/4xH100 a prompt token takes 56 µs,
an output token 60 µs and its part of reading the weights."""

TOKENS: Final = "tokens"
REQUESTS: Final = "requests"

CALM: Final = Seconds(240.0)
"""Time constant of the calm mean."""

RECENT: Final = Seconds(60.0)
SUDDEN: Final = Seconds(10.0)
"""Shorter means count for what they are above noise: a burst is seen at once, chance is not."""

NOISE: Final = 2.0
"""Standard deviations of chance that are no burst."""

UNEVEN: Final = 2.0
"""Variance of a request's work over its squared mean, plus 1: 1 if all were alike."""


@dataclass(frozen=True, slots=True)
class Offered:
    """What arrives; work per second, in ``unit``."""

    unit: str
    calm: float
    """The mean of some minutes."""

    recent: float
    sudden: float
    each: float
    """Work of one request."""

    seconds: float
    """How long it has been seen, up to the window of the rates."""

    @property
    def requests(self) -> float:
        """Return the requests per second of the last minute."""
        return self.recent / self.each

    @property
    def rate(self) -> float:
        """Return the work to plan for: the calm mean, or a shorter one that is surely above."""
        surely = (_surely(self.recent, self.each, RECENT), _surely(self.sudden, self.each, SUDDEN))
        return max(self.calm, *surely)


def offered_of(points: Sequence[RatePoint], known: Carried) -> Offered | None:
    """Return the work that arrives by ``points``, the last of which is of now; None: unknown."""
    finished = sum(point.finished_requests for point in points)
    counted = all(p.prompt_tokens is not None and p.output_tokens is not None for p in points)
    unit = TOKENS if counted else REQUESTS
    work = sum(_done(point, unit) for point in points)
    if finished <= 0 or work <= 0:
        return None
    each = work / finished
    recent, last = _mean(points, unit, each, RECENT), points[-1]
    before = recent if known.arriving is None or known.unit != unit else known.arriving
    share = 1.0 - math.exp(-last.seconds / CALM)
    return Offered(
        unit=unit,
        calm=before + (_arrived(last, unit, each) / last.seconds - before) * share,
        recent=recent,
        sudden=_mean(points, unit, each, SUDDEN),
        each=each,
        seconds=sum(point.seconds for point in points),
    )


def _surely(rate: float, each: float, span: Seconds) -> float:
    return rate - NOISE * math.sqrt(UNEVEN * rate * each / span)


def _done(point: RatePoint, unit: str) -> float:
    if unit == REQUESTS or point.prompt_tokens is None or point.output_tokens is None:
        return point.finished_requests
    return point.prompt_tokens + OUTPUT_TOKEN * point.output_tokens


def _arrived(point: RatePoint, unit: str, each: float) -> float:
    """Return the work that came in a tick: what was done, and what the queue grew by."""
    if unit == REQUESTS:
        return point.arrived_requests
    return max(0.0, _done(point, unit) + point.queue_growth * each)


def _mean(points: Sequence[RatePoint], unit: str, each: float, span: Seconds) -> float:
    work, seconds = 0.0, 0.0
    for point in reversed(points):
        if seconds >= span:
            break
        work += _arrived(point, unit, each)
        seconds += point.seconds
    return work / seconds
