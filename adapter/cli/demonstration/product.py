"""The adapter itself, wired as ``leadtime serve`` wires it, over the pods of the demo."""

import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.wire import throw_away_pki
from adapter.controller.board import Board
from adapter.controller.ports import Clock, FleetSource
from adapter.controller.supervisor import Supervisor, World
from adapter.fleet.units import Seconds
from adapter.policy.document import Policy
from adapter.serving.app import METRIC, Access, create_app
from adapter.serving.external_metrics.authn import RequestHeader
from adapter.serving.external_metrics.authz import AllowListAuthorizer, Gate
from adapter.serving.external_metrics.metric import DESIRED, POLICY_LABEL
from adapter.serving.server import Address, serve
from adapter.serving.telemetry import Meters
from adapter.serving.tls import ServerTls
from adapter.sources.opening import LocalSources
from adapter.sources.scrape import Scraper
from adapter.sources.state_file import MemoryStates
from adapter.sources.targets import Targets

_SCRAPE_TIMEOUT: Final = Seconds(5.0)
"""Also how long a tick waits for one engine: fleet time stands still meanwhile, so that a busy
machine changes no decision."""


@dataclass(frozen=True, slots=True)
class Product:
    """The running adapter, and what is needed to ask it."""

    supervisor: Supervisor
    """Its loops run while somebody runs this."""

    board: Board
    address: Address
    aggregator: ssl.SSLContext
    """The client side of a front proxy that it trusts."""

    serving_ca: bytes
    """PEM; what anybody needs to talk to it, and no reason for it to believe them."""

    @property
    def metric_url(self) -> str:
        """Return where the HPA of the demo's policy finds its metric."""
        path = METRIC.format(namespace=scene.NAMESPACE, metric=DESIRED)
        query = urlencode({"labelSelector": f"{POLICY_LABEL}={scene.NAME}"})
        return f"{self.address}{path}?{query}"


@contextlib.asynccontextmanager
async def product(pods: Targets, *, clock: Clock, port: int) -> AsyncIterator[Product]:
    """Serve on loopback over TLS while the context is open; port 0 takes a free one.

    Raises:
        ListenError: the port cannot be had.
    """
    board = Board()
    meters = Meters(board, clock=clock)
    async with contextlib.AsyncExitStack() as stack:
        scraper = await stack.enter_async_context(Scraper(clock))
        sources = _PodSources(LocalSources(scraper, clock), pods)
        # One policy has nobody to keep out of the way of; drawn from its text, the moment of its
        # ticks, and with it every figure of the demo, would change with a comma in the policy.
        world = World(sources, MemoryStates(), board, clock, meters, offset=lambda _: None)
        supervisor = Supervisor(_OnePolicy(), world)
        await supervisor.load()
        wire = stack.enter_context(throw_away_pki())
        tls = ServerTls(wire.server)
        gate = Gate(AllowListAuthorizer(), clock=clock)
        access = Access(RequestHeader(), gate, tls.trusts)
        application = create_app(board, clock=clock, meters=meters, access=access)
        served = serve(application, host="127.0.0.1", port=port, tls=tls)
        address = await stack.enter_async_context(served)
        yield Product(supervisor, board, address, wire.aggregator, wire.serving_ca)


class _PodSources:
    """Scrapes the deployment's pods, as ``source.pods`` means it in a cluster."""

    def __init__(self, sources: LocalSources, pods: Targets) -> None:
        self._sources, self._pods = sources, pods

    def open(self, policy: Policy) -> FleetSource:
        """Return the fleet of these pods."""
        return self._sources.scraped(
            policy, self._pods, timeout=_SCRAPE_TIMEOUT, prompt=_SCRAPE_TIMEOUT
        )


class _OnePolicy:
    """The policy files of the demo: one, and it never changes."""

    async def read(self) -> dict[str, bytes]:
        """Return it under the name that a finding would carry."""
        return {"demo.yaml": scene.POLICY.encode()}
