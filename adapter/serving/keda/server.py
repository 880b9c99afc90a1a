"""Listening for KEDA: plain on loopback, TLS, or TLS with a certificate from both sides."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Final

import grpc
from grpc_reflection.v1alpha import reflection

from adapter.controller.board import Board
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds
from adapter.serving.keda import health, service
from adapter.serving.keda.scaler import ExternalScaler
from adapter.serving.probes import Probes
from adapter.serving.server import Address, ListenError, listen
from adapter.serving.telemetry import Meters
from adapter.serving.tls import Pem, ServerTls

FINISH_WITHIN: Final = Seconds(5.0)
"""How long a stop waits for calls; each takes well under a millisecond."""

_OPTIONS: Final = (
    # Two processes on one port would answer in turns, from two boards.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", 64 * 1024),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.max_concurrent_streams", 4096),
    # Every handshake asks for the certificate and the CA in force; a pooled connection would
    # live on under those of its birth.
    ("grpc.max_connection_age_ms", 30 * 60_000),
    ("grpc.max_connection_age_grace_ms", 10_000),
    # A client that is gone without a word holds its stream no longer than this.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # KEDA may ping an idle connection; it is not hung up on for that.
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
)


@contextlib.asynccontextmanager
async def serve_scaler(
    board: Board, *, host: str, port: int, clock: Clock, meters: Meters, tls: ServerTls | None
) -> AsyncIterator[Address]:
    """Answer KEDA while the context is open; leaving it ends the streams and finishes the calls.

    ``tls`` None is plain text, which is for loopback only. With a client CA in it, a client
    without a certificate of that CA is refused in the handshake.

    Raises:
        ListenError: not loopback without TLS, address unknown or in use.
    """
    stopping = asyncio.Event()
    server = grpc.aio.server(options=_OPTIONS)
    probes = Probes(board, clock=clock)
    server.add_generic_rpc_handlers(
        (
            service.handlers(ExternalScaler(board, clock=clock), meters, stopping),
            health.handlers(board, probes, stopping),
        )
    )
    names = (service.NAME, health.NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    address = await _bound(server, host, port, tls)
    await server.start()
    try:
        yield address
    finally:
        stopping.set()
        await server.stop(FINISH_WITHIN)


async def _bound(server: grpc.aio.Server, host: str, port: int, tls: ServerTls | None) -> Address:
    # gRPC says "failed to bind" and no more, so the question is put to the socket first.
    with await listen(host, port, plain=tls is None) as tried:
        found = tried.getsockname()[0]
    place = f"[{found}]:{port}" if ":" in found else f"{found}:{port}"
    try:
        if tls is None:
            number = server.add_insecure_port(place)
        else:
            number = server.add_secure_port(place, _credentials(tls))
    except RuntimeError as error:
        raise ListenError(
            f"cannot listen on {host} port {port}: {error}; choose another port"
        ) from error
    return Address("grpcs" if tls else "grpc", found, number)


def _credentials(tls: ServerTls) -> grpc.ServerCredentials:
    """Return credentials that follow what ``tls`` takes over, from the next handshake on."""
    fetch = _Latest(tls)
    return grpc.dynamic_ssl_server_credentials(
        _configuration(fetch.given),
        fetch,  # type: ignore[arg-type]  # None is "as before", which the stubs do not know
        require_client_authentication=fetch.given.client_ca is not None,
    )


class _Latest:
    """Says at each handshake whether there is something new; called by gRPC's own threads."""

    def __init__(self, tls: ServerTls) -> None:
        self._tls, self._lock = tls, threading.Lock()
        self.given = tls.pem

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        with self._lock:
            if self._tls.pem is self.given:
                return None
            self.given = self._tls.pem
            return _configuration(self.given)


def _configuration(pem: Pem) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration(
        [(pem.key, pem.certificate)], root_certificates=pem.client_ca
    )
