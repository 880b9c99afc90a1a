"""What is there and what is coming: who no longer counts, and what cannot be had."""

from typing import Final

from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Census, Stage, Step
from adapter.scaling.view import View, names

OVERDUE_MARGIN: Final = 1.5
"""A replica is awaited for this many lead times; the lead time is a high quantile already."""

SHORTAGE_AFTER: Final = Seconds(300.0)
"""A replica without a node for this long says that there is none to be had."""

OVERDUE_SHARE: Final = 4
"""At most one overdue replica in so many needed is ordered again: if all loads slowed down,
ordering the fleet twice would slow them further."""


def standing(fleet: FleetSnapshot) -> int:
    """Return how many replicas are set to run; counted where nobody can be asked."""
    if fleet.spec_replicas is not None:
        return fleet.spec_replicas
    return sum(replica.phase is not Phase.DRAINING for replica in fleet.replicas)


def overdue(view: View) -> tuple[Replica, ...]:
    """Return the replicas on their way for longer than they are worth waiting for."""
    limit = OVERDUE_MARGIN * view.lead
    return tuple(r for r in view.coming if _age(r, view.at) > limit)


def with_replacements(need: int, view: View) -> Step:
    """Return the need with one more for each replica that holds a place and does no work.

    Lost replicas at most double the need: when everything stalls, more of the same is no cure.
    Overdue ones are ordered again only while fewer serve than are needed.
    """
    late = overdue(view)
    lost = min(len(view.lost), need)
    again = min(len(late), max(1, need // OVERDUE_SHARE), max(0, need - len(view.serving)))
    clauses = []
    if lost:
        clauses.append(f"{lost} for stalled or isolated {names(view.lost)}")
    if again:
        limit = OVERDUE_MARGIN * view.lead
        clauses.append(f"{again} for {names(late)}, loading for more than {limit:g} s")
    because = "; ".join(clauses) or "nobody is to be replaced"
    return Step(Stage.REPLACE, need, need + lost + again, because)


def shortage(fleet: FleetSnapshot, view: View) -> str:
    """Return why no more replicas can be had, empty when they can."""
    if fleet.unscheduled:
        return fleet.unscheduled
    waiting = [
        replica
        for replica in view.coming
        if replica.phase is Phase.PENDING and _age(replica, view.at) > SHORTAGE_AFTER
    ]
    return f"{names(waiting)} without a node for {SHORTAGE_AFTER:g} s or more" if waiting else ""


def census(view: View) -> Census:
    """Return how many replicas are in which phase."""
    return Census(
        serving=len(view.serving),
        loading=len(view.coming),
        overdue=len(overdue(view)),
        stalled=len(view.lost),
        draining=view.draining,
        silent=len(view.silent),
    )


def _age(replica: Replica, at: Timestamp) -> float:
    return 0.0 if replica.since is None else at - replica.since
