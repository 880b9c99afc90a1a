"""``leadtime bench scaling``: our policy and what people can have today on the same requests."""

import argparse
import itertools
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
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
_FAULTY_TRACE: Final = "office-week"
_FAULTY_POLICIES: Final = ("leadtime", "hpa-in-flight-tuned", "kthena")


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
    group.add_argument(
        "--faults",
        action="store_true",
        help="what goes wrong, without and with; ours and two others unless policies are named",
    )
    group.add_argument("--seeds", type=_count, metavar="N", help="1 to N (5, or 1 if quick)")
    group.add_argument(
        "--results", type=Path, metavar="DIR", help="keep finished cells; resume from them"
    )
    group.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts as well")


def run(arguments: argparse.Namespace) -> int:
    """Play the cells that are asked for, print them, and return the exit code."""
    from adapter.cli.benchmarks.cell_text import as_json, as_text
    from adapter.cli.benchmarks.cells import KeptCellError, name_of, outcomes_of
    from adapter.simulator import matrix

    try:
        cells = cells_of(arguments)
        _insist_on_place(arguments.html)
        with _quiet():
            outcomes = outcomes_of(cells, matrix.run, results=arguments.results)
        _write(arguments.html, outcomes)
    except (BenchmarkUsageError, KeptCellError, AdapterError, OSError) as error:
        print(f"leadtime bench scaling: {error}", file=sys.stderr)
        return UNUSABLE
    print((as_json if arguments.output == "json" else as_text)(outcomes))
    impossible = [cell for cell, outcome in outcomes.items() if outcome.impossible]
    for cell in impossible:
        print(
            f"leadtime bench scaling: {name_of(cell)} met the objective below the bound: "
            f"the bound or the benchmark is wrong, do not use these figures",
            file=sys.stderr,
        )
    return FOUND if impossible else FINE


class BenchmarkUsageError(ValueError):
    """Asked for what is not there; says what there is."""


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
    from adapter.simulator.trials import FAULTS

    faulty = arguments.faults
    quick = arguments.quick or (faulty and not arguments.trace)
    hours = QUICK if quick else WHOLE
    synthetic = [_FAULTY_TRACE] if faulty else [name for name in SCENARIOS if name in hours]
    traces = arguments.trace or synthetic
    engines = arguments.engine or (_QUICK_ENGINES if quick else _ENGINES)
    chosen = list(arguments.policy or (_FAULTY_POLICIES if faulty else policies()))
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
            fault,
        )
        for trace, engine, load_time, fleet, seed in courses
        for policy in chosen
        for fault in (None, *(FAULTS if faulty else ()))
    ]


def _insist(what: str, asked: Iterable[str], known: Sequence[str]) -> None:
    for name in asked:
        if name not in known:
            raise BenchmarkUsageError(f"no {what} {name!r} here; there are {', '.join(known)}")


def _insist_on_place(page: Path | None) -> None:
    """Refuse a page that has no place now, not hours later."""
    if page is not None and (page.is_dir() or not page.absolute().parent.is_dir()):
        raise BenchmarkUsageError(f"--html {page}: give a file in a directory that is there")


def _write(page: Path | None, outcomes: "dict[Cell, Outcome]") -> None:
    if page is not None:
        from adapter.cli.benchmarks.cell_html import as_html

        page.write_text(as_html(outcomes))


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


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) <= 1000:  # noqa: PLR2004 - plenty
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to 1000")
