"""A client that reads one address as fast as it is answered, on connections that it keeps.

``python -m adapter.cli.benchmarks.reader``: a process of its own, so that its work is not
measured as the server's. It asks on every connection, then reads every answer, again and again.
"""

import argparse
import json
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

HPA: Final = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
TIMEOUT_SECONDS: Final = 10.0


def latencies(sockets: Sequence[socket.socket], request: bytes, *, seconds: float) -> list[float]:
    """Return how long each answer took, in seconds, over ``seconds`` of asking."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        asked = []
        for connection in sockets:
            asked.append(time.perf_counter())
            connection.sendall(request)
        for connection, began in zip(sockets, asked, strict=True):
            _check(_answer(connection))
            took.append(time.perf_counter() - began)
    return took


def _answer(connection: socket.socket) -> bytes:
    """Return one whole answer, whose length its head says."""
    received = b""
    while True:
        head, parted, body = received.partition(b"\r\n\r\n")
        if parted and len(body) >= _length(head):
            return received
        piece = connection.recv(65536)
        if not piece:
            raise ConnectionError("the server hung up")
        received += piece


def _length(head: bytes) -> int:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    raise ConnectionError(f"an answer without a length: {head[:80]!r}")


def _check(answer: bytes) -> None:
    if not answer.startswith(b"HTTP/1.1 200 ") or b'"metricName"' not in answer:
        raise ConnectionError(f"not the metric: {answer[:400]!r}")


def _request(url: str) -> bytes:
    """Return what the aggregator sends on for the HPA controller."""
    place = urlsplit(url)
    lines = (
        f"GET {place.path}?{place.query} HTTP/1.1",
        f"Host: {place.netloc}",
        "Accept: application/vnd.kubernetes.protobuf, */*",
        "Accept-Encoding: gzip",
        f"X-Remote-User: {HPA}",
        "X-Remote-Group: system:serviceaccounts",
        "X-Remote-Group: system:authenticated",
    )
    return "\r\n".join([*lines, "", ""]).encode()


def _connected(options: argparse.Namespace) -> socket.socket:
    place = urlsplit(options.url)
    connection = socket.create_connection((place.hostname, place.port), TIMEOUT_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if place.scheme != "https":
        return connection
    context = ssl.create_default_context(cafile=options.ca)
    context.load_cert_chain(options.certificate)
    return context.wrap_socket(connection, server_hostname=place.hostname)


def main() -> None:
    """Print what was measured as JSON: reads per second, and percentiles in milliseconds."""
    parser = argparse.ArgumentParser(description="Read one address as fast as it is answered.")
    parser.add_argument("url")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--ca", help="who signed the server's certificate, PEM")
    parser.add_argument("--certificate", help="the client's certificate and key, PEM")
    options = parser.parse_args()
    sockets = [_connected(options) for _ in range(options.connections)]
    request = _request(options.url)
    latencies(sockets, request, seconds=options.seconds / 10)
    took = sorted(latencies(sockets, request, seconds=options.seconds))
    facts = {
        "readsPerSecond": len(took) / options.seconds,
        "p50Milliseconds": 1e3 * took[len(took) // 2],
        "p99Milliseconds": 1e3 * took[len(took) * 99 // 100],
    }
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
