import asyncio
import gzip
import random
import socket
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest

from adapter.fleet.assemble import Target
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Seconds
from adapter.sources.scrape import LARGE_AT_ONCE, SMALL_BODY, Scraper
from tests.build import T0
from tests.fakes import FakeClock, a_target
from tests.sources.servers import EXPOSITION, Answer, hanging, request, saying, serving

MIB = 1024 * 1024


@pytest.fixture
async def scraper() -> AsyncIterator[Scraper]:
    async with Scraper(FakeClock(), body_limit=4 * MIB) as opened:
        yield opened


async def scraped(scraper: Scraper, answer: Answer, *, timeout: float = 5.0) -> bytes | Gap:
    async with serving(answer) as url:
        return await scraper.fetch(a_target(url), Seconds(timeout))


async def gap_of(scraper: Scraper, answer: Answer, cause: Cause, *, timeout: float = 5.0) -> str:
    """Scrape ``answer``, check why there is no body, and return the sentence after the target."""
    async with serving(answer) as url:
        gap = await scraper.fetch(a_target(url), Seconds(timeout))

    assert isinstance(gap, Gap)
    assert (gap.at, gap.cause) == (T0, cause)
    assert gap.detail.startswith(f"{url}: ")
    return gap.detail.removeprefix(f"{url}: ")


async def test_a_body_comes_back_as_it_was_sent(scraper: Scraper):
    assert await scraped(scraper, saying()) == EXPOSITION


@pytest.mark.parametrize(
    "headers",
    ["Content-Type: text/plain; charset=utf-8\r\n", "Content-Type: application/json\r\n", ""],
)
async def test_the_content_type_is_not_what_makes_an_exposition(scraper: Scraper, headers: str):
    """The engine vLLM says version=1.0.0, Triton no version, proxies whatever they like.

    Trap 24, measured 15 of vLLM.
    """
    assert await scraped(scraper, saying(headers=headers)) == EXPOSITION


async def test_the_request_asks_for_plain_text_and_says_who_asks(scraper: Scraper):
    heads = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await request(reader)).decode())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    await scraped(scraper, answer)

    assert "User-Agent: leadtime/" in heads[0]
    assert "Accept-Encoding: identity\r\n" in heads[0]
    assert "Cookie" not in heads[0]


async def test_one_connection_serves_many_scrapes(scraper: Scraper):
    connections = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await saying()(reader, writer)

    async with serving(answer) as url:
        bodies = [await scraper.fetch(a_target(url), Seconds(5)) for _ in range(3)]

    assert bodies == [EXPOSITION] * 3
    assert connections == 1


async def test_a_kept_connection_that_the_engine_has_closed_is_opened_again(scraper: Scraper):
    """Its server, uvicorn, closes an idle connection after 5 s: the usual scrape interval."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1\n")
        await writer.drain()
        await request(reader)

    async with serving(answer) as url:
        bodies = [await scraper.fetch(a_target(url), Seconds(5)) for _ in range(3)]

    assert bodies == [b"1\n"] * 3


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(EXPOSITION)),
        ("x-gzip", gzip.compress(EXPOSITION)),
        ("deflate", zlib.compress(EXPOSITION)),
        ("identity", EXPOSITION),
    ],
)
async def test_a_body_that_is_packed_unasked_is_unpacked(
    scraper: Scraper, encoding: str, packed: bytes
):
    headers = f"Content-Encoding: {encoding}\r\n"

    assert await scraped(scraper, saying(packed, headers=headers)) == EXPOSITION


async def test_a_packed_body_larger_than_a_piece_is_whole(scraper: Scraper):
    body = EXPOSITION * 30_000
    headers = "Content-Encoding: gzip\r\n"

    assert SMALL_BODY < len(body) < 4 * MIB
    assert await scraped(scraper, saying(gzip.compress(body), headers=headers)) == body


async def test_an_unknown_encoding_is_refused_by_name(scraper: Scraper):
    detail = await gap_of(scraper, saying(headers="Content-Encoding: br\r\n"), Cause.NOT_METRICS)

    assert "Content-Encoding 'br', which was not asked for" in detail


@pytest.mark.parametrize("body", [EXPOSITION, b"", gzip.compress(EXPOSITION)[:-9]])
async def test_a_packed_body_that_is_broken_is_no_body(scraper: Scraper, body: bytes):
    detail = await gap_of(
        scraper, saying(body, headers="Content-Encoding: gzip\r\n"), Cause.NOT_METRICS
    )

    assert "compressed" in detail


async def test_a_bomb_is_defused_at_the_limit(scraper: Scraper):
    """1 GiB of zeros in 1 MB: unpacking stops at 4 MiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    bomb = b"".join(packer.compress(bytes(MIB)) for _ in range(256)) + packer.flush()

    detail = await gap_of(
        scraper, saying(bomb, headers="Content-Encoding: gzip\r\n"), Cause.TOO_LARGE
    )

    assert detail.startswith("the body is over 4 MiB and was not read on")


