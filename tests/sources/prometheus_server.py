"""A real Prometheus on loopback, and the engines that it scrapes."""

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

PATIENCE = 40.0


class Exporters:
    """Engines behind one port, each at a path of its own; a body of None is a refusal."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes | None] = {}
        bodies = self.bodies

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = bodies.get(self.path.lstrip("/"))
                self.send_response(503 if body is None else 200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Prometheus:
    """A running Prometheus that follows a file of targets."""

    def __init__(self, url: str, targets: Path, fleets: Mapping[str, Sequence[str]]) -> None:
        self.url, self._targets, self._fleets = url, targets, dict(fleets)

    def loses(self, exporters: Exporters, namespace: str, pod: str) -> None:
        """Take a pod off the list, as its end in Kubernetes does."""
        self._fleets[namespace] = [one for one in self._fleets[namespace] if one != pod]
        fresh = self._targets.with_suffix(".new")
        fresh.write_text(_targets(exporters, self._fleets))
        fresh.rename(self._targets)

    def value(self, query: str) -> float | None:
        """Return what a query that yields one number yields."""
        with urlopen(f"{self.url}/api/v1/query?query={quote(query)}") as answer:  # noqa: S310 - loopback
            result = json.load(answer)["data"]["result"]
        return float(result[0]["value"][1]) if result else None

    def until(self, true: Callable[["Prometheus"], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not true(self):
            assert time.monotonic() < end, "it did not come true"
            threading.Event().wait(0.05)


def _targets(exporters: Exporters, fleets: Mapping[str, Sequence[str]]) -> str:
    return json.dumps(
        [
            {
                "targets": [exporters.address],
                "labels": {
                    "__metrics_path__": f"/{namespace}/{pod}",
                    "instance": f"{pod}:8000",
                    "pod": pod,
                    "namespace": namespace,
                },
            }
            for namespace, pods in fleets.items()
            for pod in pods
        ]
    )


@contextmanager
def a_prometheus(
    path: Path,
    exporters: Exporters,
    fleets: Mapping[str, Sequence[str]],
    *,
    external: Mapping[str, str] | None = None,
) -> Iterator[Prometheus]:
    """Start one over the pods of each namespace, its data under ``path``; stop it at the end."""
    binary = shutil.which("prometheus")
    if binary is None:
        pytest.skip("no prometheus on the PATH: install it to test the source against a real one")
    targets = path / "targets.json"
    targets.write_text(_targets(exporters, fleets))
    config = {
        "global": {
            "scrape_interval": "2s",
            "scrape_timeout": "2s",
            "external_labels": dict(external or {}),
        },
        "scrape_configs": [
            {
                "job_name": "engines",
                "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}],
            }
        ],
    }
    (path / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (path / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                binary,
                f"--config.file={path / 'prometheus.yml'}",
                f"--storage.tsdb.path={path / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
                "--storage.tsdb.retention.time=10y",
            ],
            stdout=log,
            stderr=log,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _await_ready(url, process, path / "log")
        yield Prometheus(url, targets, fleets)
    finally:
        process.terminate()
        process.wait(10)


def _await_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text()
        try:
            with urlopen(f"{url}/-/ready"):  # noqa: S310 - loopback
                return
        except OSError:
            threading.Event().wait(0.05)
    raise AssertionError(f"not ready in {PATIENCE} s:\n{log.read_text()}")
