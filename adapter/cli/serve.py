"""``leadtime serve``: the adapter itself, from policy files to external.metrics.k8s.io."""

import argparse
import asyncio
import logging
import resource
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from adapter.cli.listeners import Listening, listening, unusable
from adapter.cli.options import port

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from adapter.controller.board import Board

FINE, FOUND, UNUSABLE, INTERRUPTED = 0, 1, 2, 130

OPEN_FILES: Final = 65_536

_EPILOG: Final = """\
examples:
  leadtime serve --policies policies/ --insecure-http --port 8080        try it on this machine
  leadtime serve --policies /etc/leadtime --state /var/lib/leadtime \\
    --tls-cert tls.crt --tls-key tls.key --requestheader-ca front.crt      behind an APIService
  leadtime serve --policies /etc/leadtime --state /var/lib/leadtime \\
    --tls-cert tls.crt --tls-key tls.key --keda-port 9090                  for KEDA, without one

A policy file with an error is shown as lint shows it; the good ones are served, and the broken
one is taken up as soon as it is mended. Files are followed while the adapter runs.

exit codes:
  0 stopped by SIGTERM   1 there are policy files, and not one usable policy in them
  2 wrong options, no such directory, port taken   130 interrupted (Ctrl-C)
"""

LOG_LEVELS: Final = ("debug", "info", "warning", "error")


def add_parser(verbs: "argparse._SubParsersAction[Any]") -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "serve",
        help="run the adapter",
        description="Scrape the engines of every policy, decide, and answer\n"
        "external.metrics.k8s.io with the wanted number of replicas.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--policies", required=True, type=Path, metavar="DIR")
    parser.add_argument("--host", help="default: every address; 127.0.0.1 with --insecure-http")
    parser.add_argument("--port", type=port, default=6443, help="default 6443; 0 picks a free one")
    parser.add_argument("--tls-cert", type=Path, metavar="FILE")
    parser.add_argument("--tls-key", type=Path, metavar="FILE")
    parser.add_argument(
        "--requestheader-ca", type=Path, metavar="FILE", help="who may speak for users: the CA"
    )
    parser.add_argument(
        "--requestheader-allowed-name",
        action="append",
        metavar="NAME",
        help="common name of the front proxy's certificate; default: front-proxy-client",
    )
    parser.add_argument(
        "--allow-user",
        action="append",
        default=[],
        metavar="NAME",
        help="may read metrics, beside the HPA controller",
    )
    parser.add_argument(
        "--keda-port",
        type=port,
        metavar="PORT",
        help="answer KEDA's external scaler here, with the same TLS; default: do not",
    )
    parser.add_argument(
        "--keda-client-ca",
        type=Path,
        metavar="FILE",
        help="who may call the external scaler: the CA of KEDA's certificate; default: anybody",
    )
    parser.add_argument(
        "--api-keys",
        type=Path,
        metavar="FILE",
        help="who may read /api/v1, for KEDA's metrics-api: one NAME:SECRET a line",
    )
    parser.add_argument(
        "--insecure-http", action="store_true", help="no TLS, no authentication; loopback only"
    )
    parser.add_argument(
        "--state", type=Path, metavar="DIR", help="keep the memory here; default: none, in memory"
    )
    parser.add_argument(
        "--record",
        type=Path,
        metavar="DIR",
        help="write what is seen and decided here, for `leadtime backtest --recording`",
    )
    parser.add_argument("--log-level", choices=LOG_LEVELS, default="info")


def run(arguments: argparse.Namespace) -> int:
    """Serve until told to stop, and return the exit code."""
    # Until the loop takes over: a kubelet that gives up a pod at once must not read a failure.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(FINE))
    problem = _unusable(arguments)
    if problem:
        print(f"leadtime serve: {problem}", file=sys.stderr)
        return UNUSABLE
    _start_log(arguments.log_level)
    _raise_file_limit()
    return asyncio.run(_serve(arguments))


