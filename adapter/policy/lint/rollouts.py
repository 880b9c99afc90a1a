"""Rules over replacing and removing replicas: rollouts, ``/scale``, disruption budgets."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.kinds import WORKLOADS
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import (
    KubeObject,
    Landscape,
    gpus_of,
    share,
    templates_of,
    together,
    whole,
)
from adapter.policy.scaler import Scaler, scalers
from adapter.policy.tree import Json, Path
from adapter.scaling.duration import format_duration

_DEFAULT_COOLDOWN: Final = 300.0

DEADLOCK: Final = Code(
    "LT303",
    Severity.ERROR,
    "a rollout that can never end",
    "With maxUnavailable 0 a new replica must run before an old one goes, and its GPUs must "
    "be free. Where quota or nodes have none left, the rollout waits for ever. So does one "
    "where both are 0. Of one replica, 25 % unavailable is none. `leadtime plan release` "
    "shows what would work.",
)
NO_SELECTOR: Final = Code(
    "LT304",
    Severity.ERROR,
    "a scale target whose /scale has no selector",
    "An HPA refuses to scale what has no `status.selector`. A custom resource gets one from "
    "`subresources.scale.labelSelectorPath` in its definition.",
)
HASTY_COOLDOWN: Final = Code(
    "LT305",
    Severity.ERROR,
    "replicas are given back sooner than they could be back",
    "A cooldown below the load time takes the last replicas away while the next wave's could "
    "not have been loaded; it may even remove the one that is loading because demand is "
    "unserved.",
)
BUDGET_BLOCKS: Final = Code(
    "LT306",
    Severity.WARNING,
    "a disruption budget that lets nobody go",
    "A PodDisruptionBudget that keeps as many as the minimum runs blocks every node drain at "
    "night, and cluster upgrades with it. Allow one: `maxUnavailable: 1`.",
)


def _deadlock(landscape: Landscape) -> Iterator[Finding]:
    for workload in landscape.of_kind(*WORKLOADS):
        where, gone, surge = _knobs(landscape, workload)
        if gone is None or surge is None:
            continue
        if gone == surge == 0:
            yield workload.finding(
                where,
                DEADLOCK,
                message=f"{workload.shown}: maxUnavailable and maxSurge are both 0: nothing can "
                "ever be replaced",
                fix="maxUnavailable: 1",
            )
            continue
        free, why = _free(landscape, workload)
        each = gpus_of(workload)
        if gone == 0 and each and free is not None and free < each:
            yield workload.finding(
                where,
                DEADLOCK,
                message=f"{workload.shown}: none may be missing, a new replica takes {each} GPUs, "
                f"and {free} are left ({why})",
                fix="maxUnavailable: 1, or room for one more replica",
            )


def _knobs(landscape: Landscape, workload: KubeObject) -> tuple[Path, int | None, int | None]:
    """Return where the strategy stands, and its two knobs in replicas as Kubernetes rounds.

    Percentages that both come to 0 let one go all the same; only 0 beside 0 is refused.
    """
    replicas = _runs(landscape, workload)
    if workload.kind == "LeaderWorkerSet":
        where: Path = ("spec", "rolloutStrategy", "rollingUpdateConfiguration")
        defaults: tuple[Json, Json] = (1, 0)
    elif workload.kind == "StatefulSet":
        return ("spec", "updateStrategy"), 1, 0
    else:
        where, defaults = ("spec", "strategy", "rollingUpdate"), ("25%", "25%")
        if workload.text("spec", "strategy", "type") == "Recreate":
            return where, replicas, 0
    said = workload.mapping(*where)
    knobs = said.get("maxUnavailable", defaults[0]), said.get("maxSurge", defaults[1])
    gone, surge = share(knobs[0], replicas, up=False), share(knobs[1], replicas, up=True)
    if gone == surge == 0 and not {str(knob) for knob in knobs} <= {"0", "0%"}:
        gone = 1
    return where, gone, surge


def _runs(landscape: Landscape, workload: KubeObject) -> int:
    """Return how many run at the least: those that are said, or its autoscaler's minimum."""
    return int(workload.number("spec", "replicas") or _least(landscape, workload) or 1)


def _free(landscape: Landscape, workload: KubeObject) -> tuple[int | None, str]:
    """Return the GPUs that are left while ``workload`` runs, and how that is known."""
    if landscape.free_gpus is not None:
        return landscape.free_gpus, "as told"
    runs = _runs(landscape, workload)
    for quota in landscape.of_kind("ResourceQuota"):
        hard = whole(str(quota.mapping("spec", "hard").get("requests.nvidia.com/gpu", "")))
        if hard is not None and together(quota, workload):
            return max(0, hard - runs * gpus_of(workload)), f"{quota.shown} allows {hard}"
    return None, ""


