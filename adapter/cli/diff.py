"""``leadtime diff``: what a change of a policy changes, in its fields and on a history."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from adapter.cli.options import positive

FINE, DIFFERENT, UNUSABLE = 0, 1, 2

_EPILOG: Final = """\
examples:
  leadtime diff old.yaml new.yaml
  leadtime diff old.yaml new.yaml --trace office-week --length 24h
  leadtime diff old.yaml new.yaml --recording rec/inference/chat.jsonl
  git show main:policies/chat.yaml > /tmp/old.yaml
  leadtime diff /tmp/old.yaml policies/chat.yaml --trace week.csv -o markdown     for a review

A default that one of the two writes out is no difference. Traces, and what can be said of a load
that is played or recorded: see `leadtime backtest --help`.

exit codes:
  0 the same   1 a field differs   2 wrong options, or an input that cannot be used
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "diff",
        help="what a change of a policy changes",
        description="Compare two policies: field by field, and on a load or a recording by what\n"
        "they pay, how long they are late, their largest count and how often they turn round.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(prometheus=None)  # the past is a trace or a recording here
    parser.add_argument("old", type=Path, metavar="OLD", help="a file with a ScalingPolicy")
    parser.add_argument("new", type=Path, metavar="NEW", help="the same, changed")
    parser.add_argument("--policy-name", metavar="NAME", help="of several in the files")
    history = parser.add_argument_group("history")
    what = history.add_mutually_exclusive_group()
    what.add_argument("--trace", metavar="FILE|NAME", help="a load, played with both")
    what.add_argument("--recording", type=Path, metavar="FILE", help="of `leadtime serve --record`")
    history.add_argument("--format", choices=("requests", "rates", "bins"))
    history.add_argument("--scale", type=positive, default=1.0, metavar="X", help="times the load")
    history.add_argument("--skip", type=_duration, default=0.0, metavar="TIME")
    history.add_argument("--length", type=_duration, metavar="TIME", help="default: to the end")
    history.add_argument("--warm-up", type=_duration, default=0.0, metavar="TIME")
    history.add_argument("--engine", metavar="PRESET", help="default: llama-3.1-70b-4xh100")
    history.add_argument("--preset", type=Path, metavar="FILE", help="of `leadtime fit-engine`")
    history.add_argument("--load-time", type=_duration, metavar="TIME", help="default: each's own")
    history.add_argument(
        "--mode", choices=("requests", "fluid"), help="default: requests up to two days"
    )
    history.add_argument("--seed", type=int, default=1, help="of arrivals and load times (1)")
    parser.add_argument("-o", "--output", choices=("text", "json", "markdown"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Compare, print the difference, and return the exit code."""
    # The policy model and the simulator take longer to load than `leadtime --help` may.
    from adapter.cli.backtesting.inputs import policy_of
    from adapter.cli.comparing.fields import changes
    from adapter.cli.comparing.history import compare
    from adapter.cli.comparing.told import rendered
    from adapter.controller.errors import AdapterError

    old, new = (_with(arguments, path) for path in (arguments.old, arguments.new))
    asked = arguments.trace is not None or arguments.recording is not None
    try:
        found = changes(policy_of(old), policy_of(new))
        history = compare(old, new) if asked else None
    except AdapterError as error:
        print(f"leadtime diff: {error}", file=sys.stderr)
        return UNUSABLE
    sys.stdout.write(rendered(found, history, arguments.output))
    return DIFFERENT if found else FINE


def _with(arguments: argparse.Namespace, policy: Path) -> argparse.Namespace:
    return argparse.Namespace(**{**vars(arguments), "policy": policy})


def _duration(text: str) -> float:
    from adapter.scaling.duration import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
