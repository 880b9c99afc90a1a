"""What a pool carries by what was learned: the work rate of a replica, and replicas for a rate."""

import math
from typing import Final

from adapter.scaling.state import Carried

SIZES: Final = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)
"""Sizes of pools that have a level of their own; it is valid up to the next one."""


def place_of(pool: int) -> int:
    """Return which of ``SIZES`` speaks for ``pool``; none is treated as one replica."""
    return max(place for place, size in enumerate(SIZES) if size <= max(1, pool))


def carried_at(known: Carried, pool: int) -> float:
    """Return the work per second that one of ``pool`` replicas carries; there must be levels."""
    return known.levels[place_of(pool)]


def replicas_for(known: Carried, rate: float, *, headroom: float) -> float:
    """Return the replicas that carry ``rate``, fractional; there must be levels."""
    sizes = zip(SIZES, (*SIZES[1:], math.inf), known.levels, strict=True)
    wanted = ((max(size, math.ceil(rate / (w * headroom))), end, w) for size, end, w in sizes)
    count, level = next((n, level) for n, end, level in wanted if n < end)
    under = (count - 1) * carried_at(known, count - 1) * headroom
    return count - 1 + max(0.0, rate - under) / (count * level * headroom - under)
