"""Rules over who sets the count, and whose number is asked for."""

from collections.abc import Iterator
from itertools import combinations
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.kinds import WORKLOADS
from adapter.policy.lint.rule import AroundRule
from adapter.policy.load import PlacedPolicy
from adapter.policy.objects import (
    KubeObject,
    Landscape,
    beside,
    nearest,
    referred,
    together,
)
from adapter.policy.scaler import METRIC, our_metrics
from adapter.policy.tree import Json, Path

TWO_OWNERS: Final = Code(
    "LT209",
    Severity.ERROR,
    "two owners of one count",
    "Two autoscalers on one target set the count in turns. So does `spec.replicas` in a "
    "manifest that GitOps applies again and again: leave it out, or let the tool ignore it "
    "(Argo CD: `ignoreDifferences` with jsonPointers `/spec/replicas`).",
)
SELECTION: Final = Code(
    "LT210",
    Severity.ERROR,
    "a selector that matches no policy, or several",
    "An HPA adds up every item that its selector matches, and none is an error. Select one "
    "policy by its name: `selector: {matchLabels: {policy: NAME}}`; in a ScaledObject, "
    "`metadata: {policy: NAME}`.",
)


def _two_owners(landscape: Landscape) -> Iterator[Finding]:
    owners = landscape.of_kind("HorizontalPodAutoscaler", "ScaledObject")
    for first, second in combinations(owners, 2):
        same = referred(first) == referred(second) and referred(first)[1]
        if same and together(first, second) and not _made_by_keda(first, second):
            kind, name = referred(second)
            line = first.finding((), TWO_OWNERS, message="").line
            yield second.finding(
                ("spec", "scaleTargetRef", "name"),
                TWO_OWNERS,
                message=f"{second.shown} and {first.shown} ({first.source.file}:{line}) both "
                f"scale {kind}/{name}",
                fix="keep one of the two",
            )
    for workload in landscape.of_kind(*WORKLOADS):
        scalers = landscape.scalers_of(workload)
        placed = landscape.policy_for(workload)
        said = workload.number("spec", "replicas")
        if said is None or not (scalers or placed is not None):
            continue
        if workload.text("metadata", "uid"):
            continue  # a cluster's answer, which always says how many there are
        by = scalers[0].shown if scalers else f"policy {placed.policy.metadata.name}"  # type: ignore[union-attr]
        yield workload.finding(
            ("spec", "replicas"),
            TWO_OWNERS,
            message=f"{workload.shown} says replicas {said:g} and is scaled by {by}: every apply "
            "sets it back",
            fix="remove spec.replicas, or let GitOps ignore /spec/replicas",
        )


def _made_by_keda(first: KubeObject, second: KubeObject) -> bool:
    """Return whether one is the HPA that KEDA makes for the other."""
    for one, other in ((first, second), (second, first)):
        if one.kind == "ScaledObject" and other.kind == "HorizontalPodAutoscaler":
            named = one.text("spec", "advanced", "horizontalPodAutoscalerConfig", "name")
            if other.name == (named or f"keda-hpa-{one.name}"):
                return True
    return False


def _selection(landscape: Landscape) -> Iterator[Finding]:
    for one in landscape.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        for path in our_metrics(one):
            if one.kind == "HorizontalPodAutoscaler":
                yield from _by_selector(landscape, one, path)
            elif one.text(*path, "type").startswith("external"):
                yield from _by_name(landscape, one, path)


def _by_selector(landscape: Landscape, one: KubeObject, path: Path) -> Iterator[Finding]:
    where: Path = (*path, "external", "metric", "selector")
    labels = one.mapping(*where, "matchLabels")
    expressions = one.count(*where, "matchExpressions")
    if not labels and not expressions:
        yield one.finding(
            where,
            SELECTION,
            message=f"{one.shown} asks for {METRIC} of every policy in its namespace",
            note="an HPA adds them up",
            fix="selector: {matchLabels: {policy: NAME}}",
        )
        return
    if "policy" in labels:
        yield from _unknown(landscape, one, (*where, "matchLabels", "policy"), labels["policy"])
    elif not expressions:
        found = [p for p in _near(landscape, one) if labels.items() <= _labels(p).items()]
        if landscape.policies and len(found) != 1:
            yield one.finding(
                (*where, "matchLabels"),
                SELECTION,
                message=f"{one.shown}: its selector matches {len(found) or 'no'} policies",
                fix="matchLabels: {policy: NAME}",
            )


def _by_name(landscape: Landscape, one: KubeObject, path: Path) -> Iterator[Finding]:
    where: Path = (*path, "metadata", "policy")
    if one.node(*where) is None:
        yield one.finding(
            (*path, "metadata"),
            SELECTION,
            message=f"{one.shown}: the trigger names no policy",
            fix="metadata: {policy: NAME}",
        )
    else:
        yield from _unknown(landscape, one, where, one.text(*where))


def _unknown(landscape: Landscape, one: KubeObject, where: Path, name: Json) -> Iterator[Finding]:
    known = [placed.policy.metadata.name for placed in _near(landscape, one)]
    if landscape.policies and name not in known:
        yield one.finding(
            where,
            SELECTION,
            message=f"{one.shown}: no policy {name} in its namespace{nearest(str(name), known)}",
            fix=f"one of {', '.join(sorted(set(known)))}" if known else "add the policy",
        )


def _labels(placed: PlacedPolicy) -> dict[str, str | None]:
    """Return what an item of this policy can be selected by."""
    return {**placed.policy.metadata.labels, "model": placed.policy.spec.model}


def _near(landscape: Landscape, one: KubeObject) -> tuple[PlacedPolicy, ...]:
    return tuple(placed for placed in landscape.policies if beside(placed, one))


OWNERSHIP: Final = (
    AroundRule(TWO_OWNERS, _two_owners),
    AroundRule(SELECTION, _selection),
)
"""The family, by number."""
