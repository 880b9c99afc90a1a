"""The HTTP face of one simulated engine: its own port on loopback, as a pod has its own address."""

import asyncio
import socket
from collections.abc import Callable
from typing import Final

from aiohttp import web

from adapter.simulator.exposition import CONTENT_TYPE

_LAST_WORDS: Final = 0.05
"""Wall seconds for an answer that is under way when the pod dies; 0 would mean no limit."""


class Face:
    """Refuses connections until it is opened, like a pod whose engine still loads."""

    def __init__(self, render: Callable[[], bytes]) -> None:
        """Take a free port; ``render`` returns the exposition at the moment it is called."""
        self._render = render
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/metrics"
        """Where its metrics are."""
        self._server = web.Server(self._answer, access_log=None)
        self._listener: asyncio.Server | None = None

    async def open(self) -> None:
        """Answer from now on."""
        self._listener = await asyncio.get_running_loop().create_server(
            self._server, sock=self._socket
        )

    async def close(self) -> None:
        """Give the port back; a request that is being answered is cut off, as by a dying pod."""
        if self._listener is not None:
            self._listener.close()
        await self._server.shutdown(timeout=_LAST_WORDS)
        self._socket.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/metrics":
            return web.Response(body=self._render(), headers={"Content-Type": CONTENT_TYPE})
        return web.Response(status=200 if request.path == "/health" else 404)
