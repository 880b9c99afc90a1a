"""``leadtime backtest``: what a policy would have done with a load, by the code that decides."""

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.cli.options import positive

if TYPE_CHECKING:
    from adapter.cli.backtesting.cost import Prices
    from adapter.simulator.backtest.outcome import Backtest, Plan

FINE, FOUND, UNUSABLE = 0, 1, 2

_LONG: Final = 2 * 86_400.0
"""Seconds beyond which requests are not played one by one unless asked for."""

_EPILOG: Final = """\
examples:
  leadtime backtest chat.yaml --trace office-week --length 24h      a synthetic day, shipped
  leadtime backtest chat.yaml --trace azure-conv --scale 0.2 --html week.html
  leadtime backtest chat.yaml --trace requests.csv --engine llama-3.1-8b-h100 --load-time 60s
  leadtime backtest chat.yaml --trace mix.jsonl --preset fitted.yaml -o csv --gpus-per-replica 4
  leadtime backtest chat.yaml --trace office-week --fail-under 0.99  in CI: 1 when it is missed
  leadtime backtest chat.yaml --recording rec/inference/chat.jsonl   would it decide the same?
  leadtime backtest chat.yaml --prometheus http://prometheus:9090 --since 7d   your own week

traces: a FILE with single requests (timestamp_s, input_tokens, output_tokens; Azure's, BurstGPT's
  and Mooncake's own columns), with a rate in each row (the digitised Azure weeks, ServeGen), or
  with bins (start_s, seconds, requests, prompt_tokens, output_tokens and perhaps masked); or a
  NAME: office-week, bursts, flash-crowd, longer-prompts, clocks-change, llmd-ramp, and with
  LEADTIME_TRACES azure-conv, azure-code, servegen-m-small, servegen-m-large, nyc-taxi.

Past queues are counterfactual: demand is rebuilt from arrivals and tokens. --scale below 1 thins
the load, which deletes burstiness. Bound: the fewest replica-hours that anybody could have paid.

exit codes:
  0 played   1 fewer in time than --fail-under, or a decision that is not the recorded one
  2 wrong options, or an input that cannot be used
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "backtest",
        help="play a policy on a load that was",
        description="Play a load against a policy, on simulated engines and with the code that\n"
        "decides in production, and tell who was late and what it cost.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("policy", type=Path, metavar="POLICY", help="a file with a ScalingPolicy")
    parser.add_argument("--policy-name", metavar="NAME", help="of several in the file")
    _add_load(parser)
    _add_engine(parser)
    _add_output(parser)


def _add_load(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("load")
    what = group.add_mutually_exclusive_group(required=True)
    what.add_argument("--trace", metavar="FILE|NAME", help="a load, played anew")
    what.add_argument(
        "--recording",
        type=Path,
        metavar="FILE",
        help="of `leadtime serve --record`: decided once more, and compared byte for byte",
    )
    what.add_argument(
        "--prometheus",
        metavar="URL",
        help="what it remembers of the policy's fleet, by source.prometheus or --label",
    )
    group.add_argument(
        "--since", type=_span, default=7 * 86_400.0, metavar="TIME", help="so far back (7d)"
    )
    group.add_argument(
        "--label", action="append", default=[], metavar="K=V", help="of the fleet's series there"
    )
    group.add_argument(
        "--format", choices=("requests", "rates", "bins"), help="default: told by the columns"
    )
    group.add_argument(
        "--scale", type=positive, default=1.0, metavar="X", help="times the load (1)"
    )
    group.add_argument(
        "--skip", type=_duration, default=0.0, metavar="TIME", help="leave out at the begin"
    )
    group.add_argument(
        "--length", type=_duration, metavar="TIME", help="play so much; default: to the end"
    )
    group.add_argument(
        "--warm-up",
        type=_duration,
        default=0.0,
        metavar="TIME",
        help="play this at the begin without judging it (0s)",
    )


def _add_engine(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("fleet")
    group.add_argument(
        "--engine", metavar="PRESET", help="default: llama-3.1-70b-4xh100, or the file's only one"
    )
    group.add_argument(
        "--preset", type=Path, metavar="FILE", help="what `leadtime fit-engine -o yaml` printed"
    )
    group.add_argument(
        "--load-time", type=_duration, metavar="TIME", help="default: the policy's own default"
    )
    mode = group.add_mutually_exclusive_group()
    mode.add_argument(
        "--requests",
        action="store_const",
        dest="mode",
        const="requests",
        help="play each request: default up to two days",
    )
    mode.add_argument(
        "--fluid", action="store_const", dest="mode", const="fluid",
        help="approximate queues, decide once a minute: default beyond; a week in seconds",
    )  # fmt: skip
    group.add_argument("--seed", type=int, default=1, help="of arrivals and load times (1)")


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", choices=("text", "json", "csv"), default="text")
    group.add_argument("--html", type=Path, metavar="FILE", help="write a page with charts as well")
    group.add_argument("--gpus-per-replica", type=_count, metavar="N")
    group.add_argument(
        "--price-per-hour", type=positive, metavar="X", help="of a GPU; of a replica without those"
    )
    group.add_argument(
        "--fail-under", type=_share, metavar="X", help="exit with 1 if fewer are in time: 0.99"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play, print what came of it, and return the exit code."""
    # the policy model and the simulator take longer to load than `leadtime --help` may.
    from adapter.cli.backtesting.cost import Prices
    from adapter.cli.backtesting.html import as_html
    from adapter.cli.backtesting.inputs import plan_of
    from adapter.controller.errors import AdapterError

    if arguments.recording is not None:
        return _replay(arguments)
    prices = Prices(arguments.gpus_per_replica, arguments.price_per_hour)
    try:
        found = _play(plan_of(arguments), arguments.mode)
        if arguments.html is not None:
            _write(arguments.html, as_html(found, prices))
    except AdapterError as error:
        print(f"leadtime backtest: {error}", file=sys.stderr)
        return UNUSABLE
    sys.stdout.write(_rendered(found, prices, arguments.output))
    return _verdict(found, arguments.fail_under)


