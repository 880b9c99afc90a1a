"""``leadtime whatif``: numbers in, the decision and its reasons out; no cluster."""

import argparse
import sys
from pathlib import Path
from typing import Any, Final

from adapter.cli.options import count, whole

FINE, UNUSABLE = 0, 2

_EPILOG: Final = """\
examples:
  leadtime whatif policy.yaml --serving 4 --loading 1 --waiting 40 --running 60 --kv 0.8 \\
      --ttft-p95 3s --published 5
  leadtime whatif policy.yaml --serving 4 --waiting 40,0,0,0 --running 60
      one number for each serving replica: a hot replica is no busy pool
  leadtime whatif policy.yaml --serving 20 --running 0 --waiting 0 --for 30m -o json
      the same numbers for half an hour: what is left of the pool?

A number that is not given is unknown to the decision, not 0. Nothing is learned yet: the policy's
own values and defaults stand where `serve` goes by what it measured.

exit codes:
  0 decided   2 usage, or a policy that cannot be used
"""


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "whatif",
        help="numbers in, decision and reasons out; no cluster",
        description="Decide on a pool with these numbers, by the loop that `serve` runs, and say\n"
        "why, what holds, and what an HPA or KEDA will make of the count.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("policy", type=Path, metavar="FILE", help="the ScalingPolicy")
    parser.add_argument(
        "--policy-name", metavar="NAME", help="which policy, if the file has several"
    )
    pool = parser.add_argument_group("the pool")
    pool.add_argument("--serving", type=whole, required=True, metavar="N", help="replicas")
    pool.add_argument("--loading", type=whole, default=0, metavar="N", help="replicas; default: 0")
    pool.add_argument("--published", type=count, metavar="N", help="default: serving + loading")
    numbers = parser.add_argument_group("the numbers: of the whole pool, or N,N,… by replica")
    numbers.add_argument("--running", metavar="N[,N…]", help="requests in the running batches")
    numbers.add_argument("--waiting", metavar="N[,N…]", help="requests that wait in the engines")
    numbers.add_argument("--kv", metavar="RATIO[,…]", help="KV cache usage of each, 0 to 1")
    numbers.add_argument(
        "--ttft", metavar="DURATION", help="first token, at the quantile that the policy watches"
    )
    for option in ("--ttft-p50", "--ttft-p90", "--ttft-p95", "--ttft-p99"):
        numbers.add_argument(option, metavar="DURATION", help="the same, if that is the quantile")
    numbers.add_argument(
        "--for", dest="stood_for", metavar="DURATION", help="how long they stand; default: 1m"
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")


def run(arguments: argparse.Namespace) -> int:
    """Decide on the numbers, tell why, and return the exit code."""
    # Policies and the decision take longer to load than `leadtime --help` may.
    from adapter.cli.backtesting.inputs import policy_of
    from adapter.cli.supposing.options import supposed_of
    from adapter.cli.supposing.pool import decide
    from adapter.cli.supposing.told import as_json, as_text
    from adapter.controller.errors import AdapterError
    from adapter.sources.clock import SystemClock

    try:
        policy = policy_of(arguments)
        supposed = supposed_of(arguments, policy)
    except AdapterError as error:
        print(f"leadtime whatif: {error}", file=sys.stderr)
        return UNUSABLE
    decision = decide(policy, supposed, at=SystemClock().now())
    told = as_json if arguments.output == "json" else as_text
    sys.stdout.write(told(policy, supposed, decision))
    return FINE
