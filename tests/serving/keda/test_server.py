"""Listening: who is let in, certificates that change under calls, and an end that leaves none."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from adapter.controller.board import Board, PolicyKey
from adapter.fleet.units import Timestamp
from adapter.serving.keda.server import serve_scaler
from adapter.serving.pki import Authority, Pair
from adapter.serving.server import Address, ListenError
from adapter.serving.telemetry import Meters
from adapter.serving.tls import ServerTls, TlsError
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision, put
from tests.serving.keda.client import (
    SERVICE_PATH,
    Caller,
    calling,
    open_scaler,
    reference,
    scaler_and_caller,
    serialized,
)
from tests.serving.wire import NOW, SERVICE, Pki

UNIMPLEMENTED = grpc.StatusCode.UNIMPLEMENTED
REFUSED = (grpc.StatusCode.UNAVAILABLE,)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def _tls(pki: Pki, *, mutual: bool) -> ServerTls:
    """Return TLS for the scaler; ``ca.crt`` is then KEDA's CA."""
    return ServerTls(pki.files if mutual else replace(pki.files, client_ca=None))


def _trusting(authority: Authority, own: Pair | None = None) -> grpc.ChannelCredentials:
    """Return what KEDA connects with: caCert, and tlsClientCert and tlsClientKey if it has any."""
    if own is None:
        return grpc.ssl_channel_credentials(authority.certificate)
    return grpc.ssl_channel_credentials(authority.certificate, own.key, own.certificate)


async def _outcome(address: Address, credentials: grpc.ChannelCredentials | None) -> object:
    """Return the count that a new connection is answered, or the code it is refused with."""
    async with calling(address, credentials) as keda:
        try:
            return await keda.count()
        except grpc.aio.AioRpcError as error:
            return error.code()


async def test_tls_is_served_under_the_name_of_the_service(pki: Pki):
    board = a_board(chat=a_decision(7))
    async with open_scaler(board, tls=_tls(pki, mutual=False)) as address:
        served = await _outcome(address, _trusting(pki.serving))
        stranger = await _outcome(address, _trusting(Authority("stranger", now=NOW)))
        plain = await _outcome(address, None)

    assert str(address).startswith("grpcs://127.0.0.1:")
    assert (served, stranger, plain) == (7, *REFUSED, *REFUSED)


async def test_mutual_tls_lets_in_kedas_ca_and_nobody_else(pki: Pki):
    """Row 39: the settings are the connection's, so one address serves both kinds of caller."""
    board = a_board(chat=a_decision(7))
    stranger = Authority("stranger", now=NOW)
    async with open_scaler(board, tls=_tls(pki, mutual=True)) as address:
        keda = await _outcome(address, _trusting(pki.serving, pki.proxy.client("keda-operator")))
        nobody = await _outcome(address, _trusting(pki.serving))
        foreign = await _outcome(address, _trusting(pki.serving, stranger.client("keda-operator")))

    assert (keda, nobody, foreign) == (7, *REFUSED, *REFUSED)


async def test_a_new_certificate_and_a_new_ca_count_from_the_next_connection_on(pki: Pki):
    board = a_board(chat=a_decision(7))
    tls = _tls(pki, mutual=True)
    new_serving, new_clients = Authority("serving-2", now=NOW), Authority("keda-2", now=NOW)
    old = _trusting(pki.serving, pki.proxy.client("keda-operator"))
    new = _trusting(new_serving, new_clients.client("keda-operator"))
    async with open_scaler(board, tls=tls) as address:
        before = [await _outcome(address, old), await _outcome(address, new)]
        pki.renew(new_serving.server([SERVICE]))
        pki.trust(new_clients)
        assert tls.refresh(NOW)
        after = [await _outcome(address, old), await _outcome(address, new)]

    assert before == [7, *REFUSED]
    assert after == [*REFUSED, 7]


async def test_files_that_cannot_be_used_leave_the_old_ones_in_force(pki: Pki):
    board = a_board(chat=a_decision(7))
    tls = _tls(pki, mutual=False)
    async with open_scaler(board, tls=tls) as address:
        pki.files.certificate.write_bytes(b"half a cert")
        with pytest.raises(TlsError):
            tls.refresh(NOW)

        assert await _outcome(address, _trusting(pki.serving)) == 7


