"""``leadtime probe``: one smoke request as an exec readiness probe."""

import argparse
import sys
from typing import Any, Final

from adapter.cli.verify import add_endpoint_options

READY, NOT_READY, UNUSABLE = 0, 1, 2

_EPILOG: Final = """\
examples:
  as a readiness probe of an engine's pod, with the command in the image or a sidecar:
    readinessProbe:
      exec: {command: [leadtime, probe, --url, "http://127.0.0.1:8000", --model, llama]}
      periodSeconds: 15
      timeoutSeconds: 12
  leadtime probe --url http://127.0.0.1:8000 --model llama --busy-metrics /metrics
      a replica that is busy and gets on is ready without another request
  leadtime probe --shm        segments of a Triton that is gone, left in /dev/shm

exit codes:
  0 ready   1 not ready, with the reason on stdout   2 usage
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "probe",
        help="one smoke request, as an exec readiness probe",
        description="Ask one replica for one tiny generation with a nonce. Never two at a time: a\n"
        "probe that is still waiting makes the next one fail at once instead of piling up.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_endpoint_options(parser)
    parser.add_argument("--url", help="base address of the replica")
    parser.add_argument(
        "--busy-metrics", metavar="PATH", help="metrics path: busy and progressing is ready"
    )
    parser.add_argument(
        "--lock", metavar="FILE", help="held while a probe runs; default: one per URL in TMPDIR"
    )
    parser.add_argument(
        "--shm", action="store_true", help="look for segments that a dead Triton left behind"
    )
    parser.add_argument(
        "--shm-dir", default="/dev/shm", metavar="DIR", help="default: /dev/shm"  # noqa: S108 - Triton's place
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """Probe, say why not, and return the exit code."""
    # ssl and http.client take longer to load than `leadtime --help` may.
    from adapter.cli.probing import ProbeError, generation, shared_memory

    if not arguments.url and not arguments.shm:
        print("leadtime probe: give --url, --shm or both", file=sys.stderr)
        return UNUSABLE
    try:
        faults = [
            *(shared_memory(arguments.shm_dir) if arguments.shm else ()),
            *(generation(arguments) if arguments.url else ()),
        ]
    except ProbeError as error:
        print(f"leadtime probe: {error}", file=sys.stderr)
        return UNUSABLE
    for fault in faults:
        print(fault)
    return NOT_READY if faults else READY
