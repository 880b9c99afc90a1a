"""``leadtime plan release``: what a rollout takes and whether the load survives it."""

import argparse
import sys
from typing import Any, Final

from adapter.cli.options import count, positive, whole

FINE, BAD, UNUSABLE = 0, 1, 2

_EPILOG: Final = """\
examples:
  leadtime plan release --replicas 16 --load 0.8 --cold-start 180s --drain 120s
  leadtime plan release --replicas 16 --load 0.8 --cold-start 180s --max-surge 25%
      judges this strategy beside the others: exit code 1 in CI when it overloads or deadlocks
  leadtime plan release -f deployment.yaml -f policy.yaml --load 0.8 --free-gpus 8
      replicas, strategy, GPUs and drain from the Deployment, StatefulSet or LeaderWorkerSet,
      the cold start from the policy's loadTime.default
  leadtime plan release ... --hourly-load 0.3,0.3,0.2,...     24 numbers: when to begin

exit codes:
  0 fine   1 the chosen strategy overloads the fleet or never ends   2 usage
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "plan",
        help="plan a release: rounds, minutes, least capacity, extra GPUs",
        description="Plan what changes a fleet, before it is changed.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    plans = parser.add_subparsers(dest="plan", metavar="PLAN", required=True)
    release = plans.add_parser(
        "release",
        help="replace every replica by a new version",
        description="Compare the ways to replace every replica: one at a time, several, with\n"
        "surge, blue-green, and the cheapest that the load survives. Percentages are rounded as\n"
        "Kubernetes rounds them. A round lasts one cold start and one drain.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=_EPILOG,
    )
    _add_fleet(release)
    _add_strategies(release)
    release.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _add_fleet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-f", "--file", action="append", default=[], metavar="FILE",
        help="manifest of the scale target or ScalingPolicy; options below win over it",
    )  # fmt: skip
    parser.add_argument("--replicas", type=count, metavar="N")
    parser.add_argument(
        "--load", type=positive, metavar="RATIO", help="traffic as a share of the fleet's capacity"
    )
    parser.add_argument(
        "--cold-start", type=_duration, metavar="TIME", help="pod made to first good token: 180s"
    )
    parser.add_argument(
        "--cold-start-spread", type=_ratio, default=0.0, metavar="RATIO",
        help="standard deviation over mean: a round waits for its slowest start; default: 0",
    )  # fmt: skip
    parser.add_argument(
        "--drain", type=_duration, metavar="TIME", help="until the last stream ends; default: 0s"
    )
    parser.add_argument("--gpus-per-replica", type=count, metavar="N", help="default: 1")
    parser.add_argument("--free-gpus", type=whole, metavar="N", help="default: no limit")
    parser.add_argument(
        "--gpu-quota", type=whole, metavar="N", help="GPUs allowed in all, the fleet's included"
    )
    parser.add_argument(
        "--pdb-min-available", metavar="N|P%", help="says whether node drains still pass meanwhile"
    )
    parser.add_argument(
        "--hourly-load", type=_hours, metavar="L,L,...", help="24 ratios, midnight first"
    )


def _add_strategies(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-unavailable", metavar="N|P%", help="of the strategy to judge")
    parser.add_argument("--max-surge", metavar="N|P%", help="of the strategy to judge")
    parser.add_argument(
        "--at-a-time", default="25%", metavar="N|P%", help='of "k at a time"; default: 25%%'
    )
    parser.add_argument("--surge", default="12%", metavar="N|P%", help='of "surge"; default: 12%%')
    parser.add_argument(
        "--within", type=_duration, metavar="TIME", help="the longest that the best may take"
    )


def run(arguments: argparse.Namespace) -> int:
    """Plan, print, and return the exit code."""
    # the policy model and yaml take longer to load than `leadtime --help` may.
    from adapter.cli.planning import PlanError, as_json, as_text, compare

    try:
        comparison = compare(arguments)
    except PlanError as error:
        print(f"leadtime plan release: {error}", file=sys.stderr)
        return UNUSABLE
    sys.stdout.write(as_json(comparison) if arguments.output == "json" else as_text(comparison))
    chosen = comparison.chosen
    return BAD if chosen is not None and chosen.verdict.bad else FINE


def _ratio(text: str) -> float:
    return 0.0 if text in {"0", "0.0"} else positive(text)


def _duration(text: str) -> float:
    from adapter.scaling.duration import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _hours(text: str) -> tuple[float, ...]:
    parts = text.split(",")
    if len(parts) != 24:  # noqa: PLR2004 - the hours of a day
        raise argparse.ArgumentTypeError(f"{len(parts)} numbers: give 24, midnight first")
    return tuple(_ratio(part.strip()) for part in parts)
