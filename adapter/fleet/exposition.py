"""Prometheus and OpenMetrics text to samples, of the few families that are wanted.

An engine's body is some 600 lines of which 50 matter. A pattern over the raw bytes picks those
lines; what such a line says is the ``prometheus-client`` parser's word, not ours. The part before
the value (name and labels) is the same in every scrape, so the parser's answer for it is kept and
a line costs one ``float()`` from the second scrape on. Everything unusual - timestamps, exemplars,
odd spacing - goes to the parser whole.

Names are read as they stand in the text: the parser alone appends ``_total`` to counters that lack
it, which Triton's do.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

REMEMBERED_SERIES: Final = 32_768
"""Names with labels whose parsed form is kept: 50 a replica, shared by replicas of one model."""

LONGEST_LINE: Final = 4_096
"""Bytes of a wanted line; Ray's, the longest seen, have 500. It bounds what is remembered, and the
library takes 0.2 s for a label of 50 kB."""


class ExpositionError(ValueError):
    """The text is not an exposition: says which line cannot be read."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A name with labels; of ``select`` two equal ones are the same object."""

    name: str
    labels: Mapping[str, str]


class Sample(NamedTuple):
    """One value of one series."""

    series: Series
    value: float


def select(body: bytes, names: frozenset[str]) -> list[Sample]:
    """Return the samples of exactly the series in ``names``; those of one in the text's order.

    A line of any other series is never looked at, be it well-formed or not.

    Raises:
        ExpositionError: a line of a wanted series cannot be read.
    """
    return [_sample(line) for line in _lines(body, names)]


def parse(body: bytes) -> list[Sample]:
    """Return every sample, as the library alone reads it: the measure of ``select``.

    Raises:
        ExpositionError: a line cannot be read.
    """
    try:
        families = text_string_to_metric_families(body.decode())
        return [
            Sample(Series(sample.name, sample.labels), float(sample.value))
            for family in families
            for sample in family.samples
        ]
    except (ValueError, OverflowError) as error:
        raise ExpositionError(str(error)) from error


def cut_short(body: bytes) -> bool:
    """Return whether the text stops in the middle of a line.

    A last line that is whole but lacks its line feed passes: hand-kept dumps look like that.
    """
    last = body[body.rfind(b"\n") + 1 :].strip()
    if not last or last == b"# EOF":
        return False
    if last.startswith(b"#"):
        return True
    try:
        _parse_line(last)
    except ExpositionError:
        return True
    return False


def has_samples(body: bytes) -> bool:
    """Return whether any of the first lines is a sample or a TYPE or HELP comment."""
    for line in body[:LONGEST_LINE].splitlines():
        if line.startswith((b"# TYPE ", b"# HELP ")):
            return True
        try:
            _parse_line(line)
        except ExpositionError:
            continue
        return True
    return False


def _lines(body: bytes, names: frozenset[str]) -> list[bytes]:
    end = body.find(b"\n")
    first = b"\n" + (body if end < 0 else body[:end])
    lines: list[bytes] = []
    for text in (first, body):
        for pattern in _patterns(names):
            lines += pattern.findall(text)
        lines += _odd_lines(text, names)
    return lines


def _odd_lines(text: bytes, names: frozenset[str]) -> list[bytes]:
    """Return the wanted lines that begin with a blank or with a quoted name; hardly ever any."""
    odd = [line.strip() for line in _ODD.findall(text)]
    samples = [line for line in odd if line and not line.startswith(b"#")]
    return [line for line in samples if _parse_line(line).series.name in names]


_ODD: Final = re.compile(rb"\n[ \t{][^\n]*")


@lru_cache(maxsize=64)
def _patterns(names: frozenset[str]) -> tuple[re.Pattern[bytes], ...]:
    """Return one pattern per first word of a name: a literal start is what makes a search fast."""
    words: dict[str, list[str]] = {}
    for name in sorted(names):
        words.setdefault(re.split("(?<=[:_])", name, maxsplit=1)[0], []).append(name)
    return tuple(
        re.compile(rb"\n(" + _any_of(group).encode() + rb"(?![a-zA-Z0-9_:])[^\n]*)")
        for group in words.values()
    )


def _any_of(words: Iterable[str]) -> str:
    """Return a pattern for any of ``words`` that reads each character of a text only once."""
    tails: dict[str, list[str]] = {}
    for word in words:
        tails.setdefault(word[:1], []).append(word[1:])
    ends_here = tails.pop("", None) is not None
    branches = [re.escape(head) + _any_of(rest) for head, rest in tails.items()]
    if len(branches) == 1 and not ends_here:
        return branches[0]
    return f"(?:{'|'.join(branches)}){'?' if ends_here else ''}" if branches else ""


def _sample(line: bytes) -> Sample:
    key, _, value = line.rpartition(b" ")
    if len(line) <= LONGEST_LINE and (key.endswith(b"}") or b" " not in key):
        series = _series(key)
        if series is not None and b"_" not in value:
            try:
                return Sample(series, float(value))
            except ValueError:
                pass
    return _parse_line(line)


@lru_cache(maxsize=REMEMBERED_SERIES)
def _series(key: bytes) -> Series | None:
    """Return what ``key`` names, or None unless it is a name with labels and nothing more."""
    try:
        (family,) = text_string_to_metric_families(f"{key.decode()} 0")
        (sample,) = family.samples
    except ValueError:
        return None
    whole = sample.value == 0 and sample.timestamp is None
    return _the_one(Series(sample.name, sample.labels)) if whole else None


def _the_one(series: Series) -> Series:
    return _interned(series.name, tuple(sorted(series.labels.items())))


@lru_cache(maxsize=REMEMBERED_SERIES)
def _interned(name: str, labels: tuple[tuple[str, str], ...]) -> Series:
    """Return the one object for a series, however its labels are spaced or ordered."""
    return Series(name, dict(labels))


def _parse_line(line: bytes) -> Sample:
    try:
        if len(line) > LONGEST_LINE:
            raise ExpositionError(f"{len(line)} bytes in one line")
        (sample,) = parse(line)
    except ValueError as error:
        shown = line[:120].decode(errors="replace").strip()
        raise ExpositionError(f"cannot read the line {shown!r} ({error})") from error
    return Sample(_the_one(sample.series), sample.value)
