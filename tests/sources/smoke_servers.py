"""Engines on loopback for smoke requests: fresh ones, and each way of being stale."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, dict[str, str], object]
"""Status, headers, body: bytes as they are, anything else as JSON."""

Behaviour = Callable[[str, dict[str, object]], Reply]
"""Path and request body to the reply."""


@contextmanager
def engine(behaviour: Behaviour) -> Iterator[str]:
    """Serve ``behaviour`` on a free port; yield the base address."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = self.rfile.read(length)
            status, headers, said = behaviour(self.path, json.loads(body) if body else {})
            sent = said if isinstance(said, bytes) else json.dumps(said).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(sent)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(sent)

        do_GET = _answer  # noqa: N815 - the library's name
        do_POST = _answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def vllm(*, root: str = "/weights/7", headers: dict[str, str] | None = None) -> Behaviour:
    """Return an engine that echoes its prompt, with an id of its own for each answer."""
    count = iter(range(1_000_000))

    def behave(path: str, body: dict[str, object]) -> Reply:
        if path == "/v1/models":
            return 200, {}, {"data": [{"id": "m", "root": root}]}
        if path == "/v1/completions":
            text = f"about {body['prompt']}"
            answer = {"id": f"cmpl-{next(count)}", "model": "m", "choices": [{"text": text}]}
            return 200, headers or {}, answer
        return 404, {}, b""

    return behave
