"""Rules over ScaledObjects: what KEDA's own settings do, and do not do, to the number."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import KubeObject, Landscape
from adapter.policy.scaler import our_metrics, scalers
from adapter.scaling.duration import format_duration

_DEFAULT_COOLDOWN: Final = 300.0
_DEFAULT_POLLING: Final = 30.0
_SYNC: Final = 15.0
_FAST: Final = 30.0
"""Seconds from a burst to the order that fast up promises: a scrape, a poll, an HPA's sync."""

STATIC_FALLBACK: Final = Code(
    "LT211",
    Severity.WARNING,
    "a fallback that gives replicas away",
    "`fallback` with behavior static, the default, sets its count whatever runs: below it, an "
    "outage of metrics scales down at peak. `currentReplicasIfHigher` never does. No fallback "
    "at all is safe too: on an error the HPA leaves the count. It does not fire where the "
    "scaler cannot be reached while KEDA asks for the metric's specification (keda#8056).",
)
COOLDOWN: Final = Code(
    "LT212",
    Severity.WARNING,
    "cooldownPeriod or idleReplicaCount, misread",
    "`cooldownPeriod` is only about the last step to 0 or to idleReplicaCount. With a minimum of 1 "
    "or more it does nothing; with 0 everything goes at once after it. The way down from N is the "
    "policy's scaleDown.",
)
SLOW_POLL: Final = Code(
    "LT213",
    Severity.WARNING,
    "polling is slower than fast up",
    "A burst waits for the adapter's interval, for KEDA's pollingInterval (30 s when nothing is "
    "said) and for the HPA's 15 s before the first replica is even ordered. The HPA's own reads go "
    "through without the poll, but not with `useCachedMetrics`. A trigger of type external-push "
    "does not wait.",
)


def _static_fallback(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one = scaler.object
        count = one.number("spec", "fallback", "replicas")
        behaviour = one.text("spec", "fallback", "behavior") or "static"
        if count is None or behaviour in {"currentReplicas", "currentReplicasIfHigher"}:
            continue
        if behaviour == "static" and scaler.most is not None and count >= scaler.most:
            continue
        yield one.finding(
            ("spec", "fallback", "behavior"),
            STATIC_FALLBACK,
            message=f"{one.shown}: on errors, {count:g} replicas whatever runs ({behaviour})",
            fix="behavior: currentReplicasIfHigher",
        )


def _cooldown(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one = scaler.object
        if one.node("spec", "idleReplicaCount") is not None:
            yield one.finding(
                ("spec", "idleReplicaCount"),
                COOLDOWN,
                message=f"{one.shown}: idleReplicaCount takes the pool below its minimum when idle",
                note="only 0 works, and 0 cannot be woken",
                fix="remove idleReplicaCount",
            )
        said = one.number("spec", "cooldownPeriod")
        if said is not None and scaler.least:
            yield one.finding(
                ("spec", "cooldownPeriod"),
                COOLDOWN,
                message=f"{one.shown}: cooldownPeriod has no effect with minReplicaCount "
                f"{scaler.least}",
                note="it is about the last step to 0 only",
                fix="remove it; the way down is the policy's scaleDown.delay",
            )
        elif said is not None and scaler.least == 0:
            yield one.finding(
                ("spec", "cooldownPeriod"),
                COOLDOWN,
                message=f"{one.shown}: after {said:g} s without activity all replicas go at once",
                fix="minReplicaCount: 1",
            )


def _slow_poll(landscape: Landscape) -> Iterator[Finding]:
    for one in landscape.of_kind("ScaledObject"):
        polled = [p for p in our_metrics(one) if one.text(*p, "type") != "external-push"]
        if not polled:
            continue
        said = one.number("spec", "pollingInterval")
        polling = _DEFAULT_POLLING if said is None else said
        interval = _interval(landscape, one)
        total = interval + polling + _SYNC
        if total <= _FAST:
            continue
        absent = " (the default)" if said is None else ""
        most = max(1, int(_FAST - _SYNC - interval))
        yield one.finding(
            ("spec", "pollingInterval"),
            SLOW_POLL,
            message=f"{one.shown}: an order may take {format_duration(total)}: "
            f"{interval:g} s to look, {polling:g} s to poll{absent}, {_SYNC:g} s for the HPA",
            fix=f"pollingInterval: {min(10, most)}, or a trigger of type external-push",
        )


def _interval(landscape: Landscape, one: KubeObject) -> float:
    placed = landscape.policy_of(one)
    return 5.0 if placed is None else placed.policy.spec.source.interval


KEDA: Final = (
    AroundRule(STATIC_FALLBACK, _static_fallback),
    AroundRule(COOLDOWN, _cooldown),
    AroundRule(SLOW_POLL, _slow_poll),
)
"""The family, by number."""
