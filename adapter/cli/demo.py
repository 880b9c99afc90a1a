"""``leadtime demo``: the main job on this machine, without a cluster and without a GPU."""

import argparse
import json
import sys
from typing import Any, Final

from adapter.cli.options import port, positive

_EPILOG: Final = """\
examples:
  leadtime demo                                 a morning of 40 minutes, played in 50 seconds
  leadtime demo --seconds 20 -o json            the same, faster, for scripts
  leadtime demo --seconds 120 --speed 30        an hour, slowly enough to read along

Simulated vLLM engines answer on ports of their own, the real adapter scrapes them and serves the
metric over TLS, an HPA reads it as a cluster's would, and a kubelet stand-in starts and stops
engines with a load time. Only the engines, the users and the cluster are simulated. All of them
share one time, which stands still while the adapter works: on a busy machine it lags, and the
numbers stay true. The same options give the same story.

exit codes:
  0 the HPA read a count   1 it never did   2 wrong options, port taken   130 interrupted (Ctrl-C)
"""

FINE, FOUND = 0, 1

STORY_SECONDS: Final = 2400.0
"""What is played unless a speed is given: long enough for a morning and its evening."""

FASTEST: Final = 120.0
"""At this speed a tick every 5 s of fleet time leaves 40 ms for scraping and deciding."""

PATIENCE: Final = 1.0
"""Wall seconds beyond those asked for, so that a hiccup does not cost the story its end."""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "demo",
        help="show the main job on simulated engines",
        description="Play a morning ramp and a burst on a simulated fleet, with the real adapter.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--seconds", type=positive, default=50.0, metavar="N", help="how long to play (50)"
    )
    parser.add_argument(
        "--speed",
        type=positive,
        metavar="X",
        help="fleet seconds in a second; default: 40 minutes in the given time, 120 at the most",
    )
    parser.add_argument("--seed", type=int, default=1, help="of the users and the load times (1)")
    parser.add_argument("--port", type=port, default=0, help="where to serve; 0 takes a free one")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")


def run(arguments: argparse.Namespace) -> int:
    """Play, print what came of it, and return the exit code."""
    # aiohttp, pydantic and rich take longer to load than `leadtime demo --help` may.
    from adapter.cli.demonstration.play import Options, play_on_terminal
    from adapter.fleet.units import Seconds

    speed = arguments.speed or min(FASTEST, STORY_SECONDS / arguments.seconds)
    options = Options(
        length=Seconds(arguments.seconds * speed),
        speed=speed,
        patience=arguments.seconds + PATIENCE,
        seed=arguments.seed,
        port=arguments.port,
    )
    report = play_on_terminal(options)
    if arguments.output == "json":
        print(json.dumps(report.document(), indent=2))
    elif report.served:
        print(report.text())
    if report.problem:
        print(f"leadtime demo: {report.problem}", file=sys.stderr)
        return FOUND
    return FINE
