"""What came of a recording, told for people and for scripts."""

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from adapter.cli.backtesting.replaying import RECORDED, Pair, Replay
from adapter.cli.backtesting.text import moment
from adapter.simulator.report.chart import Series, Shape, line_chart
from adapter.simulator.report.page import Section, facts, page, paragraph, table
from adapter.simulator.report.scale import Axis, Kind

_SHOWN: Final = 12


def rendered(found: Replay, form: str) -> str:
    """Return the outcome as ``text``, ``json`` or ``csv``."""
    match form:
        case "json":
            return _as_json(found)
        case "csv":
            return _as_csv(found)
        case _:
            return "\n".join((*_text(found), "", f"note: {RECORDED}")) + "\n"


def _text(found: Replay) -> Iterator[str]:
    first, last = found.pairs[0], found.pairs[-1]
    sessions = "1 session" if found.sessions == 1 else f"{found.sessions} sessions"
    yield (
        f"{found.policy} on {found.name}: {len(found.pairs):,} decisions from {moment(first.at)} "
        f"to {moment(last.at)}, {sessions}"
    )
    yield verdict(found)
    if not found.differing:
        return
    one = found.differing[0]
    yield ""
    yield f"the first, {moment(one.at)}:"
    yield f"  recorded  {one.recorded}, because {one.recorded_because}"
    yield f"  now       {one.now}, because {one.now_because}"
    if found.miscounted:
        yield ""
        yield from _differences(found)


def verdict(found: Replay) -> str:
    """Return in one sentence whether the decisions are the recorded ones."""
    count = len(found.differing)
    if not count:
        return "every decision is the recorded one, byte for byte"
    recorded, now = found.hours
    return (
        f"{count:,} decisions DIFFER from the recorded ones, {len(found.miscounted):,} in the "
        f"desired count: {recorded:,.2f} replica-hours desired then, {now:,.2f} now"
    )


def _differences(found: Replay) -> Iterator[str]:
    yield "other counts, UTC:"
    for run in found.stretches[:_SHOWN]:
        yield (
            f"  {moment(run[0].at)} to {moment(run[-1].at)[-5:]}  {run[0].recorded:>4} recorded, "
            f"{run[0].now:>4} now: {run[0].now_because}"
        )
    more = len(found.stretches) - _SHOWN
    if more > 0:
        yield f"  and {more:,} more stretches"


def _as_json(found: Replay) -> str:
    recorded, now = found.hours
    document = {
        "policy": found.policy,
        "recording": found.name,
        "sessions": found.sessions,
        "decisions": len(found.pairs),
        "equal": not found.differing,
        "differing": len(found.differing),
        "differingInCount": len(found.miscounted),
        "recordedHours": recorded,
        "nowHours": now,
        "notes": [RECORDED],
        "differences": [_row(pair) for pair in found.differing],
    }
    return json.dumps(document, indent=2) + "\n"


def _row(pair: Pair) -> dict[str, str | int]:
    return {
        "at": _iso(pair.at),
        "recorded": pair.recorded,
        "now": pair.now,
        "recordedBecause": pair.recorded_because,
        "nowBecause": pair.now_because,
    }


def _as_csv(found: Replay) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(("at", "recorded", "now", "equal", "note"))
    note = RECORDED
    for pair in found.pairs:
        equal = str(pair.equal).lower()
        writer.writerow((_iso(pair.at), pair.recorded, pair.now, equal, note))
        note = ""
    return buffer.getvalue()


def as_html(found: Replay) -> str:
    """Return a page that stands alone: both counts over time, and where they differ."""
    recorded, now = found.hours
    chart = line_chart(
        [
            Series("recorded", [(p.at, float(p.recorded)) for p in found.pairs], Shape.STEP),
            Series("now", [(p.at, float(p.now)) for p in found.pairs], Shape.STEP, dashed=True),
        ],
        title="Desired replicas",
        x=Axis("time, UTC", Kind.TIME),
        y=Axis("replicas", least=0),
        description="Where there is one line, both counts are the same.",
    )
    rows = [
        (moment(run[0].at), moment(run[-1].at), f"{run[0].recorded}", f"{run[0].now}")
        for run in found.stretches
    ]
    header = ("from", "to", "recorded", "now")
    figures = facts(
        [
            ("decisions", f"{len(found.pairs):,}"),
            ("that differ", f"{len(found.differing):,}"),
            ("replica-hours desired then", f"{recorded:,.2f}"),
            ("now", f"{now:,.2f}"),
        ]
    )
    notes = paragraph(verdict(found)) + paragraph(RECORDED, note=True)
    others = table(header, rows) if rows else paragraph("No other count.")
    return page(
        f"{found.policy} on {found.name}",
        (
            Section("Summary", figures + notes),
            Section("Replicas", chart),
            Section("Other counts", others),
        ),
        foot="Made by leadtime backtest; it asks no server for anything.",
    )


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
