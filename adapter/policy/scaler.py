"""An HPA, or a ScaledObject as the HPA that KEDA makes of it: the same facts, other paths."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from adapter.policy.objects import KubeObject, Landscape
from adapter.policy.tree import Path
from adapter.scaling.hpa import DEFAULT_TOLERANCE

METRIC: Final = "leadtime-desired-replicas"

_DEFAULT_MAX: Final = 100
"""``maxReplicaCount`` of a ScaledObject that says nothing."""

_LARGEST_TOLERANCE: Final = 10.0
"""Beyond it a fleet is never scaled up anyway; the search for a step that is would not end."""


@dataclass(frozen=True, slots=True)
class Scaler:
    """An HPA, or a ScaledObject as the HPA that KEDA makes of it."""

    object: KubeObject
    behaviour: Path
    maximum: Path
    minimum: Path

    @classmethod
    def of(cls, one: KubeObject) -> "Scaler":
        """Return the paths under which ``one`` says the same things."""
        if one.kind == "ScaledObject":
            behaviour = ("spec", "advanced", "horizontalPodAutoscalerConfig", "behavior")
            spec = ("spec", "maxReplicaCount"), ("spec", "minReplicaCount")
            return cls(one, behaviour, *spec)
        return cls(one, ("spec", "behavior"), ("spec", "maxReplicas"), ("spec", "minReplicas"))

    @property
    def most(self) -> int | None:
        """Return the maximum; None where a template has yet to say it."""
        default = _DEFAULT_MAX if self.object.kind == "ScaledObject" else None
        number = self.object.number(*self.maximum)
        absent = self.object.node(*self.maximum) is None
        return default if absent else None if number is None else int(number)

    @property
    def least(self) -> int | None:
        """Return the minimum that is said; None where it is not."""
        number = self.object.number(*self.minimum)
        return None if number is None else int(number)

    def tolerance(self, way: str) -> float:
        """Return the tolerance of ``scaleUp`` or ``scaleDown``."""
        said = self.object.text(*self.behaviour, way, "tolerance")
        milli = milli_of(said)
        return DEFAULT_TOLERANCE if milli is None else min(milli / 1000, _LARGEST_TOLERANCE)


def scalers(landscape: Landscape) -> Iterator[Scaler]:
    """Yield those that read our number."""
    for one in landscape.of_kind("HorizontalPodAutoscaler", "ScaledObject"):
        if our_metrics(one):
            yield Scaler.of(one)


def our_metrics(one: KubeObject) -> tuple[Path, ...]:
    """Return the paths of the metrics or triggers that ask for our number."""
    if one.kind == "ScaledObject":
        paths: list[Path] = [("spec", "triggers", n) for n in range(one.count("spec", "triggers"))]
        return tuple(path for path in paths if _our_trigger(one, path))
    paths = [("spec", "metrics", n) for n in range(one.count("spec", "metrics"))]
    name = ("external", "metric", "name")
    return tuple(path for path in paths if one.text(*path, *name).lower() == METRIC)


def made_by_keda(one: KubeObject) -> bool:
    """Return whether an HPA is one that KEDA made: its ScaledObject is what people write."""
    owners = range(one.count("metadata", "ownerReferences"))
    owned = (one.text("metadata", "ownerReferences", n, "kind") == "ScaledObject" for n in owners)
    return one.kind == "HorizontalPodAutoscaler" and (
        one.name.startswith("keda-hpa-") or any(owned)
    )


def milli_of(text: str) -> int | None:
    """Return a quantity such as ``1``, ``1000m`` or ``0.5`` in milli; None where it is none."""
    found = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)(m|k)?", text.strip())
    if found is None:
        return None
    return round(float(found[1]) * {None: 1000, "m": 1, "k": 1_000_000}[found[2]])


def _our_trigger(one: KubeObject, path: Path) -> bool:
    """Return whether a trigger is ours: an external one with a policy, our address, our query."""
    kind, metadata = one.text(*path, "type"), one.mapping(*path, "metadata")
    said = " ".join(str(value) for value in metadata.values()).lower()
    if kind in {"external", "external-push"}:
        return "policy" in metadata or "leadtime" in said
    return kind in {"metrics-api", "prometheus"} and (
        "leadtime" in said or re.search(r"/namespaces/[^/]+/policies/", said) is not None
    )
