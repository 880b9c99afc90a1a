"""How far the mean of a few runs can be trusted: a bootstrap interval."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_RESAMPLES: Final = 2000
_OUTSIDE: Final = 0.025
"""On each side of the interval."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean, and where 95 % of the means of as many draws from the same values lie."""

    mean: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Return mean and interval of ``values``, of which there is one at least; always the same."""
    count, chance = len(values), random.Random(0)  # noqa: S311 - resampling hides nothing
    means = sorted(math.fsum(chance.choices(values, k=count)) / count for _ in range(_RESAMPLES))
    cut = int(_OUTSIDE * _RESAMPLES)
    return Spread(math.fsum(values) / count, means[cut], means[-1 - cut])
