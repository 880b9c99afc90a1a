"""The fields in which two policies differ, defaults included."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.policy.document import Policy

ABSENT: Final = "-"
"""Stands for a field that the other policy has and this one has not."""


@dataclass(frozen=True, slots=True)
class Change:
    """One field, and what it is in each policy."""

    path: str
    """From the root of the document: ``spec.replicas.max``."""

    old: str
    new: str


def changes(old: Policy, new: Policy) -> tuple[Change, ...]:
    """Return what is not the same, in the order of the document.

    A default that one of them writes out is no difference: what runs is compared, not the text.
    """
    before, after = _flat(old), _flat(new)
    paths = dict.fromkeys((*before, *after))
    return tuple(
        Change(path, before.get(path, ABSENT), after.get(path, ABSENT))
        for path in paths
        if before.get(path) != after.get(path)
    )


def _flat(policy: Policy) -> dict[str, str]:
    return dict(_leaves(policy.model_dump(mode="json", by_alias=True), ""))


def _leaves(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield every field that has a value; a section that is left out has none."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, str):
        yield path, value
    elif value is not None:
        yield path, json.dumps(value, ensure_ascii=False)
