"""The command line: parses the verb, runs it, and turns what went wrong into an exit code."""

import argparse
import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

VERBS: Final = (
    "serve",
    "demo",
    "lint",
    "plan",
    "verify",
    "probe",
    "generate",
    "schema",
    "doctor",
    "fit-engine",
    "backtest",
    "whatif",
    "diff",
    "bench",
    "version",
)
"""One file in this folder each, a hyphen being an underscore there; in the order of ``--help``."""

FINE, FOUND, UNUSABLE, WARNED, INTERRUPTED = 0, 1, 2, 3, 130

_EPILOG = """\
exit codes, the same for every command:
  0 fine   1 findings, a difference or a bad verdict   2 usage, or cannot run
  3 warnings only, under --fail-on warning             130 interrupted (Ctrl-C)
"""


def entry() -> None:
    """Run the command line of this process and leave with its exit code."""
    _write_anything()
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:  # while the verbs were being loaded
        code = INTERRUPTED
    sys.exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; a traceback is shown only with ``--debug``."""
    parser, modules = _parser()
    parsed = parser.parse_args(arguments)
    try:
        code = int(modules[parsed.verb].run(parsed))
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:
        if parsed.debug:
            raise
        print(f"leadtime {parsed.verb}: {_one_line(error)}", file=sys.stderr)
        return UNUSABLE
    return code


def _write_anything() -> None:
    """Pipe UTF-8 whatever the locale; what a terminal cannot show, it shows as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")


def _parser() -> tuple[argparse.ArgumentParser, dict[str, ModuleType]]:
    parser = argparse.ArgumentParser(
        prog="leadtime",
        description="One desired-replica signal for LLM inference fleets, for the HPA and KEDA.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show tracebacks of internal errors")
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    modules = {verb: importlib.import_module(_module(verb)) for verb in VERBS}
    for module in modules.values():
        module.add_parser(verbs)
    return parser, modules


def _module(verb: str) -> str:
    return f"adapter.cli.{verb.replace('-', '_')}"


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__


def _reader_left() -> int:
    """Leave as a program in a pipe does when its reader is gone: quietly."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 128 + signal.SIGPIPE
