"""What a manifest says of its fleet: replicas, rollout strategy, GPUs, drain, cold start."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

import yaml

from adapter.policy.document import KIND
from adapter.policy.objects import whole
from adapter.scaling.duration import parse_duration

GRACE_SECONDS: Final = 30
"""``terminationGracePeriodSeconds`` where a pod says nothing."""

_GPU: Final = ("nvidia.com/gpu", "amd.com/gpu")


class ManifestError(ValueError):
    """A manifest cannot be read; says where and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleTarget:
    """What is known of a fleet; None is unknown."""

    replicas: int | None = None
    max_unavailable: str | None = None
    max_surge: str | None = None
    gpus_per_replica: int | None = None
    """Of all pods of a group, for a LeaderWorkerSet."""

    drain: float | None = None
    """Seconds: the grace period, which is what a drain may take."""

    cold_start: float | None = None
    min_ready: float = 0.0
    """Seconds that a new pod must be ready before it counts."""

    def over(self, other: "ScaleTarget") -> "ScaleTarget":
        """Return this with what ``other`` knows and this does not, or knows better."""
        known = {
            field.name: value
            for field in fields(other)
            if (value := getattr(other, field.name)) != field.default
        }
        return ScaleTarget(**{**{f.name: getattr(self, f.name) for f in fields(self)}, **known})


def read_target(text: str, file: str) -> ScaleTarget:
    """Return what the documents in ``text`` say, whichever kinds they are.

    Raises:
        ManifestError: not YAML, or nothing in it that tells of a fleet.
    """
    try:
        found = [one for document in yaml.safe_load_all(text) for one in _objects(document)]
    except RecursionError as error:
        raise ManifestError(f"{file}: nested too deeply") from error
    except (yaml.YAMLError, ValueError) as error:  # a date or number that is none, the second
        raise ManifestError(f"{file}: {' '.join(str(error).split())}") from error
    targets = [one for one in found if one["kind"] != KIND]
    if len(targets) > 1:
        names = " and ".join(map(_shown, targets))
        raise ManifestError(f"{file}: {names} in it; a release is of one: give its manifest alone")
    try:
        known = [_READERS[one["kind"]](one) for one in found]
    except ManifestError as error:
        raise ManifestError(f"{file}: {error}") from error
    if not known:
        kinds = ", ".join(sorted(_READERS))
        raise ManifestError(f"{file}: no object of kind {kinds} in it")
    merged = ScaleTarget()
    for one in known:
        merged = merged.over(one)
    return merged


def _objects(document: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the objects in a document that tell of a fleet; those in a List by themselves."""
    if not isinstance(document, Mapping):
        return
    kind = str(document.get("kind"))
    if kind in _READERS:
        yield document
    elif kind.endswith("List") and isinstance(document.get("items"), list):
        for one in document["items"]:
            yield from _objects(one)


def _shown(document: Mapping[str, Any]) -> str:
    return f"{document['kind']}/{_at(document, 'metadata').get('name', '?')}"


def _deployment(document: Mapping[str, Any]) -> ScaleTarget:
    spec = _at(document, "spec")
    update = _at(spec, "strategy", "rollingUpdate")
    recreate = _at(spec, "strategy").get("type") == "Recreate"
    replicas = _number(spec, "replicas", 1)
    return ScaleTarget(
        replicas=replicas,
        max_unavailable=str(replicas if recreate else update.get("maxUnavailable", "25%")),
        max_surge=str(0 if recreate else update.get("maxSurge", "25%")),
        min_ready=_number(spec, "minReadySeconds", 0),
        gpus_per_replica=_gpus(_at(spec, "template", "spec")),
        drain=_drain(_at(spec, "template", "spec")),
    )


def _stateful_set(document: Mapping[str, Any]) -> ScaleTarget:
    spec = _at(document, "spec")
    update = _at(spec, "updateStrategy", "rollingUpdate")
    return ScaleTarget(
        replicas=_number(spec, "replicas", 1),
        max_unavailable=str(update.get("maxUnavailable", 1)),
        max_surge="0",
        min_ready=_number(spec, "minReadySeconds", 0),
        gpus_per_replica=_gpus(_at(spec, "template", "spec")),
        drain=_drain(_at(spec, "template", "spec")),
    )


def _leader_worker_set(document: Mapping[str, Any]) -> ScaleTarget:
    spec = _at(document, "spec")
    update = _at(spec, "rolloutStrategy", "rollingUpdateConfiguration")
    group = _at(spec, "leaderWorkerTemplate")
    worker = _at(group, "workerTemplate", "spec")
    leader = _at(group, "leaderTemplate", "spec") or worker
    size = _number(group, "size", 1)
    one, other = _gpus(leader), _gpus(worker)
    gpus = (one or 0) + (size - 1) * (other or 0)
    return ScaleTarget(
        replicas=_number(spec, "replicas", 1),
        max_unavailable=str(update.get("maxUnavailable", 1)),
        max_surge=str(update.get("maxSurge", 0)),
        gpus_per_replica=gpus or None,
        drain=max(_drain(leader), _drain(worker)),
    )


def _policy(document: Mapping[str, Any]) -> ScaleTarget:
    said = _at(document, "spec", "loadTime").get("default", "4m")
    try:
        return ScaleTarget(cold_start=parse_duration(said))
    except ValueError as error:
        raise ManifestError(f"spec.loadTime.default: {error}") from error


_READERS: Final = {
    "Deployment": _deployment,
    "StatefulSet": _stateful_set,
    "LeaderWorkerSet": _leader_worker_set,
    KIND: _policy,
}


def _number(spec: Mapping[str, Any], key: str, default: int) -> int:
    value = spec.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ManifestError(f"spec.{key} is {value!r}: not a whole number")
    return value


def _at(document: Mapping[str, Any], *path: str) -> Mapping[str, Any]:
    """Return the mapping at ``path``; empty where there is none."""
    place: Any = document
    for part in path:
        place = place.get(part) if isinstance(place, Mapping) else None
    return place if isinstance(place, Mapping) else {}


def _gpus(pod: Mapping[str, Any]) -> int | None:
    """Return the GPUs of a pod; None where it asks for none."""
    found = sum(_limit(container) for container in _containers(pod))
    return found or None


def _containers(pod: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    containers = pod.get("containers")
    listed = containers if isinstance(containers, list) else []
    return [one for one in listed if isinstance(one, Mapping)]


def _limit(container: Mapping[str, Any]) -> int:
    limits = _at(container, "resources", "limits")
    asked = (whole(str(limits.get(name, ""))) for name in _GPU)
    return sum(number for number in asked if number is not None)


def _drain(pod: Mapping[str, Any]) -> float:
    return float(_number(pod, "terminationGracePeriodSeconds", GRACE_SECONDS))