async def test_twenty_rotations_under_calls_lose_none(pki: Pki):
    """One caller keeps its connection, the other makes a new one for every call."""
    board = a_board(chat=a_decision(7))
    tls = _tls(pki, mutual=True)
    credentials = _trusting(pki.serving, pki.proxy.client("keda-operator"))
    counts: list[object] = []
    rotating = True

    async def keeps(address: Address) -> None:
        async with calling(address, credentials) as keda:
            while rotating:
                counts.append(await keda.count())

    async def comes_again(address: Address) -> None:
        while rotating:
            counts.append(await _outcome(address, credentials))

    async with open_scaler(board, tls=tls) as address, asyncio.TaskGroup() as callers:
        callers.create_task(keeps(address))
        callers.create_task(comes_again(address))
        for number in range(20):
            seen = len(counts)
            pki.renew(pki.serving.server([SERVICE]))
            pki.trust(pki.proxy, Authority(f"extra-{number}", now=NOW))
            assert tls.refresh(NOW)
            async with asyncio.timeout(10):
                while len(counts) < seen + 5:
                    await asyncio.sleep(0)
        rotating = False

    assert len(counts) >= 100
    assert set(counts) == {7}


async def test_a_caller_finds_a_scaler_that_came_back_on_its_address():
    """Row 36: the connection is pooled for ever, so it must heal by itself."""
    board = a_board(chat=a_decision(7))
    async with open_scaler(board) as address, calling(address) as _warm:
        port = address.port
    async with open_scaler(board, port=port) as address:
        pass
    async with calling(address) as keda:
        async with open_scaler(board, port=port):
            first = await keda.count()
        down = await keda.refusal(keda.is_active, reference())
        put(board, "chat", a_decision(9))
        async with open_scaler(board, port=port):
            second = await _patiently(keda)

    assert (first, down[0], second) == (7, grpc.StatusCode.UNAVAILABLE, 9)


async def _patiently(keda: Caller) -> float:
    """Return the count once the channel's back-off is over."""
    request = reference()
    async with asyncio.timeout(30):
        active = await keda.is_active(request, wait_for_ready=True)
    assert active.result
    return await keda.count()


async def test_a_stop_ends_the_streams_at_once_and_in_good_order():
    board = a_board(chat=a_decision(7))
    context = open_scaler(board)
    address = await context.__aenter__()
    async with calling(address) as keda:
        stream = keda.stream_is_active(reference())
        first = await stream.read()
        async with asyncio.timeout(2):
            await context.__aexit__(None, None, None)
        end = await stream.read()

        assert first.result
        assert end is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


@pytest.mark.parametrize("method", ["StreamMetricSpec", "Anything"])
async def test_a_method_of_another_keda_is_unimplemented(method: str):
    """KEDA 2.21 tries StreamMetricSpec, takes this for an answer and tries no more."""
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        call = keda.channel.unary_unary(
            f"{SERVICE_PATH}/{method}", request_serializer=serialized, response_deserializer=None
        )

        assert (await keda.refusal(call, reference()))[0] is UNIMPLEMENTED


async def test_a_request_that_is_too_large_or_none_is_refused(caplog):
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        call = keda.channel.unary_unary(f"{SERVICE_PATH}/IsActive")
        large, _ = await keda.refusal(call, b"\x0a" + b"\xff\xff\x07" + b"x" * 131_071)
        none, details = await keda.refusal(call, b"\xff\xff")
        still = await keda.count()

    assert large is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert none is grpc.StatusCode.INVALID_ARGUMENT
    assert details == "this is no ScaledObjectRef: see the .proto of KEDA's external scaler"
    assert not caplog.records
    assert still == 7


async def test_reflection_lists_what_is_served():
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        stub = reflection_pb2_grpc.ServerReflectionStub(keda.channel)  # type: ignore[no-untyped-call]  # generated
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = [found async for found in stub.ServerReflectionInfo(iter([request]))]

    names = {service.name for service in answer.list_services_response.service}
    assert names >= {"externalscaler.ExternalScaler", "grpc.health.v1.Health"}


