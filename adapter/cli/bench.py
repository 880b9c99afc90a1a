"""``leadtime bench``: how fast it parses, scrapes, serves, decides and simulates; how it scales."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.cli.benchmarks import scaling
from adapter.cli.options import positive

if TYPE_CHECKING:
    from adapter.cli.benchmarks.figure import Figure

    Part = Callable[[], tuple[Figure, ...]]

FINE, FOUND, UNUSABLE = 0, 1, 2

PARTS: Final = ("parse", "decide", "simulate", "scrape", "reads", "keda")

ASKED: Final = ("growth",)
"""Measured only when named: this needs the public traces."""

_EPILOG: Final = """\
examples:
  leadtime bench                                    every part; about two minutes
  leadtime bench parse --exposition dump.prom       your engine's text beside the made-up one
  leadtime bench scrape reads --seconds 60 -o json  longer, for scripts
  leadtime bench scaling --quick --results cells    our policy against others; again to resume
  leadtime bench scaling --faults --html page.html  what goes wrong, without and with, as a page

parts:
  parse     exposition text to samples: the library alone, and behind the prefilter
  decide    one tick of the loop without the scrape, for 7, 100 and 1,000 replicas
  simulate  requests a second that one simulated engine answers, on one core
  scrape    CPU and memory of `leadtime serve` over 1,000 engines of 50 kB, every 5 s
  reads     the metric endpoint: reads per second, and percentiles, plain and over TLS
  keda      the external scaler under 1,500 ScaledObjects' calls every 15 s: CPU and percentiles
  growth    only when named: forecasts of growth on the public traces, what they cost and cover
  scaling   by itself only, never by default: replica-hours and SLO of our policy and its rivals
            in a simulation; the whole matrix takes days, --quick some minutes

Everything stays on loopback, in processes of its own. CPU time is little disturbed by what else
runs here; reads per second and percentiles are.

exit codes:
  0 measured, every promise kept   1 a promise is not kept   2 could not be measured
  scaling: 1 when a policy met the objective for less than the least possible
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "bench",
        help="measure its speed on this machine",
        description="Measure how fast it parses, decides, scrapes and serves.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", nargs="*", type=_part, metavar="PART", help="default: all")
    parser.add_argument(
        "--seconds",
        type=_seconds,
        default=20.0,
        metavar="N",
        help="for scrape, reads and keda each (20)",
    )
    parser.add_argument(
        "--exposition",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="parse this text as well; may be repeated",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    scaling.add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the figures, and return the exit code."""
    if scaling.PART in arguments.parts:
        return _scaling(arguments)
    # Everything that is measured takes longer to load than `leadtime bench --help` may.
    from adapter.cli.benchmarks.machine import machine
    from adapter.cli.benchmarks.report import all_kept, as_json, as_text

    try:
        recorded = {path.stem: path.read_bytes() for path in arguments.exposition}
    except OSError as error:
        print(
            f"leadtime bench: --exposition {error.filename}: {error.strerror}; "
            f"give a file that holds an engine's /metrics",
            file=sys.stderr,
        )
        return UNUSABLE
    facts, parts = machine(), _parts(recorded, seconds=arguments.seconds)
    results = {}
    for name in arguments.parts or PARTS:
        print(f"leadtime bench: measuring {name}", file=sys.stderr, flush=True)
        results[name] = parts[name]()
    print((as_json if arguments.output == "json" else as_text)(facts, results))
    return FINE if all_kept(results) else FOUND


def _scaling(arguments: argparse.Namespace) -> int:
    if arguments.parts != [scaling.PART]:
        print(
            "leadtime bench: scaling is a benchmark by itself: name no other part beside it",
            file=sys.stderr,
        )
        return UNUSABLE
    return scaling.run(arguments)


def _parts(recorded: Mapping[str, bytes], *, seconds: float) -> "Mapping[str, Part]":
    """Return what measures each part."""
    from adapter.cli.benchmarks import decide, growth, keda, parse, reads, scrape, simulate

    return {
        "parse": lambda: parse.measure(recorded),
        "decide": decide.measure,
        "simulate": simulate.measure,
        "scrape": lambda: scrape.measure(seconds=seconds),
        "reads": lambda: reads.measure(seconds=seconds),
        "keda": lambda: keda.measure(seconds=seconds),
        "growth": growth.measure,
    }


def _part(text: str) -> str:
    if text not in (*PARTS, *ASKED, scaling.PART):
        known = ", ".join((*PARTS, *ASKED, scaling.PART))
        raise argparse.ArgumentTypeError(f"no part {text!r}; one of {known}")
    return text


def _seconds(text: str) -> float:
    seconds = positive(text)
    if seconds > 3600:  # noqa: PLR2004 - an hour is long enough for anyone
        raise argparse.ArgumentTypeError(f"{text} is more than an hour (3600)")
    return seconds
