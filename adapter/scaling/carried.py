"""Learning what one replica carries: the work rate up to which first tokens come in time.

A larger pool carries more for each replica: the router finds one that is free, and noise evens
out. So there is a level for each of some sizes, and what one size teaches moves the others, the
less the further they are. A level rises slowly while the arriving work is near it and first
tokens are in time, and falls by the share that comes late. The two balance where that share is
``FALL / RISE``, whatever engine, model and router are.
"""

import math
from dataclasses import replace
from typing import Final

from adapter.fleet.units import Seconds
from adapter.scaling.carrying import SIZES, carried_at, place_of
from adapter.scaling.offered import RECENT, Offered
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.state import Carried, TtftPoint
from adapter.scaling.view import View

POOLING: Final = (0.7, 0.9)
"""What replicas of a pool of 1 and 2 carry, of those in larger ones, before it was learned."""

SHARING: Final = 0.5
LEAST_SHARING: Final = 0.25
"""How much of a lesson the next size takes, and the furthest: models and prompts change for all."""

RISE: Final = Seconds(14_400.0)
FIRST_RISE: Final = Seconds(3600.0)
"""Time to rise by a factor of e; the second until anything came late for the first time."""

PROVEN: Final = Seconds(120.0)
"""Time constant of rising to a work rate that is above the level and served in time."""

FALL: Final = Seconds(120.0)
"""Time to fall by a factor of e if all came late: 0.8 % late balances the rise."""

MOST_FALL: Final = 0.25
"""The most that one tick takes, as a logarithm: a few requests after a gap are no proof."""

NEAR: Final = 0.7
"""Share of the level from which being in time proves anything: any idle replica is in time."""

IN_TIME: Final = 0.5
FEW: Final = 0.05
"""Well in time: no more than ``FEW`` take more than this share of the objective."""

LEAST: Final = 0.25
"""Late first tokens lower a level to this share of what was served in time, no further: an
objective that cannot be met would order replicas without end."""

NOBODY: Final = 0.01
"""First tokens below which there was none: a fluid has amounts where engines have counts."""

FORGOTTEN: Final = Seconds(86_400.0)
"""Time constant of forgetting what was once served in time."""


def learned_carried(known: Carried, view: View, *, ttft: TtftSection | None) -> Carried:
    """Return ``known`` with what this tick taught.

    Nothing is learned from a tick without first tokens, or with lost, silent or skewed replicas;
    warming ones are not part of it, and cached tokens not part of the work. While two versions
    serve, what they do together is neither's; another one begins anew.
    """
    offered, point = view.offered, view.rates[-1] if view.rates else None
    if offered is None or point is None or point.at != view.at:
        return known
    versions = {replica.version for replica in view.serving}
    if len(versions) != 1:
        return known
    (version,) = versions
    if (known.unit, known.version) != (offered.unit, version):
        known = Carried(unit=offered.unit, version=version)
    known = replace(known, arriving=offered.calm)
    points = [seen for seen in view.first_tokens if seen.at == view.at]
    if ttft is None or not points or not view.heard or view.lost or view.silent or view.surplus:
        return known
    count = max(sum(seen.counts[-1] for seen in points), offered.requests * point.seconds)
    late, slow = (
        _counted(sum(_beyond(seen, limit) for seen in points)) / count
        for limit in (ttft.objective, IN_TIME * ttft.objective)
    )
    return _lesson(known, view, offered, late=late, slow=slow)


def _lesson(known: Carried, view: View, offered: Offered, *, late: float, slow: float) -> Carried:
    """Return what a tick teaches of which ``late`` and ``slow`` are the shares.

    Late beyond the level does not contradict it: the pool was too small, and its past has to be
    worked off first.
    """
    pool, seconds = len(view.heard), view.rates[-1].seconds
    each = offered.recent / pool
    well = slow <= FEW and late == 0 and each > 0
    faded = known.proven * math.exp(-seconds / FORGOTTEN)
    known = replace(known, proven=max(each, faded) if well else faded)
    if not known.levels:
        enough = well and offered.seconds >= RECENT
        return replace(known, levels=_first(each, pool)) if enough else known
    level = carried_at(known, pool)
    over = each > level or (known.overrun and (late > 0 or view.waiting > 0))
    known = replace(known, overrun=over)
    if late > 0 and view.queued_lately and not over:
        lowered = _moved(known, pool, -min(MOST_FALL, late * seconds / FALL))
        return replace(known, levels=lowered, late=True)
    if not well or each < NEAR * level:
        return known
    moved = seconds / (RISE if known.late else FIRST_RISE)
    moved += max(0.0, math.log(each / level)) * (1.0 - math.exp(-seconds / PROVEN))
    return replace(known, levels=_moved(known, pool, moved))


def _first(each: float, pool: int) -> tuple[float, ...]:
    shape = [*POOLING, *(1.0 for _ in SIZES[len(POOLING) :])]
    return tuple(each * factor / shape[place_of(pool)] for factor in shape)


def _moved(known: Carried, pool: int, by: float) -> tuple[float, ...]:
    """Return the levels after a lesson; they never fall from one size to the next."""
    here = place_of(pool)
    moved = [
        level * math.exp(by * max(LEAST_SHARING, SHARING ** abs(place - here)))
        for place, level in enumerate(known.levels)
    ]
    for place in range(here - 1, -1, -1):
        moved[place] = min(moved[place], moved[place + 1])
    for place in range(here + 1, len(moved)):
        moved[place] = max(moved[place], moved[place - 1])
    if by >= 0:
        return tuple(moved)
    least = LEAST * known.proven
    return tuple(max(m, min(least, k)) for m, k in zip(moved, known.levels, strict=True))


def _counted(tokens: float) -> float:
    """Return ``tokens``, or 0 for less than ``NOBODY``."""
    return 0.0 if tokens < NOBODY else tokens


def _beyond(point: TtftPoint, limit: float) -> float:
    """Return the first tokens that took longer than ``limit``: linear inside a bucket."""
    lower, below = 0.0, 0.0
    for bound, count in zip(point.bounds, point.counts[:-1], strict=True):
        if limit <= bound:
            within = below + (count - below) * (limit - lower) / (bound - lower)
            return point.counts[-1] - within
        lower, below = bound, count
    return point.counts[-1] - below
