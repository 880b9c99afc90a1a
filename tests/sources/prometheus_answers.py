"""Answers of a Prometheus, made up series by series, and a server that gives them."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qs

from tests.build import T0
from tests.sources.servers import request

Found = list[dict[str, Any]]

TARGET = {"job": "engines", "namespace": "inference"}


def labels_of(pod: str, **more: str) -> dict[str, str]:
    return {**TARGET, "instance": f"{pod}:8000", "pod": pod, **more}


def an_up(pod: str, value: str = "1", **more: str) -> dict[str, Any]:
    return {"metric": {"__name__": "up", **labels_of(pod, **more)}, "value": [T0, value]}


def a_series(
    pod: str, name: str, values: Iterable[tuple[float, str]], **more: str
) -> dict[str, Any]:
    """Return a series of vLLM; the times are seconds before ``T0``."""
    return {
        "metric": {"__name__": f"vllm:{name}", "model_name": "m", **labels_of(pod), **more},
        "values": [[T0 - ago, value] for ago, value in values],
    }


def an_engine(pod: str, *, ago: float = 3, running: str = "4", **more: str) -> Found:
    """Return two scrapes, 15 s apart, of one pod."""
    return [
        a_series(pod, "num_requests_running", [(ago + 15, "1"), (ago, running)], **more),
        a_series(pod, "num_requests_waiting", [(ago + 15, "0"), (ago, "2")], **more),
        a_series(pod, "generation_tokens_total", [(ago + 15, "100"), (ago, "250")], **more),
    ]


def success(found: object, **more: object) -> object:
    return {"status": "success", "data": found, **more}


class Store:
    """What a Prometheus says; tests change it between the ticks."""

    def __init__(self, ups: Found, engines: Found) -> None:
        self.ups, self.engines = ups, engines
        self.warnings: list[str] = []
        self.paths: list[str] = []
        self.heads: list[bytes] = []
        self.forms: list[dict[str, list[str]]] = []
        self.names: dict[str, list[str]] = {}

    def reply(self, path: str, form: dict[str, list[str]]) -> object:
        if path.endswith(("/query", "/query_range")):
            ups = form["query"][0].startswith("up{")
            kind = "vector" if ups else "matrix"
            found = {"resultType": kind, "result": self.ups if ups else self.engines}
            return success(found, **({"warnings": self.warnings} if self.warnings else {}))
        return success(self.names.get(path.partition("/api/v1/")[2].partition("?")[0], []))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request(reader):
            length = next(
                (int(line.split(b":")[1]) for line in head.splitlines() if b"ength:" in line), 0
            )
            form = parse_qs((await reader.readexactly(length)).decode())
            self.heads.append(head)
            self.forms.append(form)
            self.paths.append(path := head.split()[1].decode())
            body = json.dumps(self.reply(path, form)).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
