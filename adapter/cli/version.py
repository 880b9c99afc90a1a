"""``leadtime version``: what is running, for bug reports and scripts."""

import argparse
import json
import platform
from typing import Any

from adapter import __version__


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser("version", help="print the version")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Print the version of the adapter and of the Python it runs on."""
    facts = {"version": __version__, "python": platform.python_version()}
    if arguments.output == "json":
        print(json.dumps(facts))
    else:
        print(f"leadtime {facts['version']} (Python {facts['python']})")
    return 0
