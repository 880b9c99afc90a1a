"""What ``leadtime probe`` looks at: one generation, a replica's progress, left-over memory."""

import argparse
import fcntl
import hashlib
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from adapter.cli.verification import Asked, VerifyError, headers_of
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Reading
from adapter.fleet.smoke.ask import Ask, UnusableAnswerError
from adapter.sources.clock import SystemClock
from adapter.sources.smoke import Endpoint, EndpointError, endpoints_of

GLANCE_SECONDS: Final = 1.0
"""Between two looks at a busy replica's counters; a step of any engine takes less."""

_PROGRESS: Final = (Metric.GENERATION_TOKENS, Metric.ENGINE_STEPS, Metric.PROMPT_TOKENS)
_TRITON_SEGMENTS: Final = "triton_*"


class ProbeError(ValueError):
    """The command line asks for something that cannot be done."""


def generation(arguments: argparse.Namespace) -> tuple[str, ...]:
    """Return why the replica is not ready; empty when it is.

    Raises:
        ProbeError: no address, or half of a pair of options.
    """
    try:
        endpoint = endpoints_of(arguments.url, headers_of(arguments.header_file))[0]
        asked = Asked.of(arguments)
    except (EndpointError, VerifyError) as error:
        raise ProbeError(str(error)) from error
    with _alone(arguments) as alone:
        if not alone:
            return ("the probe before is still waiting for its answer: the engine hangs",)
        if arguments.busy_metrics and _gets_on(asked, endpoint, arguments.busy_metrics):
            return ()
        findings = asked.smoke(endpoint)
    return tuple(f"{one.fault}: {one.detail}" for one in findings)


def shared_memory(folder: str) -> tuple[str, ...]:
    """Return the Triton segments in ``folder`` that no living process has mapped.

    A new Triton that finds the segments of a dead one under its own names may answer from them,
    or fail to start its Python back ends.

    Raises:
        ProbeError: no such folder.
    """
    place = Path(folder)
    if not place.is_dir():
        raise ProbeError(f"{folder}: no such folder; give --shm-dir")
    segments = sorted(str(path) for path in place.glob(_TRITON_SEGMENTS))
    if not segments:
        return ()
    mapped = _mapped()
    return tuple(
        f"stale shared memory: {segment} is mapped by no process; remove it before Triton starts"
        for segment in segments
        if segment not in mapped
    )


@contextmanager
def _alone(arguments: argparse.Namespace) -> Iterator[bool]:
    """Hold the lock of this replica's probes; False where another probe holds it.

    The lock goes with the process: a probe that the kubelet kills lets go of it.
    """
    name = hashlib.sha256(arguments.url.encode()).hexdigest()[:16]
    path = arguments.lock or f"{tempfile.gettempdir()}/leadtime-probe-{name}.lock"
    try:
        file = Path(path).open("w")  # noqa: SIM115 - held past this line, closed below
    except OSError as error:
        raise ProbeError(
            f"{path}: {error.strerror}; give --lock FILE in a writable place"
        ) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def _gets_on(asked: Asked, endpoint: Endpoint, path: str) -> bool:
    """Return whether the replica has work in hand and its counters move."""
    first = _reading(asked, endpoint, path)
    if first is None or not first.values.get(Metric.REQUESTS_RUNNING):
        return False
    time.sleep(GLANCE_SECONDS)
    second = _reading(asked, endpoint, path)
    return second is not None and any(
        second.values[metric] > first.values[metric]
        for metric in _PROGRESS
        if metric in first.values and metric in second.values
    )


def _reading(asked: Asked, endpoint: Endpoint, path: str) -> Reading | None:
    # the exposition parser takes longer to load than a probe without --busy-metrics may.
    from adapter.fleet.read import read_exposition

    try:
        answer = asked.prober.send(endpoint, Ask(path, method="GET"))
    except UnusableAnswerError:
        return None
    found = read_exposition(
        answer.body, engine="auto", model=None, at=SystemClock().now(), target=endpoint.url
    )
    return found if isinstance(found, Reading) else None


def _mapped() -> frozenset[str]:
    """Return every file under shared memory that some process has mapped or open."""
    return frozenset(path for process in Path("/proc").glob("[0-9]*") for path in _used(process))


def _used(process: Path) -> Iterable[str]:
    try:
        lines = (process / "maps").read_text(encoding="utf-8", errors="replace").splitlines()
        yield from (line.split(maxsplit=5)[5] for line in lines if "triton_" in line)
        yield from (str(link.readlink()) for link in (process / "fd").iterdir())
    except OSError:  # gone meanwhile, or another user's
        return
