"""The processes of a benchmark: started on loopback, and ended whatever happens.

Each has a session of its own, so that Ctrl-C reaches the benchmark, which then ends them in turn.
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prometheus_client.parser import text_string_to_metric_families

from adapter.controller.errors import AdapterError

READY_WITHIN_SECONDS: Final = 30.0
"""Far above the one or two that a start takes."""

_SERVE: Final = (sys.executable, "-m", "adapter", "serve", "--port", "0")
_LISTENS: Final = re.compile(r"leadtime serve: \d+ polic\S+ on (\S+?);")


class BenchmarkError(AdapterError):
    """A process of the benchmark did not do its part: exit code 2 at the command line."""


@contextmanager
def engines(models: Sequence[str]) -> Iterator[list[str]]:
    """Run made-up engines, one for each model; give their metrics' addresses."""
    process = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "adapter.cli.benchmarks.engines", *models],
        stdin=subprocess.PIPE,
        start_new_session=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    with _ended(process):
        said = process.stdout.readline() if process.stdout else ""
        if not said:
            raise BenchmarkError("the benchmark's engines did not start; see above why")
        yield [f"http://127.0.0.1:{port}/metrics" for port in json.loads(said)]


@contextmanager
def adapter(directory: Path, options: Sequence[str]) -> Iterator[str]:
    """Run ``leadtime serve`` over the policies in ``directory``; give its base address."""
    log = directory / "serve.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(  # noqa: S603 - our own module
            [*_SERVE, "--policies", str(directory), *options],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            stderr=stream,
        )
    with _ended(process):
        yield _address(process, log)


def metrics_of(base: str) -> dict[str, float]:
    """Return the adapter's own metrics, summed over their labels."""
    address = f"{base}/metrics"
    with urllib.request.urlopen(address, timeout=READY_WITHIN_SECONDS) as answer:  # noqa: S310 - our own
        text = answer.read().decode()
    totals: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            totals[sample.name] = totals.get(sample.name, 0.0) + sample.value
    return totals


@contextmanager
def _ended(process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> Iterator[None]:
    """End the process as it ends by itself; one that does not within ten seconds is killed."""
    with process:
        try:
            yield
        finally:
            if process.stdin is not None:
                process.stdin.close()
            else:
                process.terminate()
            try:
                process.wait(timeout=10.0)
            except subprocess.TimeoutExpired:
                process.kill()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    end = time.perf_counter() + READY_WITHIN_SECONDS
    while True:
        said = log.read_text(errors="replace")
        found = _LISTENS.search(said)
        if found:
            return found[1]
        if process.poll() is not None or time.perf_counter() > end:
            raise BenchmarkError(f"leadtime serve did not start: {said.strip() or 'no word'}")
        time.sleep(0.05)
