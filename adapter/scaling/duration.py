"""Durations as people write them: ``90s``, ``5m``, ``1h30m`` (the grammar of GEP-2257)."""

import re
from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, PlainSerializer, WithJsonSchema

from adapter.fleet.units import Seconds, Timestamp

PATTERN: Final = r"^([0-9]{1,5}(h|m|s|ms)){1,4}$"
"""GEP-2257: up to four numbers with a unit each; no days, no fractions, no bare numbers."""

_TITLE: Final = "a duration like 90s, 5m or 1h30m"
_UNIT_SECONDS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_duration(text: object) -> Seconds:
    """Return ``text`` in seconds.

    Raises:
        ValueError: not a duration; the message says how to write it.
    """
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise ValueError(f"{text!r} is not a duration; write it like 90s, 5m or 1h30m")
    if isinstance(text, int | float):
        raise ValueError(f"{text} has no unit; write {text:g}s, or in minutes like 5m")
    if not re.fullmatch(PATTERN, text):
        raise ValueError(f"{text!r} is not a duration; {_hint(text)}")
    parts = re.findall(r"([0-9]+)(h|ms|m|s)", text)
    return Seconds(sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts))


def format_duration(seconds: float) -> str:
    """Return ``seconds`` as a duration of the same grammar, rounded to whole milliseconds."""
    millis = round(seconds * 1000)
    parts = []
    for unit, size in (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)):
        number, millis = divmod(millis, size)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"


def clock_time(at: Timestamp) -> str:
    """Return the time of day in UTC, to be laid beside a log: ``14:02:10Z``."""
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%SZ")


def _hint(text: str) -> str:
    if re.fullmatch(r"\d+(\.\d+)?d.*", text):
        return "days are not in the grammar (GEP-2257); write hours, like 24h or 336h"
    if re.fullmatch(r"\d*\.\d+(h|m|s|ms)", text):
        return "fractions are not in the grammar (GEP-2257); write 1h30m for 1.5h"
    if re.fullmatch(r"\d+", text):
        return f"it has no unit; write {text}s, or in minutes like 5m"
    return "write it like 90s, 5m or 1h30m (GEP-2257: h, m, s, ms)"


def _validate(value: object) -> float:
    """Accept what a policy says and what the code already parsed."""
    return value if isinstance(value, ParsedDuration) else ParsedDuration(parse_duration(value))


class ParsedDuration(float):
    """A duration that has been read; defaults in the code are written as one."""


def default_duration(text: str) -> Seconds:
    """Return ``text`` for use as a field's default."""
    return Seconds(ParsedDuration(parse_duration(text)))


Duration = Annotated[
    Seconds,
    BeforeValidator(_validate),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"title": _TITLE, "type": "string", "pattern": PATTERN}),
]
"""A field that is written ``5m`` and read as seconds."""

PositiveDuration = Annotated[
    Seconds,
    Field(gt=0),
    BeforeValidator(_validate),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema(
        {
            "title": f"{_TITLE}, above 0",
            "type": "string",
            "pattern": PATTERN,
            "not": {"pattern": r"^(0+(h|m|s|ms))+$"},
        }
    ),
]
"""The same where zero would mean nothing: an interval, a window, an objective."""
