"""Many demands become one recommendation: the largest, rounded up once."""

import math
from collections.abc import Sequence
from typing import Final

from adapter.scaling.decision import Stage, Step
from adapter.scaling.demand import Demand
from adapter.scaling.view import View

GRAIN: Final = 1e-6
"""Float noise that does not order a replica: 3.0000001 is 3."""


def combine(demands: Sequence[Demand], view: View, *, base: int) -> Step:
    """Return the recommendation: the largest demand, in whole replicas.

    On the way down from ``base`` it stops at the largest floor, which counts what silent
    replicas may hide. Without any demand the busy replicas are needed: signals that only raise
    say nothing about how few would do.
    """
    known = [(d.replicas, d) for d in demands if d.replicas is not None]
    if not known and any(demand.blocks_down for demand in demands):
        return Step(Stage.COMBINE, base, base, "no signal can say")
    if not known:
        busy = len(view.serving) - sum(work.in_flight == 0 for _, work in view.heard)
        return Step(Stage.COMBINE, base, max(1, busy), f"no signal asks: {busy} replicas are busy")
    largest, winner = max(known, key=lambda pair: pair[0])
    need = whole(largest)
    because = f"{winner.signal}: {winner.because}"
    floor = max(whole(r if d.floor is None else d.floor) for r, d in known)
    if need < base and need < floor:
        kept = min(base, floor)
        return Step(Stage.COMBINE, base, kept, f"{because}; silent replicas count as busy")
    return Step(Stage.COMBINE, base, need, because)


def whole(replicas: float) -> int:
    """Return ``replicas`` rounded up, at least 1: a pool at zero has no signal to wake on."""
    return max(1, math.ceil(replicas - GRAIN))
