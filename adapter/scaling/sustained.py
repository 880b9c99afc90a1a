"""The work rate that one replica carries with first tokens in time, by the size of the pool.

Not configured: found by carrying it. While the fleet does nearly what it is planned with and few
first tokens are slow, the rate rises; when more of them are slow it falls, in proportion. So it
settles where the share of slow ones is the tolerated one, well before they are late.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import Sustained, WorkSlice
from adapter.scaling.work_rate import Seen, over

TOLERATED: Final = 0.03
"""Share of first tokens after half the objective that is settled at. On 70B/4xH100, simulated,
Azure's conv has 0.5 % at 11,000 tokens/s and replica, 4 % at 12,700 and 40 % at 13,700, where the
first ones come late; Azure code, whose prompts are longer, 2 % at 8,700 and 20 % at 11,500."""

PACE: Final = Seconds(300.0)
"""Time constant: with no slow first token the rate rises by 43 % an hour, with half of them slow it
falls by 15 % in two minutes."""

RISE: Final = Seconds(600.0)
"""Time constant of rising to what was done beyond the plan with few slow first tokens: proof."""

NEAR: Final = 0.9
"""Share of the planned rate from which what is done says something about the plan."""

PLANNED: Final = 0.9
"""Share of the edge that a pool is planned with by default, ``signals.queue.headroom``: lessons are
about this much of the edge, so that a smaller headroom is not learned away."""

LOOK: Final = Seconds(60.0)
"""What is done, and how many are slow, is taken over this long."""

ENOUGH: Final = 20.0
"""First tokens in ``LOOK`` below which nothing is learned."""

EXCUSED: Final = Seconds(180.0)
"""For so long after the fleet was asked for more than it is planned with, slow first tokens are the
backlog's past and say nothing about the rate."""

FORGOTTEN: Final = Seconds(86_400.0)
"""A rate that was not met for so long is taken from its neighbours again."""

SMALLER: Final = 0.85
"""What a pool of half the size carries per replica, before it was seen: from a pool of three to two
5 to 15 % less in measurements with work-aware routing; from two to one a third."""

ALONE: Final = 0.7


def class_of(replicas: int) -> int:
    """Return the class of pools that are alike: 1, 2, 3-4, 5-8, 9-16, …, numbered from 0."""
    return max(0, math.ceil(math.log2(replicas))) if replicas > 0 else 0


def edge_of(rates: Mapping[int, Sustained], size: int) -> float | None:
    """Return the rate at the edge for the pools of class ``size``; None before any lesson.

    A larger pool carries at least as much per replica as a smaller one; a smaller one that was not
    seen, less by ``SMALLER`` for each halving.
    """
    below = [one.edge for known, one in rates.items() if known <= size]
    if below:
        return max(below)
    above = min(rates, default=None)
    if above is None:
        return None
    edge = rates[above].edge
    for step in range(above, size, -1):
        edge *= ALONE if step == 1 else SMALLER
    return edge


def replicas_for(rate: float, rates: Mapping[int, Sustained], headroom: float) -> float | None:
    """Return how many replicas carry ``rate``, fractional; None before any lesson.

    The smallest pool that does: what each carries depends on how many they are.
    """
    for size, most in _classes():
        edge = edge_of(rates, size)
        if edge is None:
            return None
        need = rate / (edge * headroom)
        if need <= most:
            return max(need, most / 2 + _MORE) if size else need
    raise AssertionError("the classes have no end")


_MORE: Final = 1e-3
"""Beyond the largest pool of the class before, which does not carry it: one replica more."""


def learned(
    rates: Mapping[int, Sustained],
    slices: Sequence[WorkSlice],
    *,
    at: Timestamp,
    seconds: Seconds,
    serving: int,
    excused: bool,
) -> Mapping[int, Sustained]:
    """Return ``rates`` with the lesson of a tick of ``seconds``.

    ``excused``: slow first tokens have another cause. The first lesson is what is done now, or half
    of it where it is not carried in time.
    """
    kept = {size: one for size, one in rates.items() if at - one.at < FORGOTTEN}
    seen = over(slices, LOOK)
    if serving == 0 or seen.seconds < LOOK / 2 or seen.first < ENOUGH or seen.rate <= 0:
        return kept
    size = class_of(serving)
    edge = edge_of(kept, size)
    if edge is None:
        first = seen.rate if seen.slow_share <= TOLERATED else seen.rate / 2
        return {**kept, size: Sustained(first / PLANNED, at)}
    told = _told(edge * PLANNED, seen, seconds=seconds, excused=excused)
    return kept if told is None else {**kept, size: Sustained(told / PLANNED, at)}


def _told(planned: float, seen: Seen, *, seconds: Seconds, excused: bool) -> float | None:
    """Return the planned rate after this lesson; None where it says nothing."""
    spare = TOLERATED - seen.slow_share
    if spare < 0:
        if excused or seen.rate > planned:
            return None
        return planned * math.exp(seconds / PACE * spare)
    if seen.rate > planned:
        planned += (seen.rate - planned) * (1.0 - math.exp(-seconds / RISE))
    if seen.rate < NEAR * planned:
        return None
    return planned * math.exp(seconds / PACE * spare)


def _classes() -> Iterator[tuple[int, int]]:
    """Yield each class with the most replicas in it."""
    size, most = 0, 1
    while True:
        yield size, most
        size, most = size + 1, 2 * most
