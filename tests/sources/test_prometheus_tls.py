"""A Prometheus behind TLS that knows its clients by certificate; files may change meanwhile."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from adapter.fleet.units import Seconds
from adapter.policy.document import PrometheusSource
from adapter.serving.pki import Authority
from adapter.sources.clock import SystemClock
from adapter.sources.prometheus_api import Access, PrometheusApi, PrometheusError
from tests.sources.servers import request

EMPTY = b'{"status":"success","data":{"resultType":"vector","result":[]}}'


class Pki:
    """One authority for both sides, its files in ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.authority = Authority("monitoring", now=SystemClock().now())
        self.ca, self.crt, self.key = (directory / name for name in ("ca", "crt", "key"))
        self.ca.write_bytes(self.authority.certificate)
        self.issue("first")

    def issue(self, name: str) -> None:
        pair = self.authority.client(name)
        self.crt.write_bytes(pair.certificate)
        self.key.write_bytes(pair.key)
        for path in (self.crt, self.key):
            os.utime(path, ns=(0, 1_000_000_000 * len(name)))

    def server(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=self.ca)
        context.verify_mode = ssl.CERT_REQUIRED
        pair = self.authority.server(["127.0.0.1"])
        file = self.directory / "server.pem"
        file.write_bytes(pair.certificate + pair.key)
        context.load_cert_chain(file)
        return context


@asynccontextmanager
async def secured(pki: Pki, names: list[str]) -> AsyncIterator[str]:
    """Answer with nothing, and note which client asked."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await request(reader):
            length = next(int(i.split(b":")[1]) for i in head.splitlines() if b"ength:" in i)
            await reader.readexactly(length)
            subject = dict(part[0] for part in writer.get_extra_info("peercert")["subject"])
            names.append(subject["commonName"])
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(EMPTY) + EMPTY)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=pki.server())
    try:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


def an_api(url: str, **files: Path) -> PrometheusApi:
    return PrometheusApi(Access(url, Seconds(5.0), **files))


async def test_the_files_of_the_policy_let_it_in_and_are_read_again_when_they_change(
    tmp_path: Path,
):
    pki, names = Pki(tmp_path), list[str]()
    async with secured(pki, names) as url:
        api = an_api(url, ca_file=pki.ca, cert_file=pki.crt, key_file=pki.key)

        await api.query("up")
        await api.query("up")
        pki.issue("second one")
        await api.query("up")
        await api.close()

    assert names == ["first", "first", "second one"]


async def test_an_authority_that_nobody_named_is_not_trusted(tmp_path: Path):
    pki = Pki(tmp_path)
    async with secured(pki, []) as url:
        api = an_api(url)

        with pytest.raises(PrometheusError, match=r"TLS failed .* set source\.prometheus\.caFile"):
            await api.query("up")
        await api.close()


@pytest.mark.parametrize("broken", [b"", b"no certificate"])
async def test_a_file_that_is_no_certificate_is_named(tmp_path: Path, broken: bytes):
    (tmp_path / "ca").write_bytes(broken)
    api = an_api("https://127.0.0.1:1", ca_file=tmp_path / "ca")

    with pytest.raises(PrometheusError, match=r"was not asked: .*caFile.* .*/ca: "):
        await api.query("up")
    await api.close()


def test_what_the_policy_says_is_what_is_used():
    """And the timeout is the interval, up to ten seconds."""
    source = partial(PrometheusSource, url="http://p")
    whole = source(tokenFile="t", caFile="a", certFile="c", keyFile="k", timeout="3s", tenant="x")

    assert Access.of(whole) == Access(
        "http://p", Seconds(3.0), "x", Path("t"), Path("a"), Path("c"), Path("k")
    )
    assert Access.of(source(interval="5s")).timeout == 5
    assert Access.of(source(interval="60s")).timeout == 10
