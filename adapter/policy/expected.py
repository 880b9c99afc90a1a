"""What a schema asks for and what a file says, in words."""

import json
from typing import Final

from adapter.policy.address import masked
from adapter.policy.schema import Schema, variants_of
from adapter.policy.tree import Items, Keys, Node, Path

_LONGEST: Final = 60
_BOUNDS: Final = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)


def dotted(path: Path) -> str:
    """Return ``path`` as people say it: ``scaleDown.delay``, ``source.static.urls[1]``."""
    shown = path[1:] if len(path) > 1 and path[0] == "spec" else path
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in shown)
    return text.removeprefix(".")


def expected(schema: Schema) -> str:
    """Return what ``schema`` asks for: ``auto or a duration like 90s, 5m or 1h30m``."""
    return " or ".join(_one(variant) for variant in variants_of(schema))


def found(node: Node) -> str:
    """Return what stands in the file: ``80``, ``"2"``, ``empty``, ``a list``."""
    if isinstance(node, Keys):
        return "a section"
    if isinstance(node, Items):
        return "a list"
    text = masked(node.text if node.plain else json.dumps(node.text, ensure_ascii=False))
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}…"
    return " ".join(text.split()) or "empty"


def listed(words: list[str], last: str) -> str:
    """Return ``words`` with commas, and ``last`` before the last one."""
    return f" {last} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _one(schema: Schema) -> str:
    for key in ("const", "title"):
        if key in schema:
            return str(schema[key])
    if "enum" in schema:
        return listed(list(schema["enum"]), "or")
    return _of_type(schema)


def _of_type(schema: Schema) -> str:
    match schema.get("type"):
        case "object":
            keys = schema.get("required") or list(schema.get("properties", {}))
            return f"a section with {listed(keys, 'and')}" if keys else "a section of KEY: text"
        case "array":
            return f"a list, each item {expected(schema['items'])}"
        case "integer" | "number":
            return _number(schema)
        case "boolean":
            return "true or false"
        case _:
            return "text"


def _number(schema: Schema) -> str:
    bounds = [f"{words} {schema[key]}" for key, words in _BOUNDS if key in schema]
    noun = "a whole number" if schema["type"] == "integer" else "a number"
    return " ".join(filter(None, (noun, " and ".join(bounds))))
