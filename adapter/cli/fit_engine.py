"""``leadtime fit-engine``: an engine's preset for the simulator, from a log of its requests."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adapter.simulator.request_log import LoggedRequest

FINE, FOUND, UNUSABLE = 0, 1, 2

_DESCRIPTION: Final = """\
Fit the simulator's engine to a CSV log of real requests, one a row, with the columns
  timestamp_s    when the engine received it, in seconds from any origin
  input_tokens   of the prompt
  output_tokens  generated
  ttft_s         seconds from receiving it to the first token
  e2e_s          seconds from receiving it to the last token
and, where known,
  queue_s        the part of ttft_s spent waiting for the batch: shows the engine's limits
  cached_tokens  of the prompt, found in the prefix cache
Other columns are ignored. Log under load: an engine that is never busy teaches little.
"""

_EPILOG: Final = """\
examples:
  leadtime fit-engine chat.csv                            errors and preset, for people
  leadtime fit-engine chat.csv -o yaml --preset-name a    the preset, for the simulator
  leadtime fit-engine a.csv b.csv c.csv                   each; then each predicted from the rest

exit codes:
  0 fitted   1 a log has faults: every line with its reason on stderr   2 a file cannot be read
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "fit-engine",
        help="fit the simulator's engine to a request log",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("logs", nargs="+", metavar="LOG.csv", help="- reads standard input")
    parser.add_argument("--preset-name", metavar="NAME", help="default: the file's name")
    for flag, what in (
        ("--kv-tokens", "tokens that the KV cache holds"),
        ("--max-num-seqs", "requests in a batch"),
        ("--max-num-batched-tokens", "tokens in a step (2048)"),
    ):
        parser.add_argument(
            flag, type=_count, metavar="N", help=f"{what}; default: what the log shows"
        )
    parser.add_argument("-o", "--output", choices=("text", "json", "yaml"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Fit every log, print what was found, and return the exit code."""
    # reading and fitting need modules that `leadtime --help` does not.
    from adapter.cli.fitting import Options, fit_all, render
    from adapter.simulator.request_log import RequestLogError

    if arguments.preset_name and len(arguments.logs) > 1:
        print("leadtime fit-engine: --preset-name goes with one log", file=sys.stderr)
        return UNUSABLE
    try:
        logs = _logs(arguments.logs)
    except OSError as error:
        print(
            f"leadtime fit-engine: {error.filename}: {error.strerror}; give a CSV file or -",
            file=sys.stderr,
        )
        return UNUSABLE
    except RequestLogError as error:
        print(error, file=sys.stderr)
        return FOUND
    options = Options(
        arguments.preset_name,
        arguments.kv_tokens,
        arguments.max_num_seqs,
        arguments.max_num_batched_tokens,
    )
    try:
        sys.stdout.write(render(fit_all(logs, options), arguments.output))
    except ValueError as error:
        print(f"leadtime fit-engine: {error}", file=sys.stderr)
        return UNUSABLE
    return FINE


def _logs(paths: list[str]) -> "dict[str, tuple[LoggedRequest, ...]]":
    """Return every log by its path; all faults of all logs at once.

    Raises:
        OSError: a file cannot be read.
        RequestLogError: some line cannot be used.
    """
    from adapter.simulator.request_log import RequestLogError, read_log

    logs: dict[str, tuple[LoggedRequest, ...]] = {}
    problems: list[str] = []
    for path in paths:
        text = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        try:
            logs[path] = read_log(text, name="<stdin>" if path == "-" else path)
        except RequestLogError as error:
            problems += error.problems
    if problems:
        raise RequestLogError(problems)
    return logs


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)
