"""One board, two roads: what the HPA reads through the API server, and what KEDA reads by gRPC."""

import math
from dataclasses import dataclass, replace
from typing import Any

import grpc
import pytest

from adapter.controller.board import Board
from adapter.controller.errors import NoDecisionYetError
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Decision
from adapter.simulator.hpa import (
    DEFAULT_DOWN,
    DEFAULT_UP,
    Behavior,
    HpaController,
    HpaSpec,
    Scale,
)
from adapter.simulator.keda import Fallback, FallbackBehavior, Keda, KedaSpec
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_decision, put
from tests.serving.keda.client import Caller, scaler_and_caller
from tests.serving.wire import DESIRED, Wire, open_server

STEADY = Behavior(
    replace(DEFAULT_UP, tolerance=0.0), replace(DEFAULT_DOWN, window=Seconds(0), tolerance=0.0)
)
"""As `leadtime generate` writes it."""

LEAST, MOST = 2, 60


@dataclass
class Target:
    """A Deployment that has its replicas at once."""

    replicas: int

    @property
    def scale(self) -> Scale:
        return Scale(self.replicas, self.replicas)

    def set_replicas(self, count: int) -> None:
        self.replicas = count


@dataclass
class ThroughTheApiServer:
    """What kube-controller-manager does with external.metrics.k8s.io."""

    wire: Wire

    async def read(self) -> tuple[int, ...]:
        answer = await self.wire.get(f"{DESIRED}?labelSelector=policy%3Dchat")
        if answer.status != 200:
            raise NoDecisionYetError(answer.message)
        return tuple(1000 * int(item["value"]) for item in answer.json["items"])


@dataclass
class ThroughKeda:
    """What KEDA's metrics server does with the external scaler."""

    caller: Caller

    async def read(self) -> tuple[int, ...]:
        try:
            return (math.ceil(1000 * await self.caller.count()),)
        except grpc.aio.AioRpcError as error:
            raise NoDecisionYetError(error.details()) from error


COUNTS: tuple[Any, ...] = (4, 5, 20, 21, 20, 19, 48, 60, 1, None, "no replica answers", 3, 2)
"""Steps of one at 20 too, where a tolerance of 10 % would hide them; None is a stale decision."""


def decided(count: Any) -> Decision:
    if count is None:
        return a_decision(9, valid_until=Timestamp(T0 - 1))
    if isinstance(count, str):
        return a_decision(9, refusal=count)
    return a_decision(count, valid_until=Timestamp(T0 + 86_400))


@pytest.mark.parametrize("fallback", [None, Fallback(0, LEAST, FallbackBehavior.CURRENT_IF_HIGHER)])
async def test_both_roads_set_the_same_replicas_at_every_step(fallback: Fallback | None):
    """An outage too: an error leaves the HPA where it is, and this fallback gives nothing away."""
    board, clock = Board(), FakeClock()
    put(board, "chat", decided(4))
    behind_hpa, behind_keda = Target(3), Target(3)
    keda_spec = KedaSpec(min_replicas=LEAST, max_replicas=MOST, behavior=STEADY, fallback=fallback)
    async with open_server(board, clock) as wire, scaler_and_caller(board, clock=clock) as caller:
        hpa = HpaController(
            HpaSpec(LEAST, MOST, behavior=STEADY),
            metric=ThroughTheApiServer(wire),
            target=behind_hpa,
            clock=clock,
        )
        keda = Keda(keda_spec, metric=ThroughKeda(caller), target=behind_keda, clock=clock)
        seen = []
        for count in COUNTS:
            put(board, "chat", decided(count))
            await keda.poll()
            for _ in range(4):
                await hpa.sync()
                await keda.hpa.sync()
                clock.pass_by(15)
            assert behind_hpa.replicas == behind_keda.replicas
            seen.append(behind_hpa.replicas)

    assert seen == [4, 5, 20, 21, 20, 19, 48, 60, 2, 2, 2, 3, 2]
