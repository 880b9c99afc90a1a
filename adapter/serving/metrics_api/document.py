"""The document of one policy: the published count, and why it is that one."""

from datetime import UTC, datetime

from adapter.controller.board import Board, PolicyKey
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Condition, Decision, Hold
from adapter.scaling.demand import Demand


def policy_document(board: Board, key: PolicyKey, now: Timestamp) -> dict[str, object]:
    """Return what is decided about ``key``; ``value`` is what an autoscaler reads.

    Keys are flat words, because KEDA's ``valueLocation`` takes a dot for a step downwards.

    Raises:
        NotServedError: no such policy.
        NoDecisionYetError: nothing worth serving; any other status than 200 is KEDA's error.
    """
    decision = board.decided(key, now)
    return {
        "namespace": key.namespace,
        "policy": key.name,
        "value": _count(decision, key),
        "because": decision.because,
        "components": {demand.signal: _component(demand) for demand in decision.demands},
        "ageSeconds": round(max(0.0, now - decision.at), 3),
        "validUntil": _rfc3339(decision.valid_until),
        "conditions": [_condition(condition) for condition in decision.conditions],
        "holds": [_hold(hold) for hold in decision.holds],
    }


def _count(decision: Decision, key: PolicyKey) -> int:
    if decision.published < 0:
        raise AssertionError(f"policy {key}: the count to publish is {decision.published}")
    return decision.published


def _component(demand: Demand) -> dict[str, object]:
    return {"replicas": demand.replicas, "because": demand.because}


def _condition(condition: Condition) -> dict[str, object]:
    return {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
    }


def _hold(hold: Hold) -> dict[str, object]:
    until = None if hold.until is None else _rfc3339(hold.until)
    return {"reason": hold.reason, "until": until, "because": hold.because}


def _rfc3339(at: Timestamp) -> str:
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
