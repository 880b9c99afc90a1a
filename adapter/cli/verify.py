"""``leadtime verify``: whether what answers is fresh, the right version, and really generating."""

import argparse
import sys
from typing import Any, Final

from adapter.cli.options import count, positive

FRESH, STALE, UNUSABLE = 0, 1, 2

_EPILOG: Final = """\
examples:
  leadtime verify --url http://llama.inference:8000 --protocol openai --model llama
      every address that the name has (a headless Service: every pod), twice each
  leadtime verify --url http://10.0.3.7:8000 --url http://10.0.3.8:8000 --protocol sglang \\
      --expect-version 2026-11-30 -o json
  leadtime verify --url http://triton:8000 --protocol triton --model ranker \\
      --input a.json --input b.json      two bodies of /v2/models/ranker/infer that must differ

exit codes:
  0 fresh   1 a stale, cached or missing answer, or two versions   2 usage, or no such host
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "verify",
        help="check that endpoints answer freshly and as the right version",
        description="Send tiny real generations with a nonce and compare: distinct inputs must be\n"
        "answered distinctly, no header may speak of a cache, and every endpoint must tell the\n"
        "same version. /health and readiness prove none of this.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_endpoint_options(parser)
    parser.add_argument(
        "--url", action="append", required=True, help="base address; may be given several times"
    )
    parser.add_argument(
        "--tries", type=count, default=2, metavar="N", help="pairs per endpoint; default: 2"
    )
    parser.add_argument(
        "--input", action="append", default=[], metavar="FILE",
        help="two or more request bodies with distinct answers; {{nonce}} in them is replaced",
    )  # fmt: skip
    parser.add_argument(
        "--expect-version", metavar="V", help="what a version header or field must say"
    )
    parser.add_argument(
        "--determinism", action="store_true", help="one input twice must be answered alike"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def add_endpoint_options(parser: argparse.ArgumentParser) -> None:
    """Add what ``verify`` and ``probe`` both need to ask for a generation."""
    parser.add_argument(
        "--protocol",
        choices=("openai", "openai-chat", "sglang", "triton"),
        default="openai",
        help="default: openai",
    )
    parser.add_argument("--model", default="", help="as the server names it")
    parser.add_argument(
        "--timeout", type=positive, default=10.0, metavar="SECONDS", help="per request; default: 10"
    )
    parser.add_argument(
        "--prompt", metavar="TEXT", help="a fixed prompt, with --expect; asked greedily"
    )
    parser.add_argument("--expect", metavar="TEXT", help="how the answer to --prompt must begin")
    parser.add_argument(
        "--header-file", metavar="FILE", help="lines 'Name: value' to send, credentials among them"
    )
    parser.add_argument(
        "--insecure-skip-tls-verify", action="store_true", help="accept any certificate"
    )


def run(arguments: argparse.Namespace) -> int:
    """Ask every endpoint, print what was found, and return the exit code."""
    # ssl and http.client take longer to load than `leadtime --help` may.
    from adapter.cli.verification import VerifyError, as_json, as_text, verify

    try:
        reports = verify(arguments)
    except VerifyError as error:
        print(f"leadtime verify: {error}", file=sys.stderr)
        return UNUSABLE
    sys.stdout.write(as_json(reports) if arguments.output == "json" else as_text(reports))
    return FRESH if all(report.fresh for report in reports) else STALE
