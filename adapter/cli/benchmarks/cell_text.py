"""What came of a scaling benchmark, for scripts and for people."""

import itertools
import json
from collections.abc import Iterator
from typing import Final

from adapter.simulator.matrix import Cell, Outcome


def as_json(outcomes: dict[Cell, Outcome]) -> str:
    """Return one object, whose ``cells`` are in the order of play."""
    return json.dumps({"cells": [_row(*each) for each in outcomes.items()]}, indent=2)


def _row(cell: Cell, outcome: Outcome) -> dict[str, str | int | float | None]:
    course = cell.course
    return {
        "trace": course.trace,
        "engine": course.engine,
        "loadTimeSeconds": course.load_time,
        "fleet": course.fleet,
        "policy": cell.policy,
        "seed": course.seed,
        "attainment": outcome.attainment,
        "paidHours": outcome.paid_hours,
        "boundHours": outcome.bound_hours,
        "ratio": outcome.ratio,
        "worstTenMinutes": outcome.worst_window,
        "starts": outcome.starts,
        "ttftP99Seconds": outcome.ttft_p99,
        "tunedTo": outcome.tuned_to,
    }


def as_text(outcomes: dict[Cell, Outcome]) -> str:
    """Return a table for each course: the cheapest that met the objective first, then the rest.

    Those that missed it are ranked by how many they served in time: what they paid is no merit.
    """
    courses = itertools.groupby(outcomes.items(), key=lambda each: each[0].course)
    return "\n\n".join("\n".join(_table(list(rows))) for _, rows in courses)


_HEADER: Final = "     policy                    in time   paid h  ratio  starts  TTFT p99"


def _table(rows: list[tuple[Cell, Outcome]]) -> Iterator[str]:
    course, first = rows[0][0].course, rows[0][1]
    yield (
        f"{course.trace}, {course.engine}, load {course.load_time:g} s, fleet {course.fleet}, "
        f"seed {course.seed}: bound {first.bound_hours:.2f} replica-hours"
    )
    yield _HEADER
    for place, (cell, outcome) in enumerate(sorted(rows, key=_rank), start=1):
        mark = f"{place}." if outcome.good else "miss"
        p99 = "-" if outcome.ttft_p99 is None else f"{outcome.ttft_p99:.1f} s"
        yield (
            f"{mark:>4} {cell.policy:<24}{_percent(outcome.attainment):>9}"
            f"{outcome.paid_hours:>9.2f}{outcome.ratio:>7.2f}{outcome.starts:>8}{p99:>10}"
        )


def _rank(row: tuple[Cell, Outcome]) -> tuple[bool, float]:
    _, outcome = row
    return not outcome.good, outcome.paid_hours if outcome.good else -outcome.attainment


def _percent(share: float) -> str:
    """Return it cut, not rounded: 98.996 % is not 99 %."""
    return f"{int(share * 10_000) / 100:.2f}%"
