"""A quantile that learns from its misses, and what it has been worth lately."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

ETA: Final = 0.02
"""How far one miss moves the quantile that is asked for."""

HIGHEST: Final = 1.04
"""Beyond 1 the pool has nothing larger to offer and its largest growth is stretched."""

STRETCH: Final = 10.0
"""At the highest quantile the largest growth seen is stretched by two fifths."""

LOWEST_SHARE: Final = 3.0
"""The lowest quantile asked for leaves three times the share uncovered that may be: a long calm
must not talk the correction into a much smaller promise."""

_DAY_LONG: Final = 3.0
"""Days over which losses are remembered: a lane that fails is left within a day or two."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to forecast: the quantile it is asked for, and how well that has done."""

    quantile: float
    loss: float = 0.0
    """Pinball loss, as a sum that fades; ``weight`` is what it is a sum over."""

    weight: float = 0.0
    misses: float = 0.0
    """Forecasts that were short, faded in the same way."""

    judged: int = 0

    @property
    def mean_loss(self) -> float:
        """Return the mean loss of late; infinite before the first."""
        return self.loss / self.weight if self.weight > 0 else math.inf

    @property
    def missed(self) -> float:
        """Return the share that was short of late."""
        return self.misses / self.weight if self.weight > 0 else 1.0


def fresh(coverage: float) -> Lane:
    """Return a lane that has seen nothing."""
    return Lane(coverage)


def scored(lane: Lane, *, said: float, was: float, coverage: float, per_day: int) -> Lane:
    """Return ``lane`` after it said ``said`` and the growth was ``was``."""
    share, missed = 1.0 - coverage, was > said
    asked = lane.quantile + ETA * (float(missed) - share)
    lowest = max(0.0, 1.0 - LOWEST_SHARE * share)
    kept = 1.0 - 1.0 / (_DAY_LONG * per_day)
    return replace(
        lane,
        quantile=min(HIGHEST, max(lowest, asked)),
        loss=kept * lane.loss + pinball(said, was, coverage=coverage),
        weight=kept * lane.weight + 1.0,
        misses=kept * lane.misses + missed,
        judged=lane.judged + 1,
    )


def pinball(said: float, was: float, *, coverage: float) -> float:
    """Return what saying ``said`` cost where ``was`` came: short costs most where little may be."""
    return coverage * (was - said) if was > said else (1.0 - coverage) * (said - was)


def quantile_of(pool: Sequence[float], quantile: float) -> float:
    """Return what ``quantile`` of the values to come does not exceed, if they are like ``pool``.

    The rank is the conformal one, ``quantile`` of one more than there are. Beyond 1 the largest
    is stretched away from 1: small pools hold no value rare enough.
    """
    ranked = sorted(pool)
    rank = math.ceil(min(1.0, quantile) * (len(ranked) + 1) - 1e-9)
    value = ranked[min(len(ranked), max(1, rank)) - 1]
    beyond = max(0.0, quantile - 1.0)
    return value + max(0.0, value - 1.0) * STRETCH * beyond