def _health(keda: Caller):
    return keda.channel.unary_unary(
        "/grpc.health.v1.Health/Check",
        request_serializer=serialized,
        response_deserializer=health_pb2.HealthCheckResponse.FromString,
    )


@pytest.mark.parametrize("service", ["", "externalscaler.ExternalScaler"])
async def test_health_is_readiness(service: str):
    """Ready is having a policy; an engine that is away does not count, as on /readyz."""
    board = Board()
    request = health_pb2.HealthCheckRequest(service=service)
    async with scaler_and_caller(board) as keda:
        empty = (await _health(keda)(request)).status
        put(board, "chat", a_decision(7, refusal="no replica answers"))
        listed = (await _health(keda)(request)).status

    assert (empty, listed) == (2, 1)


async def test_the_health_of_another_service_is_not_found():
    async with scaler_and_caller(Board()) as keda:
        request = health_pb2.HealthCheckRequest(service="externalscaler")
        code, details = await keda.refusal(_health(keda), request)

    assert code is grpc.StatusCode.NOT_FOUND
    assert "here: externalscaler.ExternalScaler, grpc.health.v1.Health" in details


async def test_health_can_be_watched_to_the_end():
    """Only transitions are told, and the last one before a stop is "not serving"."""
    board = Board()
    context = open_scaler(board)
    address = await context.__aenter__()
    async with calling(address) as keda:
        watch = keda.channel.unary_stream(
            "/grpc.health.v1.Health/Watch",
            request_serializer=serialized,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        known = watch(health_pb2.HealthCheckRequest())
        unknown = watch(health_pb2.HealthCheckRequest(service="x"))
        told: asyncio.Queue[int] = asyncio.Queue()
        async with asyncio.timeout(10), asyncio.TaskGroup() as tasks:
            tasks.create_task(_tell(known, told))
            others = tasks.create_task(_tell(unknown, asyncio.Queue()))
            states = [await told.get()]
            put(board, "chat", a_decision(7))
            states.append(await told.get())
            board.post(PolicyKey("default", "chat"), a_decision(8), T0)
            await _health(keda)(health_pb2.HealthCheckRequest())
            await context.__aexit__(None, None, None)
            states.append(await told.get())

        assert states == [2, 1, 2]
        assert told.empty()
        assert others.result() == [3]
        assert await known.code() is await unknown.code() is grpc.StatusCode.OK


async def _tell(watched, told: asyncio.Queue[int]) -> list[int]:
    """Read a watch to its end; a plain ``read()`` drops what came before an end."""
    states = []
    async for answer in watched:
        states.append(answer.status)
        told.put_nowait(answer.status)
    return states


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])  # noqa: S104 - refused
async def test_plain_text_is_for_loopback_only(host: str):
    with pytest.raises(ListenError, match="listens on loopback only"):
        await _serve_on(host, 0)


async def test_a_port_that_is_taken_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ListenError, match=rf"127\.0\.0\.1 port {port}: .*choose another port"):
            await _serve_on("127.0.0.1", port)


async def _serve_on(host: str, port: int) -> None:
    board = a_board(chat=a_decision(7))
    clock = FakeClock()
    meters = Meters(board, clock=clock)
    async with serve_scaler(board, host=host, port=port, clock=clock, meters=meters, tls=None):
        raise AssertionError("it listens")


async def test_ipv6_loopback_is_served():
    if not socket.has_ipv6:
        pytest.skip("no IPv6 on this machine")
    board = a_board(chat=a_decision(7))
    clock = FakeClock()
    meters = Meters(board, clock=clock)
    async with (
        serve_scaler(board, host="::1", port=0, clock=clock, meters=meters, tls=None) as address,
        calling(replace(address, host="[::1]")) as keda,
    ):
        assert str(address) == f"grpc://[::1]:{address.port}"
        assert await keda.count() == 7


async def test_an_expired_certificate_is_served_but_refused_by_the_caller(pki: Pki):
    past = Authority("serving", now=Timestamp(NOW - 40 * 86_400), days=30)
    pki.renew(past.server([SERVICE]))
    async with open_scaler(a_board(chat=a_decision(7)), tls=_tls(pki, mutual=False)) as address:
        assert await _outcome(address, _trusting(past)) is grpc.StatusCode.UNAVAILABLE
