"""The external scaler as a gRPC service: status codes, counts, and streams that end with us."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from adapter.controller.errors import NoDecisionYetError, NotServedError
from adapter.fleet.units import Seconds
from adapter.serving.keda.externalscaler_pb2 import (
    DESCRIPTOR,
    GetMetricsRequest,
    IsActiveResponse,
    ScaledObjectRef,
)
from adapter.serving.keda.scaler import ExternalScaler, UnfitReferenceError
from adapter.serving.telemetry import Meters

NAME: Final = DESCRIPTOR.services_by_name["ExternalScaler"].full_name

_STREAM: Final = "StreamIsActive"

_LONGEST_DETAILS: Final = 2000
"""Bytes. Details travel in a header, which clients take 8 KiB of, and each byte beyond ASCII is
three there."""

_Request = TypeVar("_Request", bound=Message)

_log = logging.getLogger("leadtime")


def handlers(
    scaler: ExternalScaler, meters: Meters, stopping: asyncio.Event
) -> "grpc.GenericRpcHandler[Any, Any]":
    """Return the service; its streams end when ``stopping`` is set.

    A method that is not here, such as KEDA 2.21's StreamMetricSpec, is answered UNIMPLEMENTED,
    which KEDA takes for "not offered".
    """
    unary: dict[str, tuple[type[Message], Callable[[Any], Message]]] = {
        "IsActive": (ScaledObjectRef, scaler.is_active),
        "GetMetricSpec": (ScaledObjectRef, scaler.get_metric_spec),
        "GetMetrics": (GetMetricsRequest, scaler.get_metrics),
    }
    methods = {
        name: grpc.unary_unary_rpc_method_handler(
            _answered(name, request, answer, meters),
            response_serializer=_serialized,
        )
        for name, (request, answer) in unary.items()
    }
    methods[_STREAM] = grpc.unary_stream_rpc_method_handler(
        _streamed(scaler, meters, stopping),
        response_serializer=_serialized,
    )
    return grpc.method_handlers_generic_handler(NAME, methods)


def _answered(
    method: str, request: type[Message], answer: Callable[[Any], Message], meters: Meters
) -> Callable[[bytes, Any], Awaitable[Message]]:
    async def handler(sent: bytes, context: Any) -> Message:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            response = answer(_read(request, sent))
        except Exception as error:
            code, details = _status(method, error)
            meters.called(method, code.name, Seconds(loop.time() - began))
            await context.abort(code, details)
            raise AssertionError("abort raises") from error
        meters.called(method, "OK", Seconds(loop.time() - began))
        return response

    return handler


def _streamed(
    scaler: ExternalScaler, meters: Meters, stopping: asyncio.Event
) -> Callable[[bytes, Any], AsyncIterator[IsActiveResponse]]:
    async def handler(sent: bytes, context: Any) -> AsyncIterator[IsActiveResponse]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        code, details = grpc.StatusCode.OK, ""
        try:
            with meters.streaming():
                following = scaler.activity(_read(ScaledObjectRef, sent))
                async with aclosing(_until(stopping, following)) as states:
                    async for state in states:
                        yield state
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            raise
        except Exception as error:
            code, details = _status(_STREAM, error)
        finally:
            meters.called(_STREAM, code.name, Seconds(loop.time() - began))
        if code is not grpc.StatusCode.OK:
            await context.abort(code, details)

    return handler


async def _until(
    stopping: asyncio.Event, states: AsyncIterator[IsActiveResponse]
) -> AsyncGenerator[IsActiveResponse, None]:
    """Yield ``states`` until told to stop."""
    stop = asyncio.ensure_future(stopping.wait())
    following = asyncio.ensure_future(anext(states))
    try:
        while True:
            await asyncio.wait({stop, following}, return_when=asyncio.FIRST_COMPLETED)
            if stop.done():
                return
            yield following.result()
            following = asyncio.ensure_future(anext(states))
    finally:
        for task in (stop, following):
            task.cancel()
        await asyncio.wait({stop, following})


def _read(request: type[_Request], sent: bytes) -> _Request:
    """Return the request: read here, as gRPC would log a traceback for whatever is none.

    Raises:
        UnfitReferenceError: it is none.
    """
    try:
        return request.FromString(sent)
    except DecodeError:
        name = request.DESCRIPTOR.name
        raise UnfitReferenceError(
            f"this is no {name}: see the .proto of KEDA's external scaler"
        ) from None


def _status(method: str, error: Exception) -> tuple[grpc.StatusCode, str]:
    """Return what ``error`` is on the wire."""
    if isinstance(error, UnfitReferenceError):
        code = grpc.StatusCode.INVALID_ARGUMENT
    elif isinstance(error, NoDecisionYetError):
        code = grpc.StatusCode.UNAVAILABLE
    elif isinstance(error, NotServedError):
        code = grpc.StatusCode.NOT_FOUND
    else:
        _log.error("call=failed method=%s", method, exc_info=error)
        return grpc.StatusCode.INTERNAL, "internal error; the adapter's log has the details"
    return code, _shortened(str(error))


def _shortened(text: str) -> str:
    """Return as much of ``text`` as every client takes."""
    return text.encode(errors="replace")[:_LONGEST_DETAILS].decode(errors="ignore")


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()
