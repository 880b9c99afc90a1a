"""How findings are printed: for people, for scripts, and for the tools that show them."""

import json
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from adapter import __version__
from adapter.policy.finding import Code, Finding, Severity

_WIDEST: Final = 120
_GUTTER: Final = 5
_COLOURS: Final = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.INFO: "1;36"}
_ELSEWHERE: Final = {Severity.ERROR: "error", Severity.WARNING: "warning"}


def render(
    findings: Sequence[Finding],
    form: str,
    *,
    codes: Iterable[Code],
    files: Sequence[str],
    colour: bool,
) -> str:
    """Return ``findings`` as ``text``, ``json``, ``sarif``, ``github`` or ``junit``.

    ``codes`` is every code there is, ``files`` every file that was read.
    """
    match form:
        case "json":
            return as_json(findings)
        case "sarif":
            return as_sarif(findings, codes)
        case "github":
            return as_github(findings)
        case "junit":
            return as_junit(findings, files)
        case _:
            return as_text(findings, colour=colour)


def as_text(findings: Iterable[Finding], *, colour: bool = False) -> str:
    """Return each finding with its line, a caret under the place, and the way out."""
    return "".join(_block(finding, colour) for finding in findings)


def as_json(findings: Iterable[Finding]) -> str:
    """Return the findings as a list of objects."""
    listed = [
        {
            "code": finding.code,
            "severity": finding.severity,
            "file": finding.file,
            "line": finding.line,
            "column": finding.column,
            "message": finding.sentence,
            "fix": finding.fix,
        }
        for finding in findings
    ]
    return json.dumps(listed, indent=2, ensure_ascii=False) + "\n"


def as_sarif(findings: Iterable[Finding], codes: Iterable[Code]) -> str:
    """Return SARIF 2.1.0, as code hosts read it; ``codes`` describes every code there is."""
    driver = {
        "name": "leadtime",
        "version": __version__,
        "rules": [_sarif_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(finding) for finding in findings],
    }
    document = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def as_github(findings: Iterable[Finding]) -> str:
    """Return workflow commands that GitHub Actions shows beside the lines."""
    return "".join(
        f"::{_ELSEWHERE.get(finding.severity, 'notice')} "
        f"file={_escaped(finding.file, property_=True)},line={finding.line},"
        f"col={finding.column},title={finding.code}::{_escaped(_sentence(finding))}\n"
        for finding in findings
    )


def as_junit(findings: Iterable[Finding], files: Sequence[str]) -> str:
    """Return JUnit XML with one case per file; only errors and warnings fail it."""
    by_file: dict[str, list[Finding]] = {file: [] for file in files}
    for finding in findings:
        by_file.setdefault(finding.file, []).append(finding)
    failed = sum(any(map(_counts, found)) for found in by_file.values())
    cases = "".join(_junit_case(file, found) for file, found in by_file.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuite name="leadtime lint" tests="{len(by_file)}" failures="{failed}">\n'
        f"{cases}</testsuite>\n"
    )


def _block(finding: Finding, colour: bool) -> str:  # noqa: FBT001 - private, two callers
    severity = str(finding.severity)
    if colour:
        severity = f"\x1b[{_COLOURS[finding.severity]}m{severity}\x1b[0m"
    head = f"{_place(finding)}: {severity} {finding.code}: {_printable(finding.message)}\n"
    fix = f"   fix: {_printable(finding.fix)}\n" if finding.fix else ""
    return head + _excerpt(finding) + fix


def _excerpt(finding: Finding) -> str:
    """Return the line and the caret; of a long line, the part around the place."""
    if not finding.excerpt.strip():
        return ""
    start = max(0, finding.column - 1 - _WIDEST // 2) if len(finding.excerpt) > _WIDEST else 0
    shown = _printable(finding.excerpt[start : start + _WIDEST])
    indent = finding.column - 1 - start
    carets = "^" * max(1, min(finding.span, _WIDEST - indent))
    note = f" {_printable(finding.note)}" if finding.note else ""
    return f"{finding.line:>{_GUTTER}} | {shown}\n{'':>{_GUTTER}} | {'':>{indent}}{carets}{note}\n"


def _place(finding: Finding) -> str:
    return f"{_printable(finding.file)}:{finding.line}:{finding.column}"


def _printable(text: str) -> str:
    """Return ``text`` without what could move a terminal's cursor, one column per character."""
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\ufffd" for char in text
    )


def _sentence(finding: Finding) -> str:
    fix = f" (fix: {finding.fix})" if finding.fix else ""
    return f"{finding.sentence}{fix}"


def _counts(finding: Finding) -> bool:
    return finding.severity is not Severity.INFO


def _sarif_rule(code: Code) -> dict[str, object]:
    return {
        "id": code.id,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.why},
        "defaultConfiguration": {"level": _ELSEWHERE.get(code.severity, "note")},
    }


def _sarif_result(finding: Finding) -> dict[str, object]:
    region = {
        "startLine": finding.line,
        "startColumn": finding.column,
        "endColumn": finding.column + finding.span,
    }
    place = {"artifactLocation": {"uri": quote(finding.file)}, "region": region}
    return {
        "ruleId": finding.code,
        "level": _ELSEWHERE.get(finding.severity, "note"),
        "message": {"text": _sentence(finding)},
        "locations": [{"physicalLocation": place}],
    }


def _escaped(text: str, *, property_: bool = False) -> str:
    """Return ``text`` as a workflow command carries it; a property also hides its separators."""
    for char in "%\r\n:," if property_ else "%\r\n":
        text = text.replace(char, f"%{ord(char):02X}")
    return text


def _junit_case(file: str, findings: Sequence[Finding]) -> str:
    failures = [finding for finding in findings if _counts(finding)]
    if not failures:
        return f"  <testcase name={quoteattr(_printable(file))}/>\n"
    bodies = "".join(
        f"    <failure type={quoteattr(finding.code)} message="
        f"{quoteattr(_printable(f'{_place(finding)}: {_sentence(finding)}'))}/>\n"
        for finding in failures
    )
    return f"  <testcase name={quoteattr(_printable(file))}>\n{bodies}  </testcase>\n"