async def test_a_bomb_is_never_unpacked_whole(scraper: Scraper):
    """60 kB that arrive at once unpack to 60 MiB; at most a piece of them exists at a time."""
    bomb = gzip.compress(bytes(60 * MIB))
    tracemalloc.start()
    try:
        await gap_of(scraper, saying(bomb, headers="Content-Encoding: gzip\r\n"), Cause.TOO_LARGE)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * MIB


async def test_an_endless_body_is_cut_at_the_limit(scraper: Scraper):
    """What was sent stays near the limit: the rest is not read to be thrown away."""
    sent = 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(MIB))
            await writer.drain()
            sent += MIB

    detail = await gap_of(scraper, answer, Cause.TOO_LARGE)

    assert detail.startswith("the body is over 4 MiB")
    assert sent < 32 * MIB


async def test_a_body_at_the_limit_is_read(scraper: Scraper):
    body = b"#" * (4 * MIB)

    assert await scraped(scraper, saying(body)) == body


@pytest.mark.slow
async def test_few_large_bodies_are_held_at_a_time():
    """Eight answers of 12 MiB: four are read on, the others wait in their sockets.

    A socket on loopback takes some 7 MiB by itself, so that 11 MiB sent are 1 MiB and more read.
    """
    far, go = set(), asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        writer.transport.set_write_buffer_limits(high=0)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (12 * MIB))
        for sent in range(12):
            if sent == 11:
                far.add(writer)
                await go.wait()
            writer.write(b"#" * MIB)
            await writer.drain()

    async with Scraper(FakeClock(), body_limit=16 * MIB) as scraper, serving(answer) as url:
        targets = [a_target(f"{url}?{index}") for index in range(2 * LARGE_AT_ONCE)]
        asking = [asyncio.create_task(scraper.fetch(each, Seconds(30))) for each in targets]
        while len(far) < LARGE_AT_ONCE:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        held = len(far)
        go.set()
        bodies = await asyncio.gather(*asking)

    assert held == LARGE_AT_ONCE
    assert {len(body) for body in bodies if isinstance(body, bytes)} == {12 * MIB}


@pytest.mark.parametrize(
    ("status", "hint"),
    [
        ("401 Unauthorized", "answered 401 Unauthorized: the metrics need credentials"),
        ("403 Forbidden", "answered 403 Forbidden: the metrics need credentials"),
        ("404 Not Found", "SGLang exports metrics only with --enable-metrics"),
        ("500 Internal Server Error", "the engine, or a proxy before it, fails; see its log"),
        ("503 Service Unavailable", "the engine, or a proxy before it, fails; see its log"),
        ("204 No Content", "answered 204 No Content, expected 200"),
        ("429 Too Many Requests", "answered 429 Too Many Requests, expected 200"),
    ],
)
async def test_another_status_than_200_comes_with_a_hint(scraper: Scraper, status: str, hint: str):
    detail = await gap_of(scraper, saying(b"", status=status), Cause.HTTP_STATUS)

    assert hint in detail


async def test_a_redirect_is_not_followed_but_named(scraper: Scraper):
    detail = await gap_of(
        scraper,
        saying(
            b"", status="302 Found", headers="Location: https://guest:s3cret@login.example/\r\n"
        ),
        Cause.HTTP_STATUS,
    )

    assert "answered 302 Found to 'https://login.example/': redirects are not followed" in detail


