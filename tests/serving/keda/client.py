"""KEDA's end of the wire: a real gRPC client, and a running scaler for it to call."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc

from adapter.controller.board import Board
from adapter.serving.keda.externalscaler_pb2 import (
    GetMetricSpecResponse,
    GetMetricsRequest,
    GetMetricsResponse,
    IsActiveResponse,
    ScaledObjectRef,
)
from adapter.serving.keda.server import serve_scaler
from adapter.serving.server import Address
from adapter.serving.telemetry import Meters
from adapter.serving.tls import ServerTls
from tests.fakes import FakeClock
from tests.serving.wire import SERVICE

SERVICE_PATH = "/externalscaler.ExternalScaler"
METRIC = "leadtime-desired-replicas"


class Caller:
    """Calls one scaler as KEDA's operator does."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self.channel = channel
        self.is_active = self._unary("IsActive", IsActiveResponse)
        self.get_metric_spec = self._unary("GetMetricSpec", GetMetricSpecResponse)
        self.get_metrics = self._unary("GetMetrics", GetMetricsResponse)
        self.stream_is_active: Any = channel.unary_stream(
            f"{SERVICE_PATH}/StreamIsActive",
            request_serializer=serialized,
            response_deserializer=IsActiveResponse.FromString,
        )

    async def count(self, policy: str = "chat") -> float:
        """Return what is wanted, as KEDA reads an answer: the float, or else the integer."""
        (value,) = (await self.get_metrics(asked(policy))).metricValues
        return value.metricValueFloat or value.metricValue

    async def refusal(self, call: Any, request: Any) -> tuple[grpc.StatusCode, str]:
        """Return the error that a call ends with; a call that ends well fails the test."""
        try:
            await call(request)
        except grpc.aio.AioRpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError("the call was answered")

    def _unary(self, method: str, response: Any) -> Any:
        return self.channel.unary_unary(
            f"{SERVICE_PATH}/{method}",
            request_serializer=serialized,
            response_deserializer=response.FromString,
        )


def serialized(message: Any) -> bytes:
    return bytes(message.SerializeToString())


def reference(policy: str | None = "chat", *, namespace: str = "default") -> ScaledObjectRef:
    """Return what KEDA sends along: the trigger's whole metadata."""
    metadata = {"scalerAddress": "dns:///leadtime.default.svc:9090", "enableTLS": "true"}
    if policy is not None:
        metadata["policy"] = policy
    return ScaledObjectRef(name="chat-so", namespace=namespace, scalerMetadata=metadata)


def asked(policy: str | None = "chat", metric: str = METRIC) -> GetMetricsRequest:
    return GetMetricsRequest(scaledObjectRef=reference(policy), metricName=metric)


@contextlib.asynccontextmanager
async def open_scaler(
    board: Board,
    *,
    clock: FakeClock | None = None,
    meters: Meters | None = None,
    port: int = 0,
    tls: ServerTls | None = None,
) -> AsyncIterator[Address]:
    """Serve ``board`` on loopback."""
    clock = clock or FakeClock()
    meters = meters or Meters(board, clock=clock)
    async with serve_scaler(
        board, host="127.0.0.1", port=port, clock=clock, meters=meters, tls=tls
    ) as address:
        yield address


@contextlib.asynccontextmanager
async def calling(
    address: Address, credentials: grpc.ChannelCredentials | None = None
) -> AsyncIterator[Caller]:
    """Connect as KEDA does; with credentials, to the name of our Service."""
    place = f"{address.host}:{address.port}"
    # The channels of one process share connections unless told otherwise.
    options: list[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
    if credentials is None:
        channel = grpc.aio.insecure_channel(place, options=options)
    else:
        options.append(("grpc.ssl_target_name_override", SERVICE))
        channel = grpc.aio.secure_channel(place, credentials, options=options)
    async with channel:
        yield Caller(channel)


@contextlib.asynccontextmanager
async def scaler_and_caller(board: Board, **options: Any) -> AsyncIterator[Caller]:
    async with open_scaler(board, **options) as address, calling(address) as caller:
        yield caller
