"""The Kubernetes objects around a policy, as manifests say them, with the place of every value."""

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.policy.finding import Code, Finding
from adapter.policy.kinds import KINDS, WORKLOADS
from adapter.policy.load import PlacedPolicy
from adapter.policy.parse import parse
from adapter.policy.source_text import SourceText, unreadable
from adapter.policy.tree import Items, Json, Keys, Node, Path, Scalar, node_at, plain, value_place

_MAX_INT32: Final = 2**31 - 1
"""The largest number in a field that rules read; a comparison with it also keeps NaN out."""

_ENGINE_WORDS: Final = ("vllm", "sglang", "tritonserver", "text-generation-inference", "trtllm")

_BEFORE_ENGINES: Final = re.compile("router|gateway|proxy|exporter")
"""In the name of an image, without its registry and owner."""

_BEFORE: Final = re.compile(r"launch_router|\b(?:vllm|sglang|sgl)-router\b")
"""In a word of a command line."""


@dataclass(frozen=True, slots=True)
class KubeObject:
    """One object of a manifest."""

    root: Keys
    source: SourceText
    at: Path = ()
    """Where it stands in its document: empty, or its place in a List."""

    @property
    def kind(self) -> str:
        """Return its kind."""
        return self.text("kind")

    @property
    def name(self) -> str:
        """Return its name; empty where a template has yet to fill it in."""
        return self.text("metadata", "name")

    @property
    def namespace(self) -> str:
        """Return its namespace; empty where the manifest leaves it to ``kubectl -n``."""
        return self.text("metadata", "namespace")

    @property
    def shown(self) -> str:
        """Return it as people name it: ``Deployment/llama``."""
        return f"{self.kind}/{self.name}"

    def node(self, *path: str | int) -> Node | None:
        """Return what stands at ``path``, or None."""
        return node_at(self.root, (*self.at, *path))

    def value(self, *path: str | int) -> Json:
        """Return what stands at ``path`` without its places; None where there is nothing."""
        node = self.node(*path)
        return None if node is None else plain(node)

    def text(self, *path: str | int) -> str:
        """Return the text of the scalar at ``path``; empty where there is none."""
        node = self.node(*path)
        return node.text if isinstance(node, Scalar) else ""

    def number(self, *path: str | int) -> float | None:
        """Return the number at ``path``; None where there is none, or none that a cluster takes."""
        value = self.value(*path)
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        return float(value) if abs(value) <= _MAX_INT32 else None

    def mapping(self, *path: str | int) -> Mapping[str, Json]:
        """Return the mapping at ``path``; empty where there is none."""
        value = self.value(*path)
        return value if isinstance(value, dict) else {}

    def count(self, *path: str | int) -> int:
        """Return how many items the list at ``path`` has; 0 where there is none."""
        node = self.node(*path)
        return len(node.items) if isinstance(node, Items) else 0

    def finding(
        self, path: Path, code: Code, *, message: str, fix: str = "", note: str = ""
    ) -> Finding:
        """Return a finding at the value of ``path``, or at what is nearest to it."""
        parts = (*self.at, *path)
        while parts and node_at(self.root, parts) is None:
            parts = parts[:-1]
        place = value_place(self.root, parts or ("kind",))
        return self.source.finding(place, code, message=message, fix=fix, note=note)


@dataclass(frozen=True, slots=True)
class Landscape:
    """Everything that was read together: policies, and the objects around them."""

    policies: tuple[PlacedPolicy, ...]
    objects: tuple[KubeObject, ...]
    free_gpus: int | None = None
    """GPUs that the nodes have left; None: not told."""

    def of_kind(self, *kinds: str) -> tuple[KubeObject, ...]:
        """Return the objects of any of ``kinds``, in the order in which they stand."""
        return tuple(one for one in self.objects if one.kind in kinds)

    def target_of(self, scaler: KubeObject) -> KubeObject | None:
        """Return the workload that an HPA or ScaledObject scales, if it was read."""
        kind, name = referred(scaler)
        return next(
            (
                one
                for one in self.of_kind(*WORKLOADS)
                if (one.kind, one.name) == (kind, name) and together(one, scaler)
            ),
            None,
        )

    def policy_of(self, scaler: KubeObject) -> PlacedPolicy | None:
        """Return the policy for what ``scaler`` scales, if there is just one."""
        reference = referred(scaler)
        found = [
            one
            for one in self.policies
            if one.policy.spec.target is not None
            and (one.policy.spec.target.kind, one.policy.spec.target.name) == reference
            and beside(one, scaler)
        ]
        return found[0] if len(found) == 1 else None

    def policy_for(self, workload: KubeObject) -> PlacedPolicy | None:
        """Return the policy whose target is ``workload``."""
        for one in self.policies:
            target = one.policy.spec.target
            named = target is not None and (target.kind, target.name) == (
                workload.kind,
                workload.name,
            )
            if named and beside(one, workload):
                return one
        return None

    def scalers_of(self, workload: KubeObject) -> tuple[KubeObject, ...]:
        """Return the HPAs and ScaledObjects that scale ``workload``."""
        return tuple(
            one
            for one in self.of_kind("HorizontalPodAutoscaler", "ScaledObject")
            if self.target_of(one) is workload
        )


def read_objects(text: str, file: str) -> tuple[KubeObject, ...]:
    """Return the objects in ``text`` that rules read; those in a List by themselves.

    What is not YAML is left to the reader of policies, which says so.
    """
    if unreadable(text, file) is not None:
        return ()
    source = SourceText.of(text, file)
    found: list[KubeObject] = []
    for document in parse(source):
        if isinstance(document.root, Keys):
            found += _objects(document.root, source)
    return tuple(found)


