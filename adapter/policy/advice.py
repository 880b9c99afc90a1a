"""What was probably meant by a value that does not fit, and why it does not."""

import difflib
import re
from typing import Final

from adapter.policy.scalars import YAML_1_1_BOOLEANS
from adapter.policy.schema import Schema, variants_of
from adapter.policy.tree import Node, Path, Scalar
from adapter.scaling.duration import PATTERN, format_duration

_UNITS: Final = {
    **dict.fromkeys(["w", "wk", "week", "weeks"], 604_800.0),
    **dict.fromkeys(["d", "day", "days"], 86_400.0),
    **dict.fromkeys(["h", "hr", "hrs", "hour", "hours"], 3600.0),
    **dict.fromkeys(["m", "min", "mins", "minute", "minutes"], 60.0),
    **dict.fromkeys(["s", "sec", "secs", "second", "seconds"], 1.0),
    **dict.fromkeys(["ms", "msec", "millis", "milliseconds"], 0.001),
}
_PART: Final = r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)\s*"
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_LONGEST_GUESS: Final = 99_999 * 3600.0

NO_SCALE_TO_ZERO: Final = (
    "scale to zero is not supported: an empty pool has no engine to read load from, "
    "so nothing would wake it"
)

Advice = tuple[str, str]
"""Why the value does not fit, and the value to write; either may be empty."""


def advice(path: Path, node: Node, schema: Schema) -> Advice:
    """Return why ``node`` does not fit ``schema`` and what to write; empty where unknown."""
    if not isinstance(node, Scalar):
        return "", ""
    text = node.text.strip()
    if path[-2:] == ("replicas", "min") and node.value == 0:
        return NO_SCALE_TO_ZERO, "1"
    for variant in variants_of(schema):
        given = _for_variant(text, node, variant)
        if given != ("", ""):
            return given
    return "", ""


def _for_variant(text: str, node: Scalar, schema: Schema) -> Advice:
    choices = [*schema.get("enum", ()), *filter(None, (schema.get("const"),))]
    if choices:
        return _choice(text, choices)
    match schema.get("type"):
        case "boolean":
            return _boolean(text)
        case "integer" | "number":
            return _number(text, node, schema)
        case "string":
            return _duration(text) if schema.get("pattern") == PATTERN else _text(text, node)
        case "array" if text:
            return "a list has brackets, or a dash before each item", f"[{text}]"
        case _:
            return "", ""


def _choice(text: str, choices: list[str]) -> Advice:
    near = difflib.get_close_matches(text.lower(), choices, n=1)
    return (f"did you mean {near[0]}?", near[0]) if near else ("", "")


def _boolean(text: str) -> Advice:
    word = text.lower()
    if word in {"true", "false"}:
        return "in quotes it is text", word
    if word in YAML_1_1_BOOLEANS:
        return "only true and false are read alike everywhere", str(YAML_1_1_BOOLEANS[word]).lower()
    return "", ""


def _duration(text: str) -> Advice:
    if _NUMBER.fullmatch(text):
        seconds = float(text)
        return "a bare number has no unit", format_duration(seconds) if seconds else ""
    if re.fullmatch(r"[0-9]+:[0-9]+(:[0-9]+)?", text):
        return "minutes and seconds are written 1m30s, hours 1h30m", ""
    parts = re.findall(_PART, text.lower()) if re.fullmatch(f"({_PART})+", text.lower()) else []
    if not parts or any(unit not in _UNITS for _, unit in parts):
        return "", ""
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds == 0:
        return "it has to be longer than nothing", ""
    because = "GEP-2257 knows h, m, s and ms, in whole numbers"
    return because, format_duration(seconds) if seconds < _LONGEST_GUESS else ""


def _text(text: str, node: Scalar) -> Advice:
    if isinstance(node.value, str) or not text:
        return "", ""
    kind = "a number"
    if isinstance(node.value, bool):
        kind = "a boolean"
    elif node.value is None:
        kind = "nothing"
    return f"without quotes it is {kind}, not text", f'"{text}"'


def _number(text: str, node: Scalar, schema: Schema) -> Advice:
    ratio = 1 in {schema.get("maximum"), schema.get("exclusiveMaximum")}
    bare = text.rstrip("%").rstrip().replace("_", "")
    if not _NUMBER.fullmatch(bare):
        return "", ""
    value = float(bare)
    if ratio and 1 < value <= 100 and _fits(value / 100, schema):  # noqa: PLR2004 - per cent
        return "a ratio, not per cent", f"{value / 100:g}"
    if not _fits(value, schema):
        return "", ""
    if isinstance(node.value, str):
        because = "in quotes it is text" if not node.plain else "digits only"
        return because, f"{value:g}"
    return "a whole number, without a decimal point", f"{value:g}"


def _fits(value: float, schema: Schema) -> bool:
    whole = schema.get("type") != "integer" or value.is_integer()
    above = value >= schema.get("minimum", value) and value > schema.get("exclusiveMinimum", -1)
    below = value <= schema.get("maximum", value) and value < schema.get(
        "exclusiveMaximum", float("inf")
    )
    return whole and above and below
