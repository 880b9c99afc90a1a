"""What a large KEDA costs us: 1,500 ScaledObjects, each evaluated every 15 s (keda#3670)."""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.processes import BenchmarkError, adapter, engines, metrics_of
from adapter.cli.benchmarks.reads import write_policy

OBJECTS: Final = 1500
PERIOD_SECONDS: Final = 15.0
"""How often an HPA reads; each reading is three calls."""

CPU: Final = "process_cpu_seconds_total"

_SCALER: Final = re.compile(r"external scaler on grpcs?://(\S+?:\d+)")


def measure(
    *, seconds: float = 20.0, objects: int = OBJECTS, period: float = PERIOD_SECONDS
) -> tuple[Figure, ...]:
    """Return the CPU share, and how long a call takes; the ticks of one policy are in it.

    Raises:
        BenchmarkError: the scaler or the caller did not do its part.
    """
    with tempfile.TemporaryDirectory() as place, engines(["llama-70b"]) as addresses:
        directory = Path(place)
        write_policy(directory, addresses)
        return tuple(_figures(directory, objects=objects, period=period, seconds=seconds))


def _figures(directory: Path, *, objects: int, period: float, seconds: float) -> Iterator[Figure]:
    # The own metrics are read over plain HTTP, so the scaler is measured in plain text as well.
    options = ["--insecure-http", "--keda-port", "0", "--log-level", "error"]
    with adapter(directory, options) as base:
        found = _SCALER.search((directory / "serve.log").read_text())
        if found is None:
            raise BenchmarkError("leadtime serve did not say where its external scaler listens")
        before = metrics_of(base)[CPU]
        facts = _called(found[1], objects=objects, period=period, seconds=seconds)
        spent = metrics_of(base)[CPU] - before
    yield Figure("callsPerSecond", facts["callsPerSecond"])
    yield Figure("cpuPercentOfOneCore", 100 * spent / seconds)
    yield Figure("p50Milliseconds", facts["p50Milliseconds"])
    yield Figure("p99Milliseconds", facts["p99Milliseconds"])


def _called(address: str, *, objects: int, period: float, seconds: float) -> dict[str, float]:
    size = ("--objects", str(objects), "--period", str(period), "--seconds", str(seconds))
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "adapter.cli.benchmarks.keda_caller", address, *size],
        capture_output=True,
        text=True,
        timeout=60 + 2 * seconds,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"the caller failed: {done.stderr.strip().splitlines()[-1]}")
    facts: dict[str, float] = json.loads(done.stdout)
    return facts
