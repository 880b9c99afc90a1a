"""Rules over what an autoscaler may reach, and what else it listens to."""

import re
from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import KubeObject, Landscape, engine_of, gpus_of, together, whole
from adapter.policy.scaler import METRIC, Scaler, made_by_keda, our_metrics, scalers
from adapter.policy.tree import Path

BOUNDS: Final = Code(
    "LT206",
    Severity.ERROR,
    "bounds that cut what is wanted",
    "A maximum below what the policy may ask for refuses the replicas that the peak needs. A "
    "minimum of 0, which a ScaledObject has when it says nothing, takes the last replica away, "
    "and an empty pool exports nothing that would wake it.",
)
OVER_QUOTA: Final = Code(
    "LT207",
    Severity.ERROR,
    "more GPUs than there can be",
    "The maximum times the GPUs of a replica is above the quota: the last replicas stay Pending, "
    "at the moment in which they are needed.",
)
OTHER_METRICS: Final = Code(
    "LT208",
    Severity.WARNING,
    "another metric on the same autoscaler",
    "An HPA takes the largest of its metrics and, when one of them fails, does not scale "
    "down. CPU, memory and GPU utilisation of an inference engine are high whatever the load.",
)


def _bounds(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        yield from _minimum(scaler)
        yield from _maximum(scaler, landscape)


def _minimum(scaler: Scaler) -> Iterator[Finding]:
    one = scaler.object
    absent = one.node(*scaler.minimum) is None
    if (absent and one.kind == "ScaledObject") or scaler.least == 0:
        said = "is 0 when nothing is said" if absent else "is 0"
        yield one.finding(
            scaler.minimum if not absent else ("spec",),
            BOUNDS,
            message=f"{one.shown}: {scaler.minimum[-1]} {said}",
            note="an empty pool exports nothing that would wake it",
            fix=f"{scaler.minimum[-1]}: 1, or the policy's replicas.min",
        )


def _maximum(scaler: Scaler, landscape: Landscape) -> Iterator[Finding]:
    one, most, least = scaler.object, scaler.most, scaler.least
    if most is not None and least is not None and most < least:
        yield one.finding(
            scaler.maximum,
            BOUNDS,
            message=f"{one.shown}: {scaler.maximum[-1]} {most} is below the minimum {least}",
            fix=f"{scaler.maximum[-1]}: {max(least, 1)} or more",
        )
    placed = landscape.policy_of(one)
    if placed is None:
        return
    bounds = placed.policy.spec.replicas
    if most is not None and most < bounds.max:
        yield one.finding(
            scaler.maximum,
            BOUNDS,
            message=f"{one.shown}: {scaler.maximum[-1]} {most} is below the policy's "
            f"replicas.max {bounds.max}: what is wanted beyond it never comes",
            fix=f"{scaler.maximum[-1]}: {bounds.max}",
        )
    if least is not None and 0 < least < bounds.min:
        yield one.finding(
            scaler.minimum,
            BOUNDS,
            message=f"{one.shown}: {scaler.minimum[-1]} {least} is below the policy's "
            f"replicas.min {bounds.min}",
            note="without an answer from us, that is where it may end",
            fix=f"{scaler.minimum[-1]}: {bounds.min}",
        )


def _over_quota(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one, most = scaler.object, scaler.most
        workload = landscape.target_of(one)
        each = gpus_of(workload) if workload is not None else 0
        if most is None or not each:
            continue
        for quota in landscape.of_kind("ResourceQuota"):
            hard = _gpu_quota(quota)
            if hard is not None and most * each > hard and together(quota, one):
                yield one.finding(
                    scaler.maximum,
                    OVER_QUOTA,
                    message=f"{one.shown}: {most} replicas with {each} GPUs each are "
                    f"{most * each}, and {quota.shown} allows {hard}",
                    fix=f"{scaler.maximum[-1]}: {max(1, hard // each)}, or a larger quota",
                )


def _gpu_quota(quota: KubeObject) -> int | None:
    hard = quota.mapping("spec", "hard")
    for name in ("requests.nvidia.com/gpu", "requests.amd.com/gpu", "limits.nvidia.com/gpu"):
        allowed = whole(str(hard.get(name, "")))
        if allowed is not None:
            return allowed
    return None


def _other_metrics(landscape: Landscape) -> Iterator[Finding]:
    for one in landscape.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        if made_by_keda(one):
            continue
        ours = our_metrics(one)
        for path in _metrics(one):
            said = "" if path in ours else _beside(landscape, one, path, read=bool(ours))
            if said:
                message = f"{one.shown} {said}"
                yield one.finding(path, OTHER_METRICS, message=message, fix=f"keep {METRIC} alone")


def _beside(landscape: Landscape, one: KubeObject, path: Path, *, read: bool) -> str:
    """Return what is wrong with a metric that is not ours, while ours is ``read`` or not."""
    what, placed = _named(one, path), landscape.policy_of(one)
    if read:
        return f"also scales by {what} beside {METRIC}"
    if what.lower() == METRIC:
        return f"asks for {METRIC} as {one.text(*path, 'type')}: it is served as External only"
    if placed is not None:
        name = placed.policy.metadata.name
        return f"scales by {what}, and reads nothing of what policy {name} wants"
    workload = landscape.target_of(one)
    runs = workload is not None and bool(engine_of(workload))
    if runs and _HARDWARE.search(_asked(one, path, what)):
        return f"scales an inference engine by {what}: it says little of an engine's load"
    return ""


_HARDWARE: Final = re.compile("cpu|memory|util|dcgm|duty_cycle", re.IGNORECASE)
"""In the name or query of a metric that tells of the machine. A queue's length is no such."""


def _metrics(one: KubeObject) -> tuple[Path, ...]:
    """Return the paths of its metrics; of an HPA that lists none, of the CPU it then goes by."""
    key = "triggers" if one.kind == "ScaledObject" else "metrics"
    found: tuple[Path, ...] = tuple(
        ("spec", key, number) for number in range(one.count("spec", key))
    )
    if found or one.kind == "ScaledObject" or one.node("spec", key) is not None:
        return found
    return (("spec", "targetCPUUtilizationPercentage"),)


def _asked(one: KubeObject, path: Path, what: str) -> str:
    """Return what tells of which kind a metric is: its name, or a trigger's with its query."""
    query = (one.text(*path, "metadata", key) for key in ("query", "metricName"))
    return " ".join((what, *query))


def _named(one: KubeObject, path: Path) -> str:
    if path[-1] == "targetCPUUtilizationPercentage":
        return "cpu"
    if one.kind == "ScaledObject":
        return one.text(*path, "type") or "another trigger"
    for kind in ("external", "pods", "object"):
        name = one.text(*path, kind, "metric", "name")
        if name:
            return name
    resource = one.text(*path, "resource", "name")
    return resource or one.text(*path, "containerResource", "name") or "another metric"


REACH: Final = (
    AroundRule(BOUNDS, _bounds),
    AroundRule(OVER_QUOTA, _over_quota),
    AroundRule(OTHER_METRICS, _other_metrics),
)
"""The family, by number."""