def referred(scaler: KubeObject) -> tuple[str, str]:
    """Return kind and name of what an HPA or ScaledObject scales; KEDA's kind has a default."""
    kind = scaler.text("spec", "scaleTargetRef", "kind")
    if not kind and scaler.kind == "ScaledObject":
        kind = "Deployment"
    return kind, scaler.text("spec", "scaleTargetRef", "name")


def together(one: KubeObject, other: KubeObject) -> bool:
    """Return whether two objects may stand in one namespace: where one is left out, they may."""
    return not one.namespace or not other.namespace or one.namespace == other.namespace


def beside(placed: PlacedPolicy, other: KubeObject) -> bool:
    """Return whether a policy and an object may stand in one namespace."""
    said = node_at(placed.root, ("metadata", "namespace")) is not None
    return not said or not other.namespace or placed.policy.metadata.namespace == other.namespace


def templates_of(workload: KubeObject) -> tuple[tuple[str, ...], ...]:
    """Return the paths of its pod templates; of a group, the leader's first where it has one."""
    if workload.kind == "Pod":
        return ((),)
    if workload.kind != "LeaderWorkerSet":
        return (("spec", "template"),)
    names = ("leaderTemplate", "workerTemplate")
    paths = (("spec", "leaderWorkerTemplate", name) for name in names)
    return tuple(path for path in paths if workload.node(*path) is not None)


def pod_of(workload: KubeObject) -> tuple[str, ...]:
    """Return the path of the pod spec that is served from; of a group, its leader's."""
    return (*next(iter(templates_of(workload)), ()), "spec")


def containers(workload: KubeObject, template: tuple[str, ...] | None = None) -> Iterator[Path]:
    """Yield the path of every container of the pod that is served from, or of ``template``'s."""
    pod = pod_of(workload) if template is None else (*template, "spec")
    path = (*pod, "containers")
    for number in range(workload.count(*path)):
        yield (*path, number)


def words_of(workload: KubeObject, container: Path) -> tuple[str, ...]:
    """Return the command line of a container, shell scripts split into words."""
    found: list[str] = []
    for key in ("command", "args"):
        value = workload.value(*container, key)
        listed = value if isinstance(value, list) else [value]
        found += [word for one in listed if one is not None for word in str(one).split()]
    return tuple(found)


def flag(words: Iterable[str], name: str) -> str | None:
    """Return the value of ``--name value`` or ``--name=value``; None where it is not given."""
    line = list(words)
    for number, word in enumerate(line):
        head, equals, value = word.partition("=")
        if head == f"--{name}":
            return value if equals else line[number + 1] if number + 1 < len(line) else ""
    return None


def engine_of(workload: KubeObject) -> str:
    """Return which inference engine ``workload`` seems to run; empty when none is seen."""
    return next((one for path in containers(workload) if (one := engine_in(workload, path))), "")


def engine_in(workload: KubeObject, container: Path) -> str:
    """Return which inference engine a container seems to run; empty when none is seen.

    What stands in front of engines has their names in its image and its options; it is none.
    """
    if in_front(workload, container):
        return ""
    image = workload.text(*container, "image").lower()
    words = [word.lower() for word in words_of(workload, container)]
    pairs = zip(["", *words], words, strict=False)
    run = [word for before, word in pairs if not _is_option(word) and not _takes(before)]
    said = " ".join((image, *run))
    return next((word for word in _ENGINE_WORDS if word in said), "")


def in_front(workload: KubeObject, container: Path) -> bool:
    """Return whether a container passes requests on to engines: a router, a gateway."""
    image = workload.text(*container, "image").lower().rpartition("/")[2]
    words = (word.lower() for word in words_of(workload, container))
    return _BEFORE_ENGINES.search(image) is not None or any(map(_BEFORE.search, words))


def _is_option(word: str) -> bool:
    return word.startswith("-") or "=" in word


def _takes(word: str) -> bool:
    """Return whether the next word may be this one's value."""
    return word.startswith("--") and word != "--" and "=" not in word


def gpus_of(workload: KubeObject) -> int:
    """Return the GPUs of one replica; 0 where none are asked for."""
    size = 1
    if workload.kind == "LeaderWorkerSet":
        size = int(workload.number("spec", "leaderWorkerTemplate", "size") or 1)
    pods = [
        sum(_gpus(workload, path) for path in containers(workload, template))
        for template in templates_of(workload)
    ]
    # a group is one leader and size - 1 workers, all from one template where no other is given
    return sum(pods[:1]) + (size - 1) * sum(pods[-1:])


def share(value: Json, of: int, *, up: bool) -> int | None:
    """Return ``3`` or ``25%`` in replicas; None where it is neither."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    number = whole(str(value).removesuffix("%"))
    if number is None:
        return None
    part = number * of / 100 if str(value).endswith("%") else number
    return math.ceil(part) if up else math.floor(part)


def whole(text: str) -> int | None:
    """Return a plain count such as ``16``; None for anything else, ``²`` among it."""
    return int(text) if re.fullmatch(r"[0-9]{1,9}", text) else None


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean …?`` for a name that is not known; empty without a near one."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _objects(root: Keys, source: SourceText) -> Iterator[KubeObject]:
    one = KubeObject(root, source)
    if one.kind in KINDS:
        yield one
    elif one.kind.endswith("List"):
        for number in range(one.count("items")):
            inside = KubeObject(root, source, ("items", number))
            if inside.kind in KINDS:
                yield inside


def _gpus(workload: KubeObject, container: Path) -> int:
    limits = workload.mapping(*container, "resources", "limits")
    asked = (whole(str(limits.get(name, ""))) for name in ("nvidia.com/gpu", "amd.com/gpu"))
    return sum(number for number in asked if number is not None)
