"""``leadtime bench scaling``: our policy and what people can have today on the same requests."""

import argparse
import itertools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adapter.cli.options import positive
from adapter.controller.errors import AdapterError

if TYPE_CHECKING:
    from adapter.simulator.matrix import Cell, Outcome

FINE, FOUND, UNUSABLE = 0, 1, 2

PART: Final = "scaling"

_ENGINES: Final = ("llama-3.1-8b-h100", "llama-3.1-70b-4xh100")
_QUICK_ENGINES: Final = ("llama-3.1-70b-4xh100",)
_LOAD_TIMES: Final = (20.0, 60.0, 240.0, 600.0)
_QUICK_LOAD_TIMES: Final = (240.0,)
_FLEETS: Final = (4, 10, 30)
_QUICK_FLEETS: Final = (4,)
_SEEDS: Final = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this part to those of ``leadtime bench``."""
    group = parser.add_argument_group("scaling", "which cells; each of these may be repeated")
    group.add_argument("--quick", action="store_true", help="a few hours of synthetic loads")
    group.add_argument("--trace", action="append", metavar="NAME", help="default: the synthetic")
    group.add_argument("--engine", action="append", metavar="PRESET")
    group.add_argument("--load-time", action="append", type=positive, metavar="SECONDS")
    group.add_argument("--fleet", action="append", type=_count, metavar="N", help="at the peak")
    group.add_argument("--policy", action="append", metavar="NAME", help="default: every one")
    group.add_argument(
        "--ablations", action="store_true", help="our policy with one part taken away, too"
    )
    group.add_argument("--seeds", type=_count, metavar="N", help="1 to N (5, or 1 if quick)")
    group.add_argument(
        "--results", type=Path, metavar="DIR", help="keep finished cells; resume from them"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play the cells that are asked for, print them, and return the exit code."""
    from adapter.simulator import matrix

    try:
        cells = cells_of(arguments)
        with _quiet():
            outcomes = outcomes_of(cells, matrix.run, results=arguments.results)
    except (BenchmarkUsageError, AdapterError, OSError) as error:
        print(f"leadtime bench scaling: {error}", file=sys.stderr)
        return UNUSABLE
    print((_as_json if arguments.output == "json" else _as_text)(outcomes))
    impossible = [cell for cell, outcome in outcomes.items() if outcome.impossible]
    for cell in impossible:
        print(
            f"leadtime bench scaling: {_name(cell)} met the objective below the bound: "
            f"the bound or the benchmark is wrong, do not use these figures",
            file=sys.stderr,
        )
    return FOUND if impossible else FINE


class BenchmarkUsageError(ValueError):
    """Asked for what is not there, or a kept result cannot be read; says what there is."""


def cells_of(arguments: argparse.Namespace) -> "list[Cell]":
    """Return the cells in the order of play: all policies of a course one after the other.

    Raises:
        BenchmarkUsageError: a name is unknown.
        TraceError: a trace is not there.
    """
    from adapter.fleet.units import Seconds
    from adapter.simulator.ablations import ABLATIONS
    from adapter.simulator.matrix import Cell, Course, policies
    from adapter.simulator.presets import PRESETS
    from adapter.simulator.stretches import KNOWN, QUICK, WHOLE, stretch
    from adapter.simulator.synthetic import SCENARIOS

    quick = arguments.quick
    hours = QUICK if quick else WHOLE
    traces = arguments.trace or [name for name in SCENARIOS if name in hours]
    engines = arguments.engine or (_QUICK_ENGINES if quick else _ENGINES)
    chosen = list(arguments.policy or policies())
    chosen += [name for name in ABLATIONS if arguments.ablations and name not in chosen]
    _insist("trace", traces, [name for name in KNOWN if name in hours])
    _insist("engine", engines, [one.name for one in PRESETS])
    _insist("policy", chosen, (*policies(), *ABLATIONS))
    for trace in traces:
        stretch(trace, hours[trace])  # a missing file is told now, not hours later
    courses = itertools.product(
        traces,
        engines,
        arguments.load_time or (_QUICK_LOAD_TIMES if quick else _LOAD_TIMES),
        arguments.fleet or (_QUICK_FLEETS if quick else _FLEETS),
        range(1, 1 + (arguments.seeds or (1 if quick else _SEEDS))),
    )
    return [
        Cell(
            Course(
                trace=trace,
                engine=engine,
                load_time=Seconds(load_time),
                fleet=fleet,
                seed=seed,
                hours=hours[trace],
            ),
            policy,
        )
        for trace, engine, load_time, fleet, seed in courses
        for policy in chosen
    ]


