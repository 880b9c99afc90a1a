"""A real listener with real certificates, and clients on the other end of the socket."""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from adapter.controller.board import Board
from adapter.serving.app import Access, create_app
from adapter.serving.external_metrics.authn import RequestHeader
from adapter.serving.external_metrics.authz import AllowListAuthorizer, Authorizer, Gate
from adapter.serving.metrics_api.keys import ApiKeys
from adapter.serving.pki import Authority, Pair
from adapter.serving.server import Address, serve
from adapter.serving.telemetry import Meters
from adapter.serving.tls import ServerTls, TlsFiles
from adapter.sources.clock import SystemClock
from tests.fakes import FakeClock

API = "/apis/external.metrics.k8s.io/v1beta1"
DESIRED = f"{API}/namespaces/default/leadtime-desired-replicas"
HPA = "system:serviceaccount:kube-system:horizontal-pod-autoscaler"
SERVICE = "external-metrics.kube-system.svc"

MASTERS = [("X-Remote-User", "system:kube-aggregator"), ("X-Remote-Group", "system:masters")]
AS_HPA = [
    ("X-Remote-User", HPA),
    ("X-Remote-Group", "system:serviceaccounts"),
    ("X-Remote-Group", "system:authenticated"),
]

_FRONT_PROXY = RequestHeader()

REFUSED_HANDSHAKE = (aiohttp.ClientError, OSError)
"""TLS 1.3 tells a client after its handshake, so the refusal may look like a hang-up."""

NOW = SystemClock().now()
"""Certificates are checked by OpenSSL, which knows the real time only."""


@dataclass
class Pki:
    """Who signs for whom; files under ``directory`` are what the server reads."""

    directory: Path
    serving: Authority = field(default_factory=lambda: Authority("serving", now=NOW))
    proxy: Authority = field(default_factory=lambda: Authority("front-proxy", now=NOW))

    def __post_init__(self) -> None:
        self.renew(self.serving.server([SERVICE, "127.0.0.1"]))
        self.trust(self.proxy)

    @property
    def files(self) -> TlsFiles:
        return TlsFiles(
            self.directory / "tls.crt", self.directory / "tls.key", self.directory / "ca.crt"
        )

    def renew(self, pair: Pair) -> None:
        (self.directory / "tls.crt").write_bytes(pair.certificate)
        (self.directory / "tls.key").write_bytes(pair.key)

    def trust(self, *authorities: Authority) -> None:
        bundle = b"".join(authority.certificate for authority in authorities)
        (self.directory / "ca.crt").write_bytes(bundle)

    def client(self, pair: Pair | None) -> ssl.SSLContext:
        """Return what a client with this certificate connects with."""
        context = ssl.create_default_context(cadata=self.serving.certificate.decode())
        if pair is not None:
            file = self.directory / "client.pem"
            file.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file)
            file.unlink()
        return context

    def front_proxy(self, name: str = "front-proxy-client") -> ssl.SSLContext:
        return self.client(self.proxy.client(name))


@dataclass
class Answer:
    """A response that was read to its end."""

    status: int
    text: str
    headers: Any

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def message(self) -> str:
        return str(self.json["message"])


@dataclass
class Wire:
    """One running server."""

    address: Address
    tls: ServerTls | None
    clock: FakeClock
    meters: Meters
    pki: Pki | None

    async def get(
        self,
        path: str,
        headers: Iterable[tuple[str, str]] = (),
        *,
        method: str = "GET",
        context: ssl.SSLContext | None = None,
        **more: Any,
    ) -> Answer:
        """Return the answer to one request on its own connection."""
        async with (
            aiohttp.ClientSession(skip_auto_headers=["Accept"]) as session,
            session.request(
                method,
                f"{self.address}{path}",
                headers=list(headers),
                ssl=context or True,
                server_hostname=SERVICE if context else None,
                **more,
            ) as response,
        ):
            return Answer(response.status, await response.text(), response.headers)


@contextlib.asynccontextmanager
async def open_server(board: Board, clock: FakeClock | None = None) -> AsyncIterator[Wire]:
    """Serve plain HTTP to everybody on loopback."""
    clock = clock or FakeClock()
    meters = Meters(board, clock=clock)
    application = create_app(board, clock=clock, meters=meters, access=None)
    async with serve(application, host="127.0.0.1", port=0, tls=None) as address:
        yield Wire(address, None, clock, meters, None)


@contextlib.asynccontextmanager
async def secure_server(
    board: Board,
    pki: Pki,
    *,
    authorizer: Authorizer | None = None,
    request_header: RequestHeader | None = _FRONT_PROXY,
    files: TlsFiles | None = None,
    keys: ApiKeys | None = None,
) -> AsyncIterator[Wire]:
    """Serve TLS to those whom the front proxy vouches for."""
    clock = FakeClock()
    meters = Meters(board, clock=clock)
    tls = ServerTls(files or pki.files)
    access = Access(
        request_header,
        Gate(authorizer or AllowListAuthorizer(), clock=clock),
        tls.trusts,
        keys,
    )
    application = create_app(board, clock=clock, meters=meters, access=access)
    async with serve(application, host="127.0.0.1", port=0, tls=tls) as address:
        yield Wire(address, tls, clock, meters, pki)
