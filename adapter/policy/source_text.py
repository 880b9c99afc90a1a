"""The text of one file, and findings that point into it."""

import re
from dataclasses import dataclass
from typing import Final

from adapter.policy.address import masked
from adapter.policy.codes import ENCODING, LIMITS
from adapter.policy.finding import Code, Finding, Severity

MAX_BYTES: Final = 4 * 1024 * 1024
"""Four times what a ConfigMap can hold: large bundles pass, an accident does not."""

MAX_SENTENCE: Final = 400
"""The longest of our own sentences has half as many characters."""

_LINE_BREAK: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What the YAML reader counts as one line."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: line and column from 1, and how many characters it takes."""

    line: int
    column: int
    span: int = 1


@dataclass(frozen=True, slots=True)
class SourceText:
    """The lines of one file with its name."""

    file: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str, file: str) -> "SourceText":
        """Return ``text`` ready to be pointed into; a byte order mark in front is dropped."""
        return cls(file, tuple(_LINE_BREAK.split(text.removeprefix("\ufeff"))))

    def finding(
        self,
        place: Place,
        code: Code,
        *,
        message: str,
        fix: str = "",
        note: str = "",
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding at ``place``, as severe as its code unless said otherwise.

        What the file itself put into the message is cut where it would fill a screen, and the
        credentials of addresses are starred out wherever they stand.
        """
        line = min(place.line, len(self.lines))
        excerpt = self.lines[line - 1]
        column = min(place.column, len(excerpt) + 1)
        return Finding(
            file=self.file,
            line=line,
            column=column,
            code=code.id,
            severity=severity or code.severity,
            message=_shortened(masked(message)),
            fix=_shortened(masked(fix)),
            span=max(1, min(place.span, len(excerpt) + 1 - column)),
            excerpt=masked(excerpt),
            note=note,
        )


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_SENTENCE else f"{text[:MAX_SENTENCE]}…"


def unreadable(text: str, file: str) -> Finding | None:
    """Return why ``text`` is not read at all, or None.

    Bytes that are not UTF-8 arrive as U+FFFD, in which no policy has business.
    """
    if len(text) > MAX_BYTES:
        return SourceText.of("", file).finding(
            Place(1, 1),
            LIMITS,
            message=f"the file is larger than the {MAX_BYTES // 1024 // 1024} MiB that are read",
            fix="put the policies into a file of their own",
        )
    if "\ufffd" in text:
        return _undecodable(text, file)
    return None


def _undecodable(text: str, file: str) -> Finding:
    source = SourceText.of(text, file)
    number = next(n for n, line in enumerate(source.lines, start=1) if "\ufffd" in line)
    place = Place(number, source.lines[number - 1].index("\ufffd") + 1)
    utf_16 = text.startswith("\ufffd\ufffd")
    return source.finding(
        place,
        ENCODING,
        message="the file is UTF-16, and policies are read as UTF-8"
        if utf_16
        else "what stands here is not UTF-8",
        fix="save the file as UTF-8",
    )
