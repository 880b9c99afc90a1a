"""A decision told with its reasons, and what an HPA or KEDA makes of the count."""

import json
from collections.abc import Iterator

from adapter.cli.supposing.numbers import Supposed
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision, Hold
from adapter.scaling.demand import Demand
from adapter.scaling.duration import format_duration
from adapter.scaling.hpa import dead_zone, follows


def as_text(policy: Policy, supposed: Supposed, decision: Decision) -> str:
    """Return the decision for a person, each clause once."""
    return "".join(f"{line}\n" for line in _lines(policy, supposed, decision))


def as_json(policy: Policy, supposed: Supposed, decision: Decision) -> str:
    """Return the same for a script."""
    refused = decision.refusal is not None
    document = {
        "policy": f"{policy.metadata.namespace}/{policy.metadata.name}",
        "current": supposed.current,
        "publishedBefore": supposed.published,
        "published": None if refused else decision.published,
        "desired": decision.desired,
        "refusal": decision.refusal,
        "because": decision.because,
        "signals": [
            {
                "signal": demand.signal,
                "replicas": demand.replicas,
                "because": demand.because,
                "evidence": dict(demand.evidence),
            }
            for demand in decision.demands
        ],
        "steps": [
            {"stage": s.stage, "before": s.before, "after": s.after, "because": s.because}
            for s in decision.steps
        ],
        "holds": [
            {
                "reason": hold.reason,
                "secondsLeft": None if hold.until is None else round(hold.until - decision.at, 3),
                "because": hold.because,
            }
            for hold in decision.holds
        ],
        "conditions": [
            {"type": c.type, "status": c.status, "reason": c.reason, "message": c.message}
            for c in decision.conditions
        ],
        "consumers": dict(consumers(decision, current=supposed.current)),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def consumers(decision: Decision, *, current: int) -> tuple[tuple[str, str], ...]:
    """Return by consumer what it makes of the published count when ``current`` replicas run."""
    if decision.refusal is not None:
        stays = f"gets an error and leaves {current} as it is"
        return (("HPA", stays), ("HPA, default tolerance", stays), ("KEDA", stays))
    exact = _goes(current, follows(decision.published, current=current, up=0.0, down=0.0))
    ignored = dead_zone(current).ignores(decision.published)
    usual = (
        f"ignored: {ignored}"
        if ignored
        else _goes(current, follows(decision.published, current=current))
    )
    return (
        ("HPA", f"{exact}, with tolerance 0 as `leadtime` asks for"),
        ("HPA, default tolerance", usual),
        ("KEDA", f"by the HPA that it makes: {exact} with tolerance 0, else as the line above"),
    )


def _goes(current: int, to: int) -> str:
    return f"stays at {current}" if current == to else f"{current}→{to}"


def _lines(policy: Policy, supposed: Supposed, decision: Decision) -> Iterator[str]:
    name = f"{policy.metadata.namespace}/{policy.metadata.name}"
    served = f"publish {decision.published}" if decision.refusal is None else "refuse"
    yield (
        f"{name}: {served}, {decision.desired} desired; before: {supposed.published} published, "
        f"{supposed.serving} serving, {supposed.loading} loading"
    )
    yield f"  because {decision.refusal or decision.because}"
    yield f"  numbers that stand for {format_duration(supposed.stood_for)}, nothing learned yet"
    yield from _part("signals", [_demand(d, decision) for d in decision.demands])
    yield from _part(
        "steps",
        [f"{s.stage:<10} {_change(s.before, s.after):<9} {s.because}" for s in decision.steps],
    )
    yield from _part("holds", [_hold(hold, decision) for hold in decision.holds])
    told = consumers(decision, current=supposed.current)
    yield from _part("from the number to replicas", [f"{who:<23} {what}" for who, what in told])


def _part(title: str, rows: list[str]) -> Iterator[str]:
    yield ""
    yield f"{title}:"
    yield from (f"  {row}".rstrip() for row in rows or ["none"])


def _demand(demand: Demand, decision: Decision) -> str:
    wants = "-" if demand.replicas is None else f"{demand.replicas:.2f}"
    mark = "*" if demand.signal == winner(decision) else " "
    return f"{mark} {demand.signal:<8} {wants:>8}  {demand.because}"


def winner(decision: Decision) -> str:
    """Return the signal that asks for most; empty when none can say."""
    asked = [(d.replicas, d.signal) for d in decision.demands if d.replicas is not None]
    return max(asked, key=lambda pair: pair[0])[1] if asked else ""


def _change(before: int, after: int) -> str:
    return f"{after}" if before == after else f"{before}→{after}"


def _hold(hold: Hold, decision: Decision) -> str:
    left = (
        ""
        if hold.until is None
        else f" for {format_duration(round(hold.until - decision.at))} more"
    )
    return f"{hold.reason}{left}: {hold.because}"
