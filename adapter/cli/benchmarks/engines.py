"""A thousand engines' metrics endpoints in one process: ``python -m`` and this module's name.

Each has a port of its own, hence a connection of its own, as pods have. They cost as little as
they can, because they share the machine with what is measured.
"""

import argparse
import asyncio
import itertools
import json
import resource
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final, cast

from adapter.cli.benchmarks.engine_text import engine_text

VARIANTS: Final = 8
SCRAPES: Final = 16
"""Texts made beforehand: so many engines, each at so many scrapes; then the last one stays."""

_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=1.0.0; charset=utf-8\r\n"


class _Endpoint(asyncio.Protocol):
    """One connection to one engine; what it answers depends on how often it was asked."""

    def __init__(self, texts: Sequence[bytes], count: Iterator[int]) -> None:
        self._texts, self._count = texts, count
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._transport is not None and data.endswith(b"\r\n\r\n"):
            text = self._texts[min(next(self._count), len(self._texts) - 1)]
            self._transport.write(_HEAD + b"Content-Length: %d\r\n\r\n" % len(text) + text)


async def serve(models: Sequence[str]) -> None:
    """Serve an engine for each of ``models``; print the ports, then wait for standard input."""
    made = {
        (model, variant): [
            engine_text(model, engine=variant, scrape=scrape) for scrape in range(SCRAPES)
        ]
        for model in set(models)
        for variant in range(VARIANTS)
    }
    loop = asyncio.get_running_loop()
    ports = []
    for number, model in enumerate(models):
        engine = partial(_Endpoint, made[model, number % VARIANTS], itertools.count())
        server = await loop.create_server(engine, "127.0.0.1", 0)
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Serve until standard input ends, so that nobody is left behind."""
    parser = argparse.ArgumentParser(description="Serve made-up engines' metrics on loopback.")
    parser.add_argument("models", nargs="+", help="one engine for each")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(serve(parser.parse_args().models))


if __name__ == "__main__":
    main()
