"""Rules over HPAs, and the HPAs that ScaledObjects make: what bends or delays the number."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import KubeObject, Landscape
from adapter.policy.scaler import METRIC, milli_of, our_metrics, scalers
from adapter.policy.tree import Path
from adapter.scaling.duration import format_duration
from adapter.scaling.hpa import dead_zone

_DEFAULT_DOWN_WINDOW: Final = 300.0
_SYNC: Final = 15.0
_MINUTE: Final = 60.0
_LARGEST: Final = 10_000
"""Replicas up to which dead zones are looked for; "no limit" is often written as two billion."""

VALUE_TARGET: Final = Code(
    "LT201",
    Severity.ERROR,
    "the target type is not AverageValue",
    "The metric is the count that is wanted. Under `Value` the HPA multiplies the ratio by its "
    'ready pods: 6 wanted with 2 ready come out as 12. It must be AverageValue "1".',
)
OTHER_TARGET: Final = Code(
    "LT202",
    Severity.ERROR,
    "the target is not 1",
    "The HPA divides the metric by the target. The metric is in replicas already, so any target "
    "but 1 scales to a fraction or a multiple of what is wanted.",
)
DEAD_ZONE: Final = Code(
    "LT203",
    Severity.WARNING,
    "the HPA's tolerance hides steps",
    "Within 10 % of the present count an HPA does nothing: from 10 replicas on, one more or one "
    "less never happens, and a surge pod can ratchet the count up during a rollout. "
    '`behavior.scaleUp.tolerance: "0"` and `scaleDown.tolerance: "0"` cure both.',
)
SECOND_WINDOW: Final = Code(
    "LT204",
    Severity.WARNING,
    "a second stabilization window",
    "The published count is stabilized already. The HPA's own window (300 s on the way down when "
    "nothing is said) comes on top: the delays add up.",
)
SLOW_UP: Final = Code(
    "LT205",
    Severity.ERROR,
    "the HPA's scale-up policies are slower than the policy",
    "The policy asks for the full need at once, because a replica takes a whole load time to come. "
    "A limit on the HPA's side makes the last of them later still; `Disabled` never starts one.",
)


def _value_target(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one = scaler.object
        for path in our_metrics(one):
            where: Path = (*path, "metricType")
            if one.kind == "HorizontalPodAutoscaler":
                where = (*path, "external", "target", "type")
            said = one.text(*where)
            if said and said != "AverageValue":
                yield one.finding(
                    where,
                    VALUE_TARGET,
                    message=f"{one.shown} reads {METRIC} as {said}",
                    note="it would multiply the count by its ready pods",
                    fix=f"{where[-1]}: AverageValue",
                )


def _other_target(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one = scaler.object
        for path in our_metrics(one):
            for where in _targets(one, path):
                said = one.text(*where)
                milli = milli_of(said)
                if milli is not None and milli != 1000:  # noqa: PLR2004 - one, in milli
                    yield one.finding(
                        where,
                        OTHER_TARGET,
                        message=f"{one.shown} divides the wanted count by {said}",
                        fix=f'{where[-1]}: "1"',
                    )


def _targets(one: KubeObject, path: Path) -> Iterator[Path]:
    if one.kind == "HorizontalPodAutoscaler":
        yield from ((*path, "external", "target", key) for key in ("averageValue", "value"))
    else:
        yield from ((*path, "metadata", key) for key in ("targetValue", "threshold"))


def _dead_zone(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one, most = scaler.object, min(scaler.most or 0, _LARGEST)
        up, down = scaler.tolerance("scaleUp"), scaler.tolerance("scaleDown")
        first = _first_hidden(most, up=up, down=down)
        if first is None:
            continue
        zone = dead_zone(most, up=up, down=down)
        yield one.finding(
            scaler.maximum,
            DEAD_ZONE,
            message=f"{one.shown}: from {first} replicas on the tolerance hides steps: at {most} "
            f"the smallest are +{zone.step_up} and -{zone.step_down}",
            fix='behavior: {scaleUp: {tolerance: "0"}, scaleDown: {tolerance: "0"}}',
        )


def _first_hidden(most: int, *, up: float, down: float) -> int | None:
    """Return the least count up to ``most`` from which one more or one less is not followed."""
    for at in range(1, most + 1):
        zone = dead_zone(at, up=up, down=down)
        if (zone.step_up > 1 and at < most) or (zone.step_down > 1 and at > 1):
            return at
    return None


def _second_window(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one, placed = scaler.object, landscape.policy_of(scaler.object)
        for way, default in (("scaleUp", 0.0), ("scaleDown", _DEFAULT_DOWN_WINDOW)):
            where: Path = (*scaler.behaviour, way, "stabilizationWindowSeconds")
            said = one.number(*where)
            window = default if one.node(*where) is None else said
            if not window:
                continue
            ours = "the policy's own delay"
            total = ""
            if way == "scaleDown" and placed is not None:
                delay = placed.policy.spec.scale_down.delay
                seconds = placed.policy.spec.load_time.default if delay == "auto" else delay
                ours = f"the policy's {format_duration(seconds)}"
                total = f": {format_duration(seconds + window)} in all"
            absent = " when nothing is said" if said is None else ""
            yield one.finding(
                where,
                SECOND_WINDOW,
                message=f"{one.shown}: {way} waits {window:g} s{absent} on top of {ours}{total}",
                fix=f"behavior: {{{way}: {{stabilizationWindowSeconds: 0}}}}",
            )


def _slow_up(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one, most = scaler.object, scaler.most
        where: Path = (*scaler.behaviour, "scaleUp")
        if one.text(*where, "selectPolicy") == "Disabled":
            yield one.finding(
                (*where, "selectPolicy"),
                SLOW_UP,
                message=f"{one.shown} never scales up: selectPolicy is Disabled",
                fix="selectPolicy: Max",
            )
            continue
        steps = _steps(one, (*where, "policies"))
        least = scaler.least or 1
        if not steps or most is None:
            continue
        pick = min if one.text(*where, "selectPolicy") == "Min" else max
        reached = _after_a_minute(least, steps, pick=pick)
        default = _after_a_minute(least, (("Percent", 100, _SYNC), ("Pods", 4, _SYNC)), pick=max)
        if min(reached, most) < min(default, most):
            yield one.finding(
                (*where, "policies"),
                SLOW_UP,
                message=f"{one.shown}: from {least} replicas its scaleUp policies reach {reached} "
                f"in a minute, and the policy may ask for {most} at once",
                fix="leave scaleUp.policies out: 100% or 4 pods every 15 s",
            )


_Step = tuple[str, float, float]
"""Pods or Percent, how many, and in how many seconds."""


def _steps(one: KubeObject, path: Path) -> tuple[_Step, ...]:
    found = []
    for number in range(one.count(*path)):
        value = one.number(*path, number, "value")
        period = one.number(*path, number, "periodSeconds")
        if value is None or not period:
            return ()
        found.append((one.text(*path, number, "type"), value, period))
    return tuple(found)


def _after_a_minute(
    least: int, steps: tuple[_Step, ...], *, pick: Callable[[Sequence[float]], float]
) -> int:
    """Return the replicas after 60 s; a limit holds over any window of its period."""
    reached = float(least)
    history = [(0.0, reached)]
    at = 0.0
    while at < _MINUTE:
        allowed = []
        for kind, value, period in steps:
            base = next(count for when, count in reversed(history) if when <= max(0.0, at - period))
            grown = base + value if kind == "Pods" else base * (1 + value / 100)
            allowed.append(grown)
        reached = max(reached, float(-(-pick(allowed) // 1)))
        at += _SYNC
        history.append((at, reached))
    return int(reached)


HPA: Final = (
    AroundRule(VALUE_TARGET, _value_target),
    AroundRule(OTHER_TARGET, _other_target),
    AroundRule(DEAD_ZONE, _dead_zone),
    AroundRule(SECOND_WINDOW, _second_window),
    AroundRule(SLOW_UP, _slow_up),
)
"""The family, by number."""
