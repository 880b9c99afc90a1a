"""Everything but the delay itself that forbids a step down."""

from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Hold, HoldReason
from adapter.scaling.duration import format_duration
from adapter.scaling.gaps import recovering
from adapter.scaling.stabilize import Brakes
from adapter.scaling.state import ScalingState
from adapter.scaling.supply import OVERDUE_MARGIN, overdue
from adapter.scaling.view import View


def brakes_on(
    fleet: FleetSnapshot,
    view: View,
    state: ScalingState,
    *,
    base: int,
    need: int,
    delay: Seconds,
) -> Brakes:
    """Return what a way down from ``base`` must get past; ``state`` knows of this tick's gap.

    Replicas beyond ``base`` are on their way out already: as many of the idle ones are spoken for.
    """
    holds = (
        recovering(state, view.at, delay=delay),
        _without_memory(state, view.at, delay=delay),
        _rollout(fleet),
        _loading_for_demand(view, need),
    )
    return Brakes(
        at=view.at,
        base=base,
        delay=delay,
        holds=tuple(hold for hold in holds if hold is not None),
        idle=max(0, view.idle - max(0, view.live - base)),
        busy_since=state.busy_since,
    )


def _without_memory(state: ScalingState, at: Timestamp, *, delay: Seconds) -> Hold | None:
    if state.started_at is None or at - state.started_at >= delay:
        return None
    until = Timestamp(state.started_at + delay)
    left = format_duration(round(until - at))
    because = f"started without memory: what runs is needed for one delay, {left} left"
    return Hold(HoldReason.NO_MEMORY, until, because)


def _rollout(fleet: FleetSnapshot) -> Hold | None:
    if not fleet.rollout:
        return None
    return Hold(HoldReason.ROLLOUT, None, "until the rollout ends: two versions share the count")


def _loading_for_demand(view: View, need: int) -> Hold | None:
    """Hold while a replica loads because demand is unserved; it ends when the last is overdue."""
    late = {replica.uid for replica in overdue(view)}
    awaited = [replica for replica in view.coming if replica.uid not in late]
    if not awaited or need <= len(view.serving):
        return None
    youngest = max(view.at if r.since is None else r.since for r in awaited)
    until = Timestamp(youngest + OVERDUE_MARGIN * view.lead)
    because = f"{len(awaited)} load for {need} needed, {len(view.serving)} serve"
    return Hold(HoldReason.LOADING_UNSERVED, until, because)