def _least(landscape: Landscape, workload: KubeObject) -> int | None:
    found = [least for one in landscape.scalers_of(workload) if (least := Scaler.of(one).least)]
    return max(found, default=None)


def _no_selector(landscape: Landscape) -> Iterator[Finding]:
    for definition in landscape.of_kind("CustomResourceDefinition"):
        kind = definition.text("spec", "names", "kind")
        if not _is_target(landscape, kind):
            continue
        for number in range(definition.count("spec", "versions")):
            where: Path = ("spec", "versions", number, "subresources")
            scale = definition.node(*where, "scale")
            if scale is None or definition.node(*where, "scale", "labelSelectorPath") is None:
                what = "has no /scale" if scale is None else "has a /scale without selector"
                yield definition.finding(
                    (*where, "scale"),
                    NO_SELECTOR,
                    message=f"{kind}, which is scaled here, {what}: an HPA refuses it",
                    fix="subresources.scale.labelSelectorPath: .status.selector",
                )


def _is_target(landscape: Landscape, kind: str) -> bool:
    policies = (p.policy.spec.target for p in landscape.policies)
    named = {target.kind for target in policies if target is not None}
    scaled = {
        one.text("spec", "scaleTargetRef", "kind")
        for one in landscape.of_kind("HorizontalPodAutoscaler", "ScaledObject")
    }
    return kind in named | scaled


def _hasty_cooldown(landscape: Landscape) -> Iterator[Finding]:
    for scaler in scalers(landscape):
        one, placed = scaler.object, landscape.policy_of(scaler.object)
        if one.kind != "ScaledObject" or scaler.least or placed is None:
            continue
        said = one.number("spec", "cooldownPeriod")
        cooldown = _DEFAULT_COOLDOWN if said is None else said
        load = placed.policy.spec.load_time.default
        if cooldown < load:
            absent = " (the default)" if said is None else ""
            yield one.finding(
                ("spec", "cooldownPeriod"),
                HASTY_COOLDOWN,
                message=f"{one.shown}: everything goes {cooldown:g} s{absent} after the last "
                f"request, and a replica takes {format_duration(load)} to load",
                fix="minReplicaCount: 1, and leave the way down to the policy",
            )


def _budget_blocks(landscape: Landscape) -> Iterator[Finding]:
    for budget in landscape.of_kind("PodDisruptionBudget"):
        for workload in landscape.of_kind(*WORKLOADS):
            if not _covers(budget, workload):
                continue
            runs = _least(landscape, workload) or _bound(landscape, workload)
            blocked = _blocked(budget, runs)
            if blocked:
                yield budget.finding(
                    ("spec", blocked),
                    BUDGET_BLOCKS,
                    message=f"{budget.shown}: of the {runs} replicas that {workload.shown} has at "
                    "the least, none may go: no node can be drained",
                    fix="maxUnavailable: 1, and at least 2 replicas",
                )


def _bound(landscape: Landscape, workload: KubeObject) -> int:
    placed = landscape.policy_for(workload)
    if placed is not None:
        return placed.policy.spec.replicas.min
    return int(workload.number("spec", "replicas") or 1)


def _blocked(budget: KubeObject, runs: int) -> str:
    """Return the key that forbids any disruption while ``runs`` replicas run; or empty."""
    gone = budget.value("spec", "maxUnavailable")
    if gone is not None:
        return "maxUnavailable" if share(gone, runs, up=True) == 0 else ""
    kept = share(budget.value("spec", "minAvailable"), runs, up=True)
    return "minAvailable" if kept is not None and kept >= runs else ""


def _covers(budget: KubeObject, workload: KubeObject) -> bool:
    wanted = budget.mapping("spec", "selector", "matchLabels")
    return (
        bool(wanted)
        and together(budget, workload)
        and any(
            wanted.items() <= workload.mapping(*template, "metadata", "labels").items()
            for template in templates_of(workload)
        )
    )


ROLLOUTS: Final = (
    AroundRule(DEADLOCK, _deadlock),
    AroundRule(NO_SELECTOR, _no_selector),
    AroundRule(HASTY_COOLDOWN, _hasty_cooldown),
    AroundRule(BUDGET_BLOCKS, _budget_blocks),
)
"""The family, by number."""