async def _serve(options: argparse.Namespace) -> int:
    told = _Told()
    # aiohttp, pydantic and yaml take longer to load than `leadtime serve --help` may.
    from adapter.cli.output import as_text
    from adapter.controller.board import Board
    from adapter.controller.supervisor import Supervisor, World
    from adapter.serving.telemetry import Meters
    from adapter.sources.clock import SystemClock
    from adapter.sources.opening import LocalSources
    from adapter.sources.policy_files import PolicyDirectory
    from adapter.sources.recorder import RecordedBoard, Recorder, recorded
    from adapter.sources.scrape import Scraper
    from adapter.sources.state_file import MemoryStates, StateFiles

    recorder = Recorder(options.record) if options.record else None
    clock, board = SystemClock(), RecordedBoard(recorder) if recorder else Board()
    meters = Meters(board, clock=clock)
    async with Scraper(clock) as scraper:
        world = World(
            sources=LocalSources(scraper, clock),
            store=StateFiles(options.state) if options.state else MemoryStates(),
            board=board,
            clock=clock,
            telemetry=meters,
        )
        if recorder:
            world = recorded(world, recorder)
        supervisor = Supervisor(PolicyDirectory(options.policies), world)
        findings = await supervisor.load()
        sys.stderr.write(as_text(findings))
        if findings and not board.all():
            print("leadtime serve: no usable policy; mend what stands above", file=sys.stderr)
            return FOUND
        async with listening(options, board, clock=clock, meters=meters) as places:
            work = [supervisor.run(), *(tls.follow(clock, meters) for tls in places.tls)]
            work += [keys.follow(clock) for keys in places.keys]
            return await _until_told(told, work, board, places)


async def _until_told(
    told: "_Told", work: "Sequence[Coroutine[Any, Any, None]]", board: "Board", places: Listening
) -> int:
    """Work until told to stop; say that it is ready once there is something to ask for."""
    working = [asyncio.create_task(each) for each in work]
    stopping = asyncio.create_task(told.to_stop())
    decided = asyncio.create_task(_first_decisions(board))
    await asyncio.wait({*working, stopping, decided}, return_when=asyncio.FIRST_COMPLETED)
    print(_greeting(board, places), file=sys.stderr, flush=True)
    await asyncio.wait({*working, stopping}, return_when=asyncio.FIRST_COMPLETED)
    broken = [task for task in working if task.done()]
    for task in (*working, stopping, decided):
        task.cancel()
    await asyncio.wait({*working, stopping, decided})
    for task in broken:
        task.result()
    return told.code


async def _first_decisions(board: "Board") -> None:
    """Return when every policy is decided or cannot be, or after a second."""
    for _ in range(50):
        if all(listing.decision or listing.failure for listing in board.all()):
            return
        await asyncio.sleep(0.02)


class _Told:
    """Whether, and by what, the process was told to stop; the second time it stops at once."""

    def __init__(self) -> None:
        self.code = FINE
        self._stop = asyncio.Event()
        for number, code in ((signal.SIGTERM, FINE), (signal.SIGINT, INTERRUPTED)):
            asyncio.get_running_loop().add_signal_handler(number, self._stops, number, code)

    async def to_stop(self) -> None:
        """Return when told to."""
        await self._stop.wait()

    def _stops(self, number: int, code: int) -> None:
        self.code = code
        self._stop.set()
        asyncio.get_running_loop().remove_signal_handler(number)


def _greeting(board: "Board", places: Listening) -> str:
    """Return one line: where it listens, and what to ask for."""
    listings = board.all()
    served = [listing for listing in listings if not listing.failure]
    counted = f"{len(served)} {'policy' if len(served) == 1 else 'policies'}"
    line = f"leadtime serve: {counted} on {places.address}"
    if places.scaler is not None:
        line += f"; KEDA's external scaler on {places.scaler}"
    if not listings:
        return f"{line}; waiting for the first *.yaml"
    failed = ", ".join(str(listing.key) for listing in listings if listing.failure)
    if failed:
        line += f"; cannot serve {failed}: the reason stands above, and in the answer (503)"
    if not served:
        return line
    key = served[0].key
    path = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/{key.namespace}"
    metric = f"leadtime-desired-replicas?labelSelector=policy%3D{key.name}"
    return f"{line}; try: {places.address}{path}/{metric}"


def _start_log(level: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    form = logging.Formatter(
        "time=%(asctime)s level=%(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%SZ"
    )
    form.converter = time.gmtime
    handler.setFormatter(form)
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger("leadtime").setLevel(level.upper())


def _raise_file_limit() -> None:
    """Allow one connection per target: the usual soft limit of 1024 is a few hundred replicas."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))


def _unusable(options: argparse.Namespace) -> str:
    """Return what keeps these options from being used, with the way out; empty: nothing."""
    problem = unusable(options)
    if problem:
        return problem
    if not options.policies.is_dir():
        return f"--policies {options.policies}: no such directory; it holds the policies' *.yaml"
    return ""