def _insist(what: str, asked: Iterable[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise BenchmarkUsageError(f"no {what} {name!r} here; there are {', '.join(known)}")


def outcomes_of(
    cells: "Sequence[Cell]", play: "Callable[[Cell], Outcome]", *, results: Path | None
) -> "dict[Cell, Outcome]":
    """Return what came of each cell, played now or kept in ``results`` from before.

    Raises:
        BenchmarkUsageError: a kept result cannot be read.
        OSError: the directory cannot be written.
    """
    if results is not None:
        results.mkdir(parents=True, exist_ok=True)
    outcomes: dict[Cell, Outcome] = {}
    for number, cell in enumerate(cells, start=1):
        _tell(f"{number} of {len(cells)}: {_name(cell)}")
        kept = None if results is None else results / f"{_name(cell)}.json"
        if kept is not None and kept.exists():
            outcomes[cell] = _read(kept)
            continue
        outcomes[cell] = play(cell)
        if kept is not None:
            _keep(kept, outcomes[cell])
    _tell("")
    return outcomes


def _keep(path: Path, outcome: "Outcome") -> None:
    """Write all of it or nothing: whoever is interrupted finds no half a cell."""
    from dataclasses import asdict

    half = path.with_suffix(f".{os.getpid()}.half")
    half.write_text(json.dumps(asdict(outcome)) + "\n")
    half.replace(path)


def _read(path: Path) -> "Outcome":
    from adapter.simulator.matrix import Outcome

    try:
        return Outcome(**json.loads(path.read_text()))
    except (ValueError, TypeError) as error:
        raise BenchmarkUsageError(
            f"{path}: not a cell that this version kept ({error}): delete it to play it again"
        ) from error


def _name(cell: "Cell") -> str:
    """Return a name that differs where anything differs that decides the outcome."""
    course, hours = cell.course, cell.course.hours
    return (
        f"{course.trace}-{hours.since:g}+{hours.warm_up:g}+{hours.judged:g}h_{course.engine}"
        f"_{course.load_time:g}s_{course.fleet}_{cell.policy}_{course.seed}"
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the product's log of every decision to itself meanwhile."""
    log = logging.getLogger("leadtime")
    level = log.level
    log.setLevel(max(level, logging.ERROR))
    try:
        yield
    finally:
        log.setLevel(level)


def _tell(what: str) -> None:
    """Say what is being played, on one line of a terminal; say nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _as_json(outcomes: "dict[Cell, Outcome]") -> str:
    return json.dumps({"cells": [_row(*each) for each in outcomes.items()]}, indent=2)


def _row(cell: "Cell", outcome: "Outcome") -> dict[str, str | int | float | None]:
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
        "starts": outcome.starts,
        "ttftP99Seconds": outcome.ttft_p99,
        "tunedTo": outcome.tuned_to,
    }


def _as_text(outcomes: "dict[Cell, Outcome]") -> str:
    """Return a table for each course: the cheapest that met the objective first, then the rest.

    Those that missed it are ranked by how many they served in time: what they paid is no merit.
    """
    courses = itertools.groupby(outcomes.items(), key=lambda each: each[0].course)
    return "\n\n".join("\n".join(_table(list(rows))) for _, rows in courses)


_HEADER: Final = "     policy                    in time   paid h  ratio  starts  TTFT p99"


def _table(rows: "list[tuple[Cell, Outcome]]") -> Iterator[str]:
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


def _rank(row: "tuple[Cell, Outcome]") -> tuple[bool, float]:
    _, outcome = row
    return not outcome.good, outcome.paid_hours if outcome.good else -outcome.attainment


def _percent(share: float) -> str:
    """Return it cut, not rounded: 98.996 % is not 99 %."""
    return f"{int(share * 10_000) / 100:.2f}%"


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1000:  # noqa: PLR2004 - plenty
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
