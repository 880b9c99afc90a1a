"""Listening: addresses, limits, and a stop that finishes its work."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from adapter.fleet.units import Seconds
from adapter.serving.app import create_app
from adapter.serving.server import Address, ListenError, serve
from adapter.serving.telemetry import Meters
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision
from tests.serving.wire import API


def _application() -> web.Application:
    board, clock = a_board(chat=a_decision(7)), FakeClock()
    return create_app(board, clock=clock, meters=Meters(board, clock=clock), access=None)


@pytest.fixture
async def address() -> AsyncIterator[Address]:
    """Serve with little patience for slow requests."""
    async with serve(
        _application(), host="127.0.0.1", port=0, tls=None, request_within=Seconds(0.05)
    ) as address:
        yield address


async def _exchange(address: Address, *parts: bytes) -> bytes:
    """Send ``parts`` and return everything until the server hangs up."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    for part in parts:
        writer.write(part)
        await writer.drain()
    async with asyncio.timeout(5):
        answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


def _status(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head
    found: dict[str, object] = json.loads(body)
    assert found["kind"] == "Status"
    return found


def test_an_address_is_written_as_people_type_it():
    assert str(Address("http", "127.0.0.1", 80)) == "http://127.0.0.1:80"
    assert str(Address("https", "::1", 443)) == "https://[::1]:443"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
async def test_plain_http_listens_on_loopback_and_says_which_port(host: str):
    async with serve(_application(), host=host, port=0, tls=None) as address:
        assert address.port > 0
        assert b" 200 OK" in await _exchange(
            address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )


@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
async def test_plain_http_listens_on_the_ipv6_loopback():
    try:
        async with serve(_application(), host="::1", port=0, tls=None) as address:
            answer = await _exchange(
                address, b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
            )
    except ListenError as error:
        pytest.skip(str(error))
    assert b" 200 OK" in answer


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])  # noqa: S104 - what is refused
async def test_plain_http_refuses_every_other_address(host: str):
    with pytest.raises(ListenError, match="listens on loopback only, not on") as refused:
        async with serve(_application(), host=host, port=0, tls=None):
            pass

    assert "use 127.0.0.1 or ::1, or serve TLS" in str(refused.value)


async def test_a_port_in_use_is_one_sentence(address: Address):
    with pytest.raises(ListenError, match="another process listens there") as refused:
        async with serve(_application(), host="127.0.0.1", port=address.port, tls=None):
            pass

    assert f"port {address.port}" in str(refused.value)


async def test_a_host_that_is_none_is_one_sentence():
    with pytest.raises(ListenError, match="cannot listen on 'no such host'"):
        async with serve(_application(), host="no such host", port=0, tls=None):
            pass


async def test_the_port_is_free_again_after_the_stop():
    async with serve(_application(), host="127.0.0.1", port=0, tls=None) as address:
        pass
    async with serve(_application(), host="127.0.0.1", port=address.port, tls=None) as again:
        assert again.port == address.port


async def test_what_is_in_flight_is_finished_before_the_stop():
    entered, released = asyncio.Event(), asyncio.Event()
    application = _application()

    async def slow(request: web.Request) -> web.Response:
        del request
        entered.set()
        await released.wait()
        return web.Response(text="done")

    application.router.add_get("/slow", slow)
    server = serve(application, host="127.0.0.1", port=0, tls=None)
    address = await server.__aenter__()
    answer = asyncio.create_task(_exchange(address, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"))
    await entered.wait()

    stop = asyncio.create_task(server.__aexit__(None, None, None))
    await asyncio.sleep(0)
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(address.host, address.port)
    released.set()
    await stop

    assert (await answer).endswith(b"done")


async def test_idle_connections_do_not_delay_the_stop():
    server = serve(_application(), host="127.0.0.1", port=0, tls=None)
    address = await server.__aenter__()
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"ok")

    async with asyncio.timeout(1.0):
        await server.__aexit__(None, None, None)

    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    "parts",
    [(), (b"GET /healthz HTTP/1.1\r\n",), (b"G",), (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: b",)],
    ids=["nothing", "a line", "a letter", "half a header"],
)
async def test_a_slow_request_is_hung_up_on(address: Address, parts: tuple[bytes, ...]):
    """0.05 s here, 10 s in production: slow clients must not collect connections."""
    assert await _exchange(address, *parts) == b""


async def test_a_second_request_may_not_be_slow_either(address: Address):
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    await reader.readuntil(b"ok")

    writer.write(b"GET /healthz HTT")

    async with asyncio.timeout(5):
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_an_idle_connection_outlives_the_patience_for_requests(address: Address):
    """kube-apiserver keeps its connections for 90 s."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    for _ in range(2):
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 65 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
    ],
    ids=["long line", "long header", "many headers", "TLS", "no HTTP"],
)
async def test_a_request_that_is_none_gets_a_status_and_no_second_chance(
    address: Address, request_bytes: bytes
):
    answer = await _exchange(address, request_bytes)

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert _status(answer)["code"] == 400


async def test_a_body_that_never_comes_is_not_waited_for(address: Address):
    answer = await _exchange(
        address,
        f"GET {API} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nsome".encode(),
    )

    assert _status(answer)["code"] == 413


async def test_a_bug_is_a_500_with_the_details_in_the_log(caplog: pytest.LogCaptureFixture):
    application = _application()

    async def broken(request: web.Request) -> web.Response:
        raise ZeroDivisionError(request.path)

    application.router.add_get("/broken", broken)
    async with serve(application, host="127.0.0.1", port=0, tls=None) as address:
        answer = await _exchange(address, b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n")
        metrics = await _exchange(
            address, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )

    assert _status(answer)["message"] == "internal error; the adapter's log has the details"
    assert b"ZeroDivisionError" not in answer
    assert "ZeroDivisionError: /broken" in caplog.text
    assert b'leadtime_http_requests_total{code="500",path="/broken"} 1.0' in metrics


async def test_an_answer_that_broke_half_way_is_cut_off():
    """A second status line inside a body would be read as data."""
    application = _application()

    async def half(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"half")
        raise ZeroDivisionError

    application.router.add_get("/half", half)
    async with serve(application, host="127.0.0.1", port=0, tls=None) as address:
        answer = await _exchange(address, b"GET /half HTTP/1.1\r\nHost: x\r\n\r\n")

    assert answer.count(b"HTTP/1.1") == 1
    assert answer.endswith(b"half\r\n")