async def test_nothing_listening_is_unreachable():
    """SIGTERM closes its port within 0.25 s.

    Measured 4 of vLLM.
    """
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/metrics"

        async with Scraper(FakeClock()) as scraper:
            gap = await scraper.fetch(a_target(url), Seconds(5))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE
    assert "nothing listens there" in gap.detail


async def test_a_host_that_does_not_exist_is_unreachable(scraper: Scraper):
    gap = await scraper.fetch(a_target("http://engine.invalid:8000/metrics"), Seconds(5))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE
    assert "no such host (engine.invalid)" in gap.detail


async def test_an_address_that_is_none_is_unreachable(scraper: Scraper):
    url = "http://reader:s3cret@engine:99999/metrics"

    gap = await scraper.fetch(Target(uid="e", name="e", url=url), Seconds(5))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE
    assert gap.detail == "e: no address that could be asked: check scheme, host and port"


async def test_plain_http_behind_https_is_unreachable_and_says_tls(scraper: Scraper):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with serving(answer) as url:
        gap = await scraper.fetch(a_target(url.replace("http:", "https:")), Seconds(5))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE
    assert "TLS failed" in gap.detail


async def test_something_that_is_not_http_is_unreachable(scraper: Scraper):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
        await writer.drain()

    detail = await gap_of(scraper, answer, Cause.UNREACHABLE)

    assert "is this the metrics port?" in detail


async def test_a_truncated_body_is_not_used(scraper: Scraper):
    """Half an exposition reads like a whole one with fewer requests."""
    detail = await gap_of(scraper, saying(EXPOSITION, length=500), Cause.UNREACHABLE)

    assert "truncated answers are not used" in detail


async def test_a_chunked_body_without_its_end_is_not_used(scraper: Scraper):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"%x\r\n%s\r\n" % (len(EXPOSITION), EXPOSITION))
        await writer.drain()

    detail = await gap_of(scraper, answer, Cause.UNREACHABLE)

    assert "truncated answers are not used" in detail


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nvllm:"])
async def test_a_reset_is_unreachable(scraper: Scraper, sent: bytes):
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(sent)
        await writer.drain()
        writer.transport.abort()

    detail = await gap_of(scraper, answer, Cause.UNREACHABLE)

    assert "the connection broke" in detail


async def _slow_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
    await reader.read()


async def _stuck_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n" + EXPOSITION)
    await reader.read()


async def _slow_loris(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a byte every so often: no gap between two bytes is ever long."""
    await request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        writer.write(b"#")
        await writer.drain()
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("answer", [hanging, _slow_headers, _stuck_body, _slow_loris])
async def test_the_deadline_covers_the_whole_answer(scraper: Scraper, answer: Answer):
    """It ends after 0.2 s; two seconds are allowed for, on a busy machine."""
    began = asyncio.get_running_loop().time()
    detail = await gap_of(scraper, answer, Cause.TIMEOUT, timeout=0.2)

    assert asyncio.get_running_loop().time() - began < 2.0
    assert detail.startswith("no complete answer within 0.2 s")


async def test_a_target_that_hangs_costs_the_others_nothing(scraper: Scraper):
    """Both are asked at once; the answer comes while the other still hangs."""
    async with serving(hanging) as hung, serving(saying()) as well:
        waiting = asyncio.create_task(scraper.fetch(a_target(hung), Seconds(60)))
        body = await scraper.fetch(a_target(well), Seconds(5))
        assert not waiting.done()
        waiting.cancel()
        await asyncio.wait({waiting})

    assert body == EXPOSITION


@pytest.mark.slow
async def test_whatever_bytes_come_back_it_is_a_body_or_a_gap(scraper: Scraper):
    """Five hundred answers with bytes dropped, doubled or changed; not one raises."""
    chance = random.Random(7)
    whole = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n40\r\n"
        + gzip.compress(EXPOSITION)[:64]
        + b"\r\n0\r\n\r\n"
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        at = chance.randrange(len(whole))
        end = at + chance.randrange(4)
        writer.write(whole[:at] + chance.randbytes(chance.randrange(4)) + whole[end:])
        await writer.drain()

    async with serving(answer) as url:
        found = [await scraper.fetch(a_target(url), Seconds(2)) for _ in range(500)]

    assert {type(each) for each in found} <= {bytes, Gap}
    causes = {each.cause for each in found if isinstance(each, Gap)}
    assert Cause.UNREACHABLE in causes
