"""The whole file: one HTML page with its styles inside, and the tables in it."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape

from adapter.simulator.report.style import CSS


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page."""

    title: str
    body: str
    """HTML as ``figure``, ``table`` and ``paragraph`` make it: what comes from outside is escaped
    there."""


def page(title: str, sections: Sequence[Section], *, lead: str = "", foot: str = "") -> str:
    """Return a page that stands alone: its policy forbids every request and every script."""
    digest = b64encode(sha256(CSS.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    parts = "".join(
        f"<section><h2>{escape(one.title)}</h2>{one.body}</section>" for one in sections
    )
    said = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    end = f"<footer><p>{escape(foot)}</p></footer>" if foot else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>{CSS}</style>\n</head>\n"
        f"<body>\n<main><h1>{escape(title)}</h1>{said}{parts}</main>{end}\n</body>\n</html>\n"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """Return a table whose first column names its rows; it scrolls where it is too wide."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        f"{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>"
        for first, *rest in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    name = escape(caption or "table")
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table>{said}'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Return names with a figure each, the figure in large letters."""
    return "".join(
        (
            '<dl class="facts">',
            *(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs),
            "</dl>",
        )
    )


def paragraph(text: str, *, note: bool = False) -> str:
    """Return a paragraph; a note is set apart, for what must not be overlooked."""
    kind = ' class="note" role="note"' if note else ""
    return f"<p{kind}>{escape(text)}</p>"


def details(summary: str, body: str) -> str:
    """Return ``body`` behind a summary that mouse and keyboard open."""
    return f"<details><summary>{escape(summary)}</summary>{body}</details>"
