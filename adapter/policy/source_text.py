"""The text of one file, and findings that point into it."""

import re
from dataclasses import dataclass
from typing import Final

from adapter.policy.codes import ENCODING, LIMITS
from adapter.policy.finding import Code, Finding, PolicyError, Severity

MAX_BYTES: Final = 4 * 1024 * 1024
"""Four times what a ConfigMap can hold: large bundles pass, an accident does not."""

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
    """The text of one file with its name."""

    file: str
    text: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, text: str, file: str) -> "SourceText":
        """Return ``text`` ready to be pointed into; a byte order mark in front is dropped."""
        text = text.removeprefix("\ufeff")
        return cls(file, text, tuple(_LINE_BREAK.split(text)))

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
        """Return a finding at ``place``, as severe as its code unless said otherwise."""
        line = min(place.line, len(self.lines))
        excerpt = self.lines[line - 1]
        column = min(place.column, len(excerpt) + 1)
        return Finding(
            file=self.file,
            line=line,
            column=column,
            code=code.id,
            severity=severity or code.severity,
            message=message,
            fix=fix,
            span=max(1, min(place.span, len(excerpt) + 1 - column)),
            excerpt=excerpt,
            note=note,
        )


def decode(data: bytes, file: str) -> str:
    """Return the text of a policy file; ``data`` may be cut one byte past ``MAX_BYTES``.

    Raises:
        PolicyError: too large, or not UTF-8; the one finding names the byte and its place.
    """
    if len(data) > MAX_BYTES:
        raise PolicyError((too_large(file),))
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PolicyError((_undecodable(data, error.start, file),)) from error


def too_large(file: str) -> Finding:
    """Return why a file is not read at all."""
    return SourceText.of("", file).finding(
        Place(1, 1),
        LIMITS,
        message=f"the file is larger than the {MAX_BYTES // 1024 // 1024} MiB that are read",
        fix="put the policies into a file of their own",
    )


def _undecodable(data: bytes, offset: int, file: str) -> Finding:
    source = SourceText.of(data[:offset].decode("utf-8"), file)
    place = Place(len(source.lines), len(source.lines[-1]) + 1)
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        found = "the file is UTF-16"
    else:
        found = f"byte 0x{data[offset]:02x} at offset {offset} is not UTF-8"
    return source.finding(
        place,
        ENCODING,
        message=f"{found}; policies are read as UTF-8",
        fix="save the file as UTF-8",
    )
