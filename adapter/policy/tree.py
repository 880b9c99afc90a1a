"""A YAML document as a tree that still knows where each value stands."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapter.policy.source_text import Place

Path = tuple[str | int, ...]
"""Keys and list positions from the document's root, as written."""


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: text, number, boolean or nothing."""

    place: Place
    text: str
    """As written, without quotes."""

    value: str | int | float | bool | None
    """As read: YAML 1.2's core schema, which JSON and the API server share."""

    plain: bool = True
    """False when it is quoted or a block, hence text whatever it looks like."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    place: Place
    items: "tuple[Node, ...]"
    size: int
    """How many values it stands for, aliases written out."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a section with its value."""

    key: Scalar
    value: "Node"


@dataclass(frozen=True, slots=True)
class Keys:
    """A mapping; keys are unique, in the order in which they stand."""

    place: Place
    entries: tuple[Entry, ...]
    size: int
    """How many values it stands for, aliases written out."""

    def entry(self, key: str | int) -> Entry | None:
        """Return the entry of ``key``, or None."""
        return next((entry for entry in self.entries if entry.key.text == key), None)


Node = Scalar | Items | Keys
Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


def plain(node: Node) -> Json:
    """Return what ``node`` says, without the places."""
    if isinstance(node, Keys):
        return {entry.key.text: plain(entry.value) for entry in node.entries}
    if isinstance(node, Items):
        return [plain(item) for item in node.items]
    return node.value


def existing(root: Keys, path: Sequence[str | int]) -> Path:
    """Return the parts of ``path`` that are in the document.

    pydantic puts the names of union members between the keys; they are not in the document.
    """
    node: Node = root
    found: list[str | int] = []
    for part in path:
        below = _below(node, part)
        if below is not None:
            node = below
            found.append(part)
    return tuple(found)


def node_at(root: Keys, path: Path) -> Node | None:
    """Return the value at ``path``, or None."""
    node: Node | None = root
    for part in path:
        node = None if node is None else _below(node, part)
    return node


def key_place(root: Keys, path: Path) -> Place:
    """Return where the last key of ``path`` stands; of a list's item, where the item stands."""
    parent = node_at(root, path[:-1])
    entry = parent.entry(path[-1]) if path and isinstance(parent, Keys) else None
    if entry is not None:
        return entry.key.place
    node = node_at(root, path)
    return root.place if node is None else node.place


def value_place(root: Keys, path: Path) -> Place:
    """Return where the value at ``path`` stands; of a section or of nothing, its key."""
    node = node_at(root, path)
    if isinstance(node, Scalar) and (node.text or not node.plain):
        return node.place
    return key_place(root, path)


def _below(node: Node, part: str | int) -> Node | None:
    if isinstance(node, Keys):
        entry = node.entry(part)
        return None if entry is None else entry.value
    if isinstance(node, Items) and isinstance(part, int) and part < len(node.items):
        return node.items[part]
    return None
