"""The difference for a person, a script, or a pull request."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from adapter.cli.comparing.fields import Change
from adapter.cli.comparing.history import GOOD, History

Row = tuple[str, str, str, str]
"""What, its figure before, after, and by how much it changed."""


def rendered(found: Sequence[Change], history: History | None, form: str) -> str:
    """Return the difference as ``text``, ``json`` or ``markdown``."""
    match form:
        case "json":
            return _as_json(found, history)
        case "markdown":
            return _lines(_markdown(found, history))
        case _:
            return _lines(_text(found, history))


def _lines(lines: Iterator[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _as_json(found: Sequence[Change], history: History | None) -> str:
    document = {
        "equal": not found,
        "fields": [asdict(change) for change in found],
        "history": None
        if history is None
        else {
            "name": history.name,
            "old": asdict(history.old),
            "new": asdict(history.new),
            "notes": list(history.notes),
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _text(found: Sequence[Change], history: History | None) -> Iterator[str]:
    if not found:
        yield "the policies say the same, defaults included"
    for change in found:
        yield f"{change.path}: {change.old} → {change.new}"
    if history is None:
        return
    rows = [("", "old", "new", "change"), *_rows(history)]
    wide = [max(len(row[place]) for row in rows) for place in range(4)]
    yield ""
    yield f"on {history.name}:"
    for what, *figures in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(figures, wide[1:], strict=True)]
        yield "  ".join((f"{what:<{wide[0]}}", *cells)).rstrip()
    yield ""
    yield from (f"note: {note}" for note in history.notes)


def _markdown(found: Sequence[Change], history: History | None) -> Iterator[str]:
    if not found:
        yield "The policies say the same, defaults included."
    else:
        yield from _table(("field", "old", "new"), [_coded(change) for change in found])
    if history is None:
        return
    yield ""
    yield f"On {_cell(history.name)}: {headline(history)}"
    yield ""
    yield from _table(("", "old", "new", "change"), _rows(history))
    yield ""
    yield from (f"> {note}" for note in history.notes)


def headline(history: History) -> str:
    """Return the change in one line, as it goes into a pull request's title."""
    return ", ".join(f"{change} {what}" for what, _, _, change in _rows(history))


def _rows(history: History) -> Iterator[Row]:
    old, new = history.old, history.new
    yield _row("replica-hours", old.hours, new.hours, places=1)
    if old.late_minutes is not None and new.late_minutes is not None:
        name = f"SLO minutes (under {GOOD:.0%} in time)"
        yield _row(name, old.late_minutes, new.late_minutes)
    yield _row("most replicas", old.most, new.most)
    yield _row("flips", old.flips, new.flips)


def _row(what: str, old: float, new: float, *, places: int = 0) -> Row:
    change = round(new, places) - round(old, places)
    told = f"{change:+,.{places}f}" if change else "±0"
    return what, f"{old:,.{places}f}", f"{new:,.{places}f}", told


def _table(head: Sequence[str], rows: Iterator[Row] | Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _coded(change: Change) -> tuple[str, str, str]:
    return f"`{_cell(change.path)}`", f"`{_cell(change.old)}`", f"`{_cell(change.new)}`"


def _cell(text: str) -> str:
    """Return ``text`` as a cell of a table carries it: a bar or a backtick would end it."""
    return " ".join(text.split()).replace("|", "\\|").replace("`", "'")
