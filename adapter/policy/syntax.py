"""What is wrong with text that is not YAML, in words that name the cause."""

import re
from typing import Final

import yaml

from adapter.policy.codes import LIMITS, SYNTAX
from adapter.policy.finding import Finding
from adapter.policy.source_text import Place, SourceText

TEMPLATE_FIX: Final = "render it first, like: helm template CHART | leadtime lint -"

_UNPRINTABLE: Final = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)

_NO_COLON: Final = "could not find expected ':'"
_UNCLOSED: Final = (
    "the quote that opens here is never closed",
    "close it, or leave both quotes out",
)

_CAUSES: Final = (
    (
        "mapping values are not allowed",
        "a key cannot stand here: the line is indented too deep, or it has a second ': '",
        "align it with the keys of its section, or quote the value",
    ),
    (
        "did not find expected key",
        "the line is not aligned with the keys of its section",
        "indent it exactly like the keys above it",
    ),
    (
        "did not find expected '-' indicator",
        "the line is not aligned with the list above it",
        "indent it like the list's other lines, or like the key that the list belongs to",
    ),
    (
        _NO_COLON,
        "a key without a colon",
        "write KEY: VALUE, with a blank after the colon",
    ),
    (
        "did not find expected ',' or",
        "a list or section in brackets is not closed, or a comma is missing",
        "close the bracket that opens before this place",
    ),
    (
        "did not find expected node content",
        "a value is missing, or a bracket does not match",
        "check the brackets and commas before this place",
    ),
)
"""What libyaml says, what it means, and what to do."""


def syntax_finding(error: Exception, source: SourceText, first: int) -> tuple[Finding, int]:
    """Return the finding for ``error`` and the line, from 1, on which reading stopped.

    ``first`` is the line, from 0, on which the text that libyaml saw begins.
    """
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem_mark is None:
        return _unprintable(source, first)
    problem, stopped = error.problem or "", first + error.problem_mark.line + 1
    if "nesting" in problem:
        return _nested(source, first), stopped
    opened = error.context_mark
    quoted = "quoted scalar" in (error.context or "") and "unexpected" in problem
    mark = opened if opened is not None and (quoted or _NO_COLON in problem) else error.problem_mark
    place = Place(first + mark.line + 1, mark.column + 1)
    message, fix = _UNCLOSED if quoted else _cause(problem, source, place)
    return source.finding(place, SYNTAX, message=message, fix=fix), stopped


def _nested(source: SourceText, first: int) -> Finding:
    return source.finding(
        Place(first + 1, 1),
        LIMITS,
        message="brackets are nested without end",
        fix="close the brackets",
    )


def _cause(problem: str, source: SourceText, place: Place) -> tuple[str, str]:
    line = source.lines[min(place.line, len(source.lines)) - 1]
    if "{{" in line:
        return "{{ is a template, not YAML yet", TEMPLATE_FIX
    if re.match(r" *\t", line):
        return "a tab indents this line; YAML allows blanks only", "replace the tab with blanks"
    for said, message, fix in _CAUSES:
        if said in problem:
            return message, fix
    if "cannot start any token" in problem:
        character = line[place.column - 1 : place.column]
        return f"no value begins with {character} unless it is quoted", "put it in quotes"
    return f"this is not YAML: {problem}", "correct it, or quote the value"


def _unprintable(source: SourceText, first: int) -> tuple[Finding, int]:
    for number, line in enumerate(source.lines[first:], start=first + 1):
        found = _UNPRINTABLE.search(line)
        if found:
            place = Place(number, found.start() + 1)
            break
    else:
        place, found = Place(first + 1, 1), None
    what = f"U+{ord(found.group()):04X}" if found else "a control character"
    finding = source.finding(
        place, SYNTAX, message=f"{what} must not stand in YAML", fix="delete the character"
    )
    return finding, place.line
