"""``grpc.health.v1.Health``, tied to the same readiness as ``/readyz``."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from adapter.controller.board import Board
from adapter.serving.keda import service
from adapter.serving.probes import Probes

NAME: Final = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name

_KNOWN: Final = frozenset({"", NAME, service.NAME})
"""What may be asked after; the empty name is the server as a whole, as a kubelet asks."""


def handlers(
    board: Board, probes: Probes, stopping: asyncio.Event
) -> "grpc.GenericRpcHandler[Any, Any]":
    """Return the service; it serves no more once ``stopping`` is set."""
    health = _Health(board, probes, stopping)
    wire: dict[str, Any] = {
        "request_deserializer": HealthCheckRequest.FromString,
        "response_serializer": HealthCheckResponse.SerializeToString,
    }
    methods = {
        "Check": grpc.unary_unary_rpc_method_handler(health.check, **wire),
        "Watch": grpc.unary_stream_rpc_method_handler(health.watch, **wire),
    }
    return grpc.method_handlers_generic_handler(NAME, methods)


class _Health:
    """Asks the probe at every call; remembers nothing."""

    def __init__(self, board: Board, probes: Probes, stopping: asyncio.Event) -> None:
        self._board, self._probes, self._stopping = board, probes, stopping

    async def check(self, request: HealthCheckRequest, context: Any) -> HealthCheckResponse:
        if request.service not in _KNOWN:
            served = ", ".join(sorted(_KNOWN - {""}))
            await context.abort(
                grpc.StatusCode.NOT_FOUND, f"no service {request.service!r}; here: {served}"
            )
        return self._state()

    async def watch(
        self, request: HealthCheckRequest, context: Any
    ) -> AsyncIterator[HealthCheckResponse]:
        del context
        if request.service not in _KNOWN:
            yield HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
            await self._stopping.wait()
            return
        said = None
        while True:
            change = self._board.change(None)
            state = self._state()
            if state != said:
                said = state
                yield state
            if self._stopping.is_set():
                return
            await _either(change, self._stopping)

    def _state(self) -> HealthCheckResponse:
        good = self._probes.ready().good and not self._stopping.is_set()
        serving, not_serving = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING
        return HealthCheckResponse(status=serving if good else not_serving)


async def _either(*events: asyncio.Event) -> None:
    """Return when one of the events is set."""
    waiting = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
