"""Listening: one address, limits that no client can stretch, and a stop that finishes its work."""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from adapter.controller.errors import AdapterError
from adapter.fleet.units import Seconds
from adapter.serving.app import failure
from adapter.serving.external_metrics.status import Status
from adapter.serving.tls import ServerTls

IDLE: Final = Seconds(120.0)
"""Longer than kube-apiserver keeps an idle connection (90 s), so that it hangs up first."""

REQUEST_WITHIN: Final = Seconds(10.0)
"""How long a client may take for a whole request, and for the TLS handshake."""

FINISH_WITHIN: Final = Seconds(10.0)
"""How long a stop waits for the requests that are being answered."""

_MOST_HEADERS: Final = 64
"""Each of at most 8190 bytes, as is the request line: aiohttp's limits."""

_BACKLOG: Final = 256

_log = logging.getLogger("leadtime")


class ListenError(AdapterError):
    """The address cannot be served on: exit code 2 at the command line."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where it listens; the port is the one bound, also when 0 was asked for."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@contextlib.asynccontextmanager
async def serve(
    application: web.Application,
    *,
    host: str,
    port: int,
    tls: ServerTls | None,
    request_within: Seconds = REQUEST_WITHIN,
) -> AsyncIterator[Address]:
    """Serve ``application`` while the context is open; leaving it finishes what is in flight.

    ``tls`` None is plain HTTP, which is unauthenticated and for loopback only.

    Raises:
        ListenError: not loopback without TLS, address unknown or in use.
    """
    listening = await listen(host, port, plain=tls is None)
    runner = web.AppRunner(application, shutdown_timeout=FINISH_WITHIN)
    await runner.setup()
    server = await asyncio.get_running_loop().create_server(
        _connections(runner, request_within),
        sock=listening,
        ssl=tls.context if tls else None,
        ssl_handshake_timeout=request_within if tls else None,
        ssl_shutdown_timeout=request_within if tls else None,
    )
    bound = listening.getsockname()
    try:
        yield Address("https" if tls else "http", bound[0], bound[1])
    finally:
        server.close()
        await runner.cleanup()


async def listen(host: str, port: int, *, plain: bool) -> socket.socket:
    """Return a bound socket of the first address that ``host`` stands for.

    Raises:
        ListenError: not loopback although ``plain``, address unknown or in use.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ListenError(
            f"cannot listen on {host!r}: {error.strerror}; give an address of this machine"
        ) from error
    if plain and not all(ipaddress.ip_address(place[4][0]).is_loopback for place in found):
        raise ListenError(
            f"plain text asks nobody who they are, so it listens on loopback only, not on "
            f"{host!r}: use 127.0.0.1 or ::1, or serve TLS"
        )
    family, *_, address = found[0]
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6() and address[0] == "::"
    try:
        return socket.create_server(
            address[:2], family=family, backlog=_BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        hint = (
            "another process listens there; stop it or choose another port"
            if error.errno == errno.EADDRINUSE
            else "choose an address of this machine and a port that you may use"
        )
        raise ListenError(
            f"cannot listen on {host} port {port}: {error.strerror}; {hint}"
        ) from error


def _connections(runner: web.AppRunner, within: Seconds) -> Callable[[], "_Connection"]:
    """Return what asyncio calls for every new connection."""
    manager = runner.server
    if manager is None:
        raise AssertionError("a runner that is set up has a server")
    loop = asyncio.get_running_loop()
    make_request = manager.request_factory

    def arrived(*parts: Any) -> web.BaseRequest:
        parts[2].request_arrived()
        return make_request(*parts)

    manager.request_factory = arrived
    return lambda: _Connection(manager, loop=loop, within=within)


class _Connection(web.RequestHandler):
    """One connection: hangs up on slow requests, and answers broken ones with a Status."""

    __slots__ = ("_deadline", "_within")

    def __init__(
        self, manager: web.Server, *, loop: asyncio.AbstractEventLoop, within: Seconds
    ) -> None:
        super().__init__(
            manager,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's way to say "none"
            keepalive_timeout=IDLE,
            max_headers=_MOST_HEADERS,
        )
        self._within = within
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self.request_arrived()

    def request_arrived(self) -> None:
        """Stop waiting: a whole request is here."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what the application did not: requests that are none, and its own bugs."""
        if request.writer.output_size > 0:
            raise ConnectionError("half of an answer is sent already")
        if status < HTTPStatus.INTERNAL_SERVER_ERROR:
            text = " ".join((message or "this is not an HTTP request").split())
        else:
            _log.error("request=failed path=%r", request.path, exc_info=exc)
            text = "internal error; the adapter's log has the details"
        response = failure(Status(status, text))
        response.force_close()
        return response

    def _expect_request(self) -> None:
        if self._deadline is None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(self._within, self.force_close)
