"""pydantic's errors as findings: in plain words, at the place in the file, with the way out."""

import difflib
import json
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from adapter.policy.advice import advice
from adapter.policy.codes import CONTRADICTION, MISSING_KEY, UNKNOWN_KEY, WRONG_KIND, WRONG_VALUE
from adapter.policy.expected import dotted, expected, found, listed
from adapter.policy.finding import Finding
from adapter.policy.schema import every_path, schema_at, section_of
from adapter.policy.source_text import SourceText
from adapter.policy.tree import Keys, Path, Scalar, existing, key_place, node_at, value_place
from adapter.scaling.section import ContradictionError

_WORDS_OF_OTHERS: Final = {
    "minReplicas": "replicas.min",
    "maxReplicas": "replicas.max",
    "minReplicaCount": "replicas.min",
    "maxReplicaCount": "replicas.max",
    "scaleTargetRef": "target",
    "pollingInterval": "source.pods.interval",
    "cooldownPeriod": "scaleDown.delay",
    "stabilizationWindowSeconds": "scaleDown.delay",
    "scaleDownDelay": "scaleDown.delay",
    "behavior": "scaleUp and scaleDown",
    "metrics": "signals",
    "triggers": "signals",
}
"""Keys of the HPA and of KEDA, and where the same is said here."""

_OF_THE_API_SERVER: Final = frozenset(
    {
        "status",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
    }
)


def findings_of(error: ValidationError, root: Keys, source: SourceText) -> Iterator[Finding]:
    """Yield a finding for each thing that is wrong.

    Of a value that may be one of several kinds pydantic counts an error for each kind: the same
    finding then comes several times.
    """
    for problem in error.errors(include_url=False):
        path = existing(root, problem["loc"])
        if problem["type"] == "missing":
            yield _missing(root, path, key=str(problem["loc"][-1]), source=source)
        elif problem["type"] == "extra_forbidden":
            yield _unknown(root, path, source)
        elif isinstance(cause := problem.get("ctx", {}).get("error"), ContradictionError):
            yield _contradiction(root, path, cause=cause, source=source)
        else:
            yield _wrong(root, path, source)


def _missing(root: Keys, path: Path, *, key: str, source: SourceText) -> Finding:
    schema = schema_at((*path, key))
    like = schema["examples"][0] if "examples" in schema else schema["const"]
    value = like if isinstance(like, str) else json.dumps(like).replace('"', "")
    return source.finding(
        key_place(root, path),
        MISSING_KEY,
        message=f"{dotted(path) or 'the document'} has no {key}, which is required: "
        f"{expected(schema)}",
        fix=f"add {key}: {value}",
    )


def _unknown(root: Keys, path: Path, source: SourceText) -> Finding:
    section, key = path[:-1], str(path[-1])
    known = list(section_of(schema_at(section)).get("properties", {}))
    where = f" in {dotted(section)}" if section else ""
    meant, fix = _meant(key, known)
    node, name = node_at(root, path), fix.rstrip(":")
    if fix.endswith(":") and node_at(root, (*section, name)) is not None:
        meant, fix = f" beside {name}", f"leave it out, or write what it says under {name}"
    if fix.endswith(":") and isinstance(node, Scalar) and node.text:
        fix = f"{fix} {node.text}"
    return source.finding(
        key_place(root, path),
        UNKNOWN_KEY,
        message=f"unknown key {key}{where}{meant}",
        fix=fix or f"write {listed(known, 'or')}, or leave it out",
    )


def _meant(key: str, known: list[str]) -> tuple[str, str]:
    """Return how the sentence about an unknown key goes on, and what to do."""
    if key in _OF_THE_API_SERVER:
        return ", which the API server writes", "leave it out"
    same = [name for name in known if _letters(name) == _letters(key)]
    near = difflib.get_close_matches(to_camel(key), known, n=1)
    if same or (near and key not in _WORDS_OF_OTHERS):
        name = (same or near)[0]
        return f", did you mean {name}?", f"{name}:"
    if key in _WORDS_OF_OTHERS:
        return ", the word of an HPA or of KEDA", f"write it as {_WORDS_OF_OTHERS[key]}"
    elsewhere = [path[:-1] for path in every_path() if path[-1] == to_camel(key)]
    if elsewhere:
        sections = " and ".join(dotted(section) or "the document" for section in elsewhere)
        return f", which is a key of {sections}", f"move it to {sections}"
    return "", ""


def _letters(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _contradiction(
    root: Keys, path: Path, *, cause: ContradictionError, source: SourceText
) -> Finding:
    at = (*path, cause.at)
    place = value_place(root, at if node_at(root, at) is not None else path)
    sentence, _, fix = str(cause).partition(": ")
    return source.finding(place, CONTRADICTION, message=f"{dotted(path)}: {sentence}", fix=fix)


def _wrong(root: Keys, path: Path, source: SourceText) -> Finding:
    node, schema = node_at(root, path) or root, schema_at(path)
    because, value = advice(path, node, schema)
    name = path[-1] if path and isinstance(path[-1], str) else ""
    return source.finding(
        value_place(root, path),
        WRONG_KIND if path in {("apiVersion",), ("kind",)} else WRONG_VALUE,
        message=f"{dotted(path)} is {found(node)}, expected {expected(schema)}",
        fix=(f"{name}: {value}" if name else value) if value else "",
        note=because,
    )
