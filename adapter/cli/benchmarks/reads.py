"""How fast the metric endpoint answers, over plain HTTP and over TLS as behind an APIService."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.processes import BenchmarkError, adapter, engines
from adapter.serving.external_metrics.authn import RequestHeader
from adapter.serving.pki import Authority
from adapter.sources.clock import SystemClock

AT_ONCE: Final = 8
"""Connections that ask all the time, for the throughput; one alone is for the latency."""

HOST: Final = "127.0.0.1"
PATH: Final = (
    "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/"
    "leadtime-desired-replicas?labelSelector=policy%3Dbench"
)


@dataclass(frozen=True, slots=True)
class _Way:
    """How the server listens and how the client connects."""

    name: str
    server: tuple[str, ...]
    client: tuple[str, ...] = ()


def measure(*, seconds: float = 20.0) -> tuple[Figure, ...]:
    """Return reads per second and percentiles in milliseconds, measured for ``seconds`` in all.

    Raises:
        BenchmarkError: the server or the client did not do its part.
    """
    with tempfile.TemporaryDirectory() as place, engines(["llama-70b"]) as addresses:
        directory = Path(place)
        write_policy(directory, addresses)
        ways = (_Way("http", ("--insecure-http",)), _secured(directory))
        return tuple(
            figure
            for way in ways
            for figure in _figures(way, directory, seconds=seconds / len(ways))
        )


def write_policy(directory: Path, addresses: Sequence[str]) -> None:
    """Write the policy ``bench`` over the first of ``addresses``."""
    (directory / "bench.yaml").write_text(
        "apiVersion: leadtime.dev/v1alpha1\n"
        "kind: ScalingPolicy\n"
        "metadata: {name: bench}\n"
        "spec:\n"
        f"  source: {{static: {{urls: [{addresses[0]}]}}}}\n"
        "  replicas: {min: 1, max: 100}\n"
    )


def _secured(directory: Path) -> _Way:
    """Return TLS both ways, with certificates made now."""
    now = SystemClock().now()
    serving, proxy = Authority("serving", now=now), Authority("front-proxy", now=now)
    server, client = serving.server([HOST]), proxy.client(RequestHeader().allowed_names[0])
    contents = {
        "tls.crt": server.certificate,
        "tls.key": server.key,
        "front-proxy.crt": proxy.certificate,
        "serving-ca.crt": serving.certificate,
        "client.pem": client.certificate + client.key,
    }
    files = {name: directory / name for name in contents}
    for name, content in contents.items():
        files[name].write_bytes(content)
    return _Way(
        "tls",
        (
            *("--host", HOST, "--tls-cert", str(files["tls.crt"])),
            *("--tls-key", str(files["tls.key"])),
            *("--requestheader-ca", str(files["front-proxy.crt"])),
        ),
        ("--ca", str(files["serving-ca.crt"]), "--certificate", str(files["client.pem"])),
    )


def _figures(way: _Way, directory: Path, *, seconds: float) -> Iterator[Figure]:
    with adapter(directory, [*way.server, "--log-level", "error"]) as base:
        busy = read(base, way.client, connections=AT_ONCE, seconds=seconds / 2)
        alone = read(base, way.client, connections=1, seconds=seconds / 2)
    yield Figure(f"{way.name}.readsPerSecond", busy["readsPerSecond"])
    yield Figure(f"{way.name}.busyP99Milliseconds", busy["p99Milliseconds"])
    yield Figure(f"{way.name}.aloneP50Milliseconds", alone["p50Milliseconds"])
    yield Figure(f"{way.name}.aloneP99Milliseconds", alone["p99Milliseconds"])


def read(base: str, client: Sequence[str], *, connections: int, seconds: float) -> dict[str, float]:
    """Return what ``reader`` measures at ``base``; ``client`` are its options for TLS.

    Raises:
        BenchmarkError: an answer was not the metric, or there was none.
    """
    size = ("--connections", str(connections), "--seconds", str(seconds))
    done = subprocess.run(  # noqa: S603 - our own module
        [sys.executable, "-m", "adapter.cli.benchmarks.reader", base + PATH, *client, *size],
        capture_output=True,
        text=True,
        timeout=60 + 2 * seconds,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"the reader failed: {done.stderr.strip().splitlines()[-1]}")
    facts: dict[str, float] = json.loads(done.stdout)
    return facts