def _replay(arguments: argparse.Namespace) -> int:
    """Decide a recording once more, and tell whether anything differs."""
    from adapter.cli.backtesting.replayed import as_html, rendered, verdict
    from adapter.cli.backtesting.replaying import replay
    from adapter.controller.errors import AdapterError

    try:
        with _quiet():
            found = replay(arguments)
        if arguments.html is not None:
            _write(arguments.html, as_html(found))
    except AdapterError as error:
        print(f"leadtime backtest: {error}", file=sys.stderr)
        return UNUSABLE
    sys.stdout.write(rendered(found, arguments.output))
    if not found.differing:
        return FINE
    print(f"leadtime backtest: {verdict(found)}", file=sys.stderr)
    return FOUND


def _play(plan: "Plan", mode: str | None) -> "Backtest":
    from adapter.simulator.backtest import fluid, requests

    long = plan.load.length > _LONG
    play = fluid.play if (mode or ("fluid" if long else "requests")) == "fluid" else requests.play
    with _quiet():
        try:
            return play(plan, told=_progress)
        finally:
            _tell("")


def _write(path: Path, page: str) -> None:
    """Write the page.

    Raises:
        BacktestUsageError: it cannot be written there.
    """
    from adapter.cli.backtesting.inputs import BacktestUsageError

    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise BacktestUsageError(
            f"--html {path}: {error.strerror}; give a file in a directory that can be written"
        ) from error


def _rendered(found: "Backtest", prices: "Prices", form: str) -> str:
    from adapter.cli.backtesting.document import as_csv, as_json
    from adapter.cli.backtesting.text import as_text

    match form:
        case "json":
            return as_json(found, prices)
        case "csv":
            return as_csv(found, prices)
        case _:
            return as_text(found, prices)


def _verdict(found: "Backtest", fail_under: float | None) -> int:
    attainment = found.score.attainment
    if fail_under is None or attainment >= fail_under:
        return FINE
    print(
        f"leadtime backtest: {attainment:.4%} in time is under --fail-under {fail_under:g}",
        file=sys.stderr,
    )
    return FOUND


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the product's log of every decision to itself meanwhile."""
    log = logging.getLogger("leadtime")
    level = log.level
    log.setLevel(max(level, logging.CRITICAL))
    try:
        yield
    finally:
        log.setLevel(level)


def _progress(share: float) -> None:
    filled = int(share * 30)
    _tell(f"[{'#' * filled}{'.' * (30 - filled)}] {share:.0%}")


def _tell(what: str) -> None:
    """Say how far it is, on one line of a terminal; say nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _duration(text: str) -> float:
    from adapter.scaling.duration import parse_duration

    try:
        return parse_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _span(text: str) -> float:
    """Return a duration that may be in days, which a policy's are not."""
    days = text.removesuffix("d")
    if days != text and days.isascii() and days.isdigit() and int(days) > 0:
        return int(days) * 86_400.0
    return _duration(text)


def _count(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")


def _share(text: str) -> float:
    share = positive(text)
    if share > 1:
        raise argparse.ArgumentTypeError(f"{text} is no share: give a number from 0 to 1, as 0.99")
    return share
