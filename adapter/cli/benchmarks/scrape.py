"""What ``leadtime serve`` costs over a thousand engines: CPU and memory of its process."""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from adapter.cli.benchmarks.engine_text import engine_text
from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.processes import BenchmarkError, adapter, engines, metrics_of

TARGETS: Final = 1000
POLICIES: Final = 10
INTERVAL_SECONDS: Final = 5.0
CORES: Final = 0.5
MEBIBYTES: Final = 300.0

WARM_AFTER: Final = 2
"""Intervals: in the first one every series is new, which happens once."""

_CPU: Final = "process_cpu_seconds_total"
_MEMORY: Final = "process_resident_memory_bytes"


def measure(
    *, targets: int = TARGETS, interval: float = INTERVAL_SECONDS, seconds: float = 20.0
) -> tuple[Figure, ...]:
    """Return the figures of ``targets`` engines scraped every ``interval`` for ``seconds``.

    Raises:
        BenchmarkError: an engine was not read, so that the figures would flatter.
    """
    models = [f"llama-70b-{number % POLICIES}" for number in range(targets)]
    with tempfile.TemporaryDirectory() as place, engines(models) as addresses:
        directory = Path(place)
        _write_policies(directory, addresses, interval)
        with adapter(directory, ["--insecure-http", "--log-level", "error"]) as base:
            time.sleep(WARM_AFTER * interval)
            watched = _watched(base, seconds)
    return figures(watched, targets=targets, interval=interval)


def _write_policies(directory: Path, addresses: Sequence[str], interval: float) -> None:
    for number in range(POLICIES):
        own = ", ".join(addresses[number::POLICIES])
        (directory / f"{number}.yaml").write_text(
            "apiVersion: leadtime.dev/v1alpha1\n"
            "kind: ScalingPolicy\n"
            f"metadata: {{name: bench-{number}}}\n"
            "spec:\n"
            f"  source: {{static: {{urls: [{own}], interval: {round(interval * 1000)}ms}}}}\n"
            f"  replicas: {{min: 1, max: {2 * len(addresses)}}}\n"
        )


def _watched(base: str, seconds: float) -> list[tuple[float, dict[str, float]]]:
    """Return the adapter's own metrics with the time, at the beginning and once a second."""
    began = time.perf_counter()
    seen = [(began, metrics_of(base))]
    while seen[-1][0] < began + seconds:
        time.sleep(1.0)
        seen.append((time.perf_counter(), metrics_of(base)))
    return seen


def figures(
    watched: Sequence[tuple[float, dict[str, float]]], *, targets: int, interval: float
) -> tuple[Figure, ...]:
    """Return what the adapter's own metrics of ``watched`` come to.

    The cores are those of all scrapes that are due: on a machine that is too busy for some of
    them, those that were made must not pass for all.

    Raises:
        BenchmarkError: not every engine was read each time, or the system does not tell.
    """
    (began, first), (ended, last) = watched[0], watched[-1]
    if _CPU not in first:
        raise BenchmarkError("only Linux tells what a process costs: run it there")
    ticks = last["leadtime_tick_duration_seconds_count"]
    ticks -= first["leadtime_tick_duration_seconds_count"]
    missed = last.get("leadtime_source_errors_total", 0.0)
    missed -= first.get("leadtime_source_errors_total", 0.0)
    serving = min(seen["leadtime_serving_replicas"] for _, seen in watched)
    if missed or serving < targets:
        raise BenchmarkError(
            f"{missed:g} scrapes failed and {serving:g} of {targets} engines serve: "
            f"the machine is too busy to measure it; try again when it is not"
        )
    took = last["leadtime_tick_duration_seconds_sum"] - first["leadtime_tick_duration_seconds_sum"]
    scrapes = ticks * targets / POLICIES
    cpu_seconds = (last[_CPU] - first[_CPU]) / scrapes
    return (
        Figure("targets", targets),
        Figure("kilobytesPerTarget", len(engine_text("llama-70b-0", engine=0, scrape=0)) / 1e3),
        Figure("intervalSeconds", interval),
        Figure("scrapesPerSecond", scrapes / (ended - began)),
        Figure("cpuMicrosecondsPerScrape", 1e6 * cpu_seconds),
        Figure("cores", cpu_seconds * targets / interval, at_most=CORES),
        Figure(
            "peakResidentMebibytes",
            max(seen[_MEMORY] for _, seen in watched) / 2**20,
            at_most=MEBIBYTES,
        ),
        Figure("meanTickMilliseconds", 1e3 * took / ticks),
    )
