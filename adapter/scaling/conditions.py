"""What ``kubectl describe`` shows of a decision, one condition per fact."""

from collections.abc import Sequence

from adapter.fleet.snapshot import FleetSnapshot
from adapter.scaling.decision import Condition, ConditionType
from adapter.scaling.demand import Demand
from adapter.scaling.gaps import Outage
from adapter.scaling.limits import Limited
from adapter.scaling.view import SKEW_FREE, View, names


def conditions(
    fleet: FleetSnapshot,
    view: View,
    demands: Sequence[Demand],
    *,
    outage: Outage | None,
    refusal: str | None,
    limited: Limited,
    shortage: str,
) -> tuple[Condition, ...]:
    """Return every condition, true or not, in a fixed order."""
    return (
        _ready(outage, refusal),
        _metrics_available(view, outage),
        _signal_served(demands),
        Condition(
            ConditionType.SCALING_LIMITED,
            bool(limited.reason),
            limited.reason or "DesiredWithinRange",
            f"{limited.step.before} wanted, {limited.step.after} allowed: {limited.step.because}",
        ),
        _flag(ConditionType.CAPACITY_SHORTAGE, "Unschedulable", shortage, "replicas find nodes"),
        _flag(
            ConditionType.ROLLOUT_IN_PROGRESS,
            "RolloutInProgress",
            "one version replaces another: the count does not go down" if fleet.rollout else "",
            "one version",
        ),
        _stalled(view),
        _skew(view),
    )


def off_condition() -> Condition:
    """Return the one condition of a policy that is off."""
    message = "mode is off: nothing is computed"
    return Condition(ConditionType.READY, status=False, reason="Off", message=message)


def _ready(outage: Outage | None, refusal: str | None) -> Condition:
    if refusal is not None:
        return Condition(ConditionType.READY, status=False, reason="Refused", message=refusal)
    if outage is not None:
        message = f"holding the last good count: {outage.lack}: {outage.detail}"
        return Condition(ConditionType.READY, status=False, reason="Holding", message=message)
    return Condition(
        ConditionType.READY, status=True, reason="Decided", message="decided on good data"
    )


def _metrics_available(view: View, outage: Outage | None) -> Condition:
    kind = ConditionType.METRICS_AVAILABLE
    if outage is not None:
        return Condition(kind, status=False, reason=str(outage.lack), message=outage.detail)
    unexpected = [(r, silence) for r, silence in view.silent if not silence.unserved]
    if unexpected:
        replica, silence = unexpected[0]
        count = f"{len(unexpected)} of {len(view.serving)} serving replicas are silent"
        message = f"{count}, first {replica.name}: {silence.lack}: {silence.detail}"
        return Condition(kind, status=True, reason="Partial", message=message)
    return Condition(kind, status=True, reason="Complete", message="every serving replica tells")


def _signal_served(demands: Sequence[Demand]) -> Condition:
    never = [demand.signal for demand in demands if demand.unserved]
    if never:
        message = f"the engine exports nothing for {', '.join(never)}; set them to null"
        return Condition(
            ConditionType.SIGNAL_SERVED, status=False, reason="NotExported", message=message
        )
    return Condition(
        ConditionType.SIGNAL_SERVED,
        status=True,
        reason="Served",
        message="the engine exports every signal that is on",
    )


def _stalled(view: View) -> Condition:
    kind = ConditionType.REPLICAS_STALLED
    stuck = [replica for replica in view.lost if replica.uid in view.stuck]
    if stuck:
        message = (
            f"{names(stuck)}: requests in flight neither move nor grow; "
            f"they are not counted as demand; look at the engine, or restart it"
        )
        return Condition(kind, status=True, reason="StuckQueue", message=message)
    lost = f"{names(view.lost)}: in place without work done" if view.lost else ""
    return _flag(kind, "NoProgress", lost, "every serving replica makes progress")


def _skew(view: View) -> Condition:
    surplus = view.surplus
    hot = [r for r, work in view.heard if work.waiting > view.skew_limit]
    message = (
        f"{surplus:g} requests wait at {names(hot)} while most replicas have no such queue: "
        f"a routing fault that more replicas do not cure"
    )
    skewed = message if surplus > SKEW_FREE else ""
    return _flag(ConditionType.QUEUE_SKEW, "UnevenQueues", skewed, "queues are even")


def _flag(kind: ConditionType, reason: str, message: str, otherwise: str) -> Condition:
    """Return a condition that is true when there is a ``message``."""
    if message:
        return Condition(kind, status=True, reason=reason, message=message)
    return Condition(kind, status=False, reason="None", message=otherwise)
