"""The text of a file to policies, or to everything that is wrong with it, in one run."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from pydantic import ValidationError

from adapter.policy.codes import NOTHING_HERE, READ_DIFFERENTLY, SAME_NAME, WRONG_KIND
from adapter.policy.document import API_VERSION, KIND, Policy
from adapter.policy.expected import dotted, listed
from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.kinds import KINDS
from adapter.policy.parse import MAX_FINDINGS, Document, parse
from adapter.policy.scalars import YAML_1_1_BOOLEANS
from adapter.policy.source_text import Place, SourceText, unreadable
from adapter.policy.tree import Items, Keys, Node, Path, Scalar, node_at, plain, value_place
from adapter.policy.wording import findings_of

_GROUP: Final = API_VERSION.partition("/")[0]


@dataclass(frozen=True, slots=True)
class PlacedPolicy:
    """A policy beside the text it was read from, so that a finding can point into it."""

    policy: Policy
    root: Keys
    source: SourceText

    @property
    def interval_path(self) -> str:
        """Return where the interval stands, whichever source it is."""
        source = self.policy.spec.source
        kinds = ("pods", "prometheus", "static")
        return next(f"source.{kind}.interval" for kind in kinds if getattr(source, kind))

    def says(self, path: str) -> bool:
        """Return whether the file itself sets ``path``, like ``scaleDown.delay`` under spec."""
        return node_at(self.root, _spec_path(path)) is not None

    def finding(
        self, path: str, code: Code, *, message: str, fix: str = "", note: str = ""
    ) -> Finding:
        """Return a finding at the value of ``path`` under spec, or at what is nearest to it."""
        parts = _spec_path(path)
        while node_at(self.root, parts) is None:
            parts = parts[:-1]
        place = value_place(self.root, parts)
        return self.source.finding(place, code, message=message, fix=fix, note=note)


def read_policies(text: str, file: str) -> tuple[tuple[PlacedPolicy, ...], tuple[Finding, ...]]:
    """Return the policies in ``text`` with their places, and what is wrong with it, sorted.

    A policy with an error is left out; documents of other kinds are passed over. Never raises,
    whatever the text.
    """
    refused = unreadable(text, file)
    if refused is not None:
        return (), (refused,)
    source = SourceText.of(text, file)
    placed: list[PlacedPolicy] = []
    findings: list[Finding] = []
    others: list[str] = []
    for document in parse(source):
        other = _kind_of_other(document.root)
        if other is not None:
            others += [other, *_kinds_inside(document.root)]
            continue
        policy, found = _read(document, source)
        findings.extend(found)
        placed.extend([policy] if policy else [])
    if not placed and not findings and not KINDS & set(others):
        findings.append(_nothing_here(others, source))
    return tuple(placed), tuple(sorted(dict.fromkeys(findings)))


def read_files(
    files: Mapping[str, bytes],
) -> tuple[tuple[PlacedPolicy, ...], tuple[Finding, ...]]:
    """Return the policies of several files that are loaded together, and all that is wrong."""
    placed: list[PlacedPolicy] = []
    findings: list[Finding] = []
    for file, data in files.items():
        policies, found = read_policies(data.decode("utf-8", errors="replace"), file)
        placed.extend(policies)
        findings.extend(found)
    findings.extend(check_together(placed))
    return tuple(placed), tuple(sorted(findings))


def check_together(policies: Iterable[PlacedPolicy]) -> tuple[Finding, ...]:
    """Return what is wrong between policies, over all the files that are loaded together."""
    first: dict[tuple[str, str], PlacedPolicy] = {}
    findings = []
    for placed in policies:
        metadata = placed.policy.metadata
        other = first.setdefault((metadata.namespace, metadata.name), placed)
        if other is not placed:
            findings.append(_same_name(placed, other))
    return tuple(sorted(findings))


def _kind_of_other(root: Node | None) -> str | None:
    """Return what the document is if it is none of ours, or None if it is, or is nothing."""
    if root is None or (isinstance(root, Scalar) and root.value is None):
        return None
    if not isinstance(root, Keys):
        return "a document that is no section"
    version, kind = (_text(root, key) for key in ("apiVersion", "kind"))
    if kind == KIND or version.partition("/")[0] == _GROUP or _holds_policies(root):
        return None
    if not version and (_resembles(kind) or node_at(root, ("spec", "source")) is not None):
        return None
    return kind or "a document without a kind"


def _kinds_inside(root: Node | None) -> list[str]:
    """Return the kinds in a List that ``objects`` reads: a file of these is not empty."""
    items = node_at(root, ("items",)) if isinstance(root, Keys) else None
    inside = items.items if isinstance(items, Items) else ()
    return [kind for item in inside if (kind := _text(item, "kind")) in KINDS]


def _resembles(kind: str) -> bool:
    return bool(difflib.get_close_matches(kind.lower(), [KIND.lower()], cutoff=0.85))


def _holds_policies(root: Keys) -> bool:
    """Return whether this is what ``kubectl get scalingpolicies -o yaml`` prints."""
    items = node_at(root, ("items",))
    inside = items.items if isinstance(items, Items) else ()
    kinds = {_text(item, "kind") for item in inside}
    return _text(root, "kind").endswith("List") and KIND in kinds


def _text(root: Node, key: str) -> str:
    node = root.entry(key) if isinstance(root, Keys) else None
    return node.value.text if node is not None and isinstance(node.value, Scalar) else ""


def _read(
    document: Document, source: SourceText
) -> tuple[PlacedPolicy | None, tuple[Finding, ...]]:
    root, findings = document.root, document.findings
    if not isinstance(root, Keys):
        return None, findings
    if _holds_policies(root):
        return None, (*findings, _policies_in_a_list(root, source))
    try:
        # Strict, and as JSON: what the API server accepts, neither more nor less.
        policy = Policy.model_validate_json(
            json.dumps(plain(root)), strict=True, by_alias=True, by_name=False
        )
    except ValidationError as error:
        return None, (*findings, *islice(findings_of(error, root, source), MAX_FINDINGS))
    if findings:
        return None, findings
    return PlacedPolicy(policy, root, source), tuple(_read_differently(root, source))


def _read_differently(node: Node, source: SourceText, path: Path = ()) -> Iterator[Finding]:
    """Yield the words without quotes that are text here and a boolean for kubectl."""
    if isinstance(node, Keys):
        for entry in node.entries:
            yield from _read_differently(entry.value, source, (*path, entry.key.text))
    elif isinstance(node, Items):
        for position, item in enumerate(node.items):
            yield from _read_differently(item, source, (*path, position))
    elif node.plain and node.text in YAML_1_1_BOOLEANS:
        truth = str(YAML_1_1_BOOLEANS[node.text]).lower()
        yield source.finding(
            node.place,
            READ_DIFFERENTLY,
            message=f"{dotted(path)}: without quotes kubectl reads {node.text} as {truth}",
            fix=f'{path[-1]}: "{node.text}"' if isinstance(path[-1], str) else f'"{node.text}"',
        )


def _policies_in_a_list(root: Keys, source: SourceText) -> Finding:
    return source.finding(
        value_place(root, ("kind",)),
        WRONG_KIND,
        message="the policies stand in a list, which is not read",
        fix="write each as a document of its own, parted by ---",
    )


def _same_name(placed: PlacedPolicy, first: PlacedPolicy) -> Finding:
    name = ("metadata", "name")
    other = value_place(first.root, name)
    metadata = placed.policy.metadata
    return placed.source.finding(
        value_place(placed.root, name),
        SAME_NAME,
        message=f"policy {metadata.namespace}/{metadata.name} stands twice, first at "
        f"{first.source.file}:{other.line}:{other.column}",
        fix="rename one, or give it another namespace",
    )


def _nothing_here(others: list[str], source: SourceText) -> Finding:
    if not others:
        return source.finding(
            Place(1, 1),
            NOTHING_HERE,
            message="the file is empty: it holds no document at all",
            fix=f"write a document of kind {KIND}, or remove the file",
        )
    kinds = listed(sorted(set(others)), "and")
    return source.finding(
        Place(1, 1),
        NOTHING_HERE,
        message=f"no {KIND} in the file, only {kinds}; nothing was checked",
        severity=Severity.INFO,
    )


def _spec_path(path: str) -> Path:
    return ("spec", *path.split("."))
