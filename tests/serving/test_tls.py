"""Certificates and CAs that change while the listener serves."""

import asyncio
import contextlib
import socket
import ssl
from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from cryptography import x509

from adapter.fleet.units import Timestamp
from adapter.serving.pki import Authority
from adapter.serving.tls import POLL, ServerTls, TlsError
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision
from tests.serving.wire import (
    API,
    DESIRED,
    MASTERS,
    NOW,
    REFUSED_HANDSHAKE,
    SERVICE,
    Pki,
    Wire,
    secure_server,
)


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


class Counted:
    """What was said about certificates."""

    def __init__(self) -> None:
        self.loaded: list[float] = []
        self.refused = 0

    def certificate_loaded(self, expires: Timestamp) -> None:
        self.loaded.append(expires)

    def certificate_refused(self) -> None:
        self.refused += 1


async def _served_serial(wire: Wire, pki: Pki, *, sni: bool = True) -> int:
    """Return the serial number of the certificate that a new connection is shown."""
    context = pki.client(None)
    context.check_hostname = False
    name = SERVICE if sni else None
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", wire.address.port, ssl=context, server_hostname=name or ""
    )
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()
    del reader
    return x509.load_der_x509_certificate(shown).serial_number


def _serial(certificate: bytes) -> int:
    return x509.load_pem_x509_certificate(certificate).serial_number


@pytest.mark.parametrize("sni", [True, False])
async def test_a_new_certificate_is_shown_to_the_next_connection(pki: Pki, sni: bool):  # noqa: FBT001 - a parameter
    """Vector 8, row 8: replace tls.crt on disk, and the new serial is seen without a restart."""
    renewed = pki.serving.server([SERVICE])
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        assert wire.tls is not None
        before = await _served_serial(wire, pki, sni=sni)
        pki.renew(renewed)

        changed = wire.tls.refresh(NOW)

        assert changed
        assert before != _serial(renewed.certificate)
        assert await _served_serial(wire, pki, sni=sni) == _serial(renewed.certificate)


async def test_a_new_front_proxy_ca_counts_for_the_next_connection(pki: Pki):
    """Vector 8, row 9: metrics-server answered 401 until it was restarted."""
    renewed = Authority("front-proxy-2", now=NOW)
    new_client = pki.client(renewed.client("front-proxy-client"))
    old_client = pki.front_proxy()
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        assert wire.tls is not None
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get(API, MASTERS, context=new_client)

        pki.trust(renewed, pki.proxy)
        wire.tls.refresh(NOW)
        both = [
            (await wire.get(API, MASTERS, context=client)).status
            for client in (new_client, old_client)
        ]
        pki.trust(renewed)
        wire.tls.refresh(NOW)

        assert both == [200, 200]
        assert (await wire.get(API, MASTERS, context=new_client)).status == 200
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get(API, MASTERS, context=old_client)


async def test_a_connection_made_under_an_older_ca_is_asked_to_come_again(pki: Pki):
    """Otherwise a CA that was withdrawn would be obeyed for as long as a connection lives."""
    connector = aiohttp.TCPConnector(ssl=pki.front_proxy())
    async with (
        secure_server(a_board(chat=a_decision(7)), pki) as wire,
        aiohttp.ClientSession(str(wire.address), connector=connector) as session,
    ):
        assert wire.tls is not None
        kept = await session.get(API, headers=MASTERS, server_hostname=SERVICE)
        pki.renew(pki.serving.server([SERVICE]))
        wire.tls.refresh(NOW)
        still_kept = await session.get(API, headers=MASTERS, server_hostname=SERVICE)
        pki.trust(Authority("front-proxy-2", now=NOW))
        wire.tls.refresh(NOW)
        last = await session.get(API, headers=MASTERS, server_hostname=SERVICE)

        assert "Connection" not in kept.headers
        assert "Connection" not in still_kept.headers
        assert (last.status, last.headers["Connection"]) == (200, "close")


@pytest.mark.slow
async def test_rotation_under_load_loses_no_request(pki: Pki):
    """Vector 8: 20 rotations of certificate and CA bundle, every request answered 200."""
    statuses: list[int] = []
    rotating = True

    async def client(wire: Wire, *, keep_alive: bool) -> None:
        connector = aiohttp.TCPConnector(ssl=pki.front_proxy(), force_close=not keep_alive)
        async with aiohttp.ClientSession(str(wire.address), connector=connector) as session:
            while rotating:
                async with session.get(
                    DESIRED, headers=MASTERS, server_hostname=SERVICE
                ) as response:
                    statuses.append(response.status)
                    await response.read()

    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        assert wire.tls is not None
        async with asyncio.TaskGroup() as clients:
            for keep_alive in (True, True, False, False):
                clients.create_task(client(wire, keep_alive=keep_alive))
            for number in range(20):
                seen = len(statuses)
                while len(statuses) < seen + 10:
                    await asyncio.sleep(0)
                pki.renew(pki.serving.server([SERVICE]))
                pki.trust(pki.proxy, Authority(f"extra-{number}", now=NOW))
                assert wire.tls.refresh(NOW)
            rotating = False

    assert len(statuses) >= 200
    assert set(statuses) == {200}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_no_session_is_resumed(pki: Pki, version: ssl.TLSVersion):
    """A resumed session skips the certificate, and would carry an old identity over a new CA."""
    context = pki.front_proxy()
    context.minimum_version = context.maximum_version = version

    def connect(
        port: int, session: ssl.SSLSession | None
    ) -> tuple[bool | None, bytes, ssl.SSLSession | None]:
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain, server_hostname=SERVICE, session=session) as connection,
        ):
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.session_reused, connection.recv(12), connection.session

    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        _, first, session = await asyncio.to_thread(connect, wire.address.port, None)
        reused, second, _ = await asyncio.to_thread(connect, wire.address.port, session)

    assert (first, second) == (b"HTTP/1.1 200", b"HTTP/1.1 200")
    assert reused is False
    assert session is not None
    assert not session.has_ticket


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_tls_below_1_2_is_refused(pki: Pki):
    context = pki.client(None)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = ssl.TLSVersion.TLSv1_1
    context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with secure_server(a_board(), pki) as wire:
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get("/healthz", context=context)


def test_expiry_and_names_are_those_of_the_certificate(pki: Pki):
    tls = ServerTls(pki.files)

    assert tls.names == (SERVICE, "127.0.0.1")
    assert abs(tls.expires - NOW - 365 * 86_400) < 2


def test_files_that_did_not_change_are_not_loaded_again(pki: Pki):
    tls = ServerTls(pki.files)
    pki.files.certificate.write_bytes(pki.files.certificate.read_bytes())

    assert not tls.refresh(NOW)


def test_broken_files_keep_the_old_ones_and_are_told_once(pki: Pki):
    tls = ServerTls(pki.files)
    before = tls.expires
    pki.files.certificate.write_bytes(b"half a cert")

    with pytest.raises(TlsError, match=r"tls\.crt with key .* cannot be used: not pem"):
        tls.refresh(NOW)

    assert not tls.refresh(NOW)
    assert tls.expires == before


def test_a_certificate_without_its_key_is_refused_until_the_key_comes(pki: Pki):
    """Two files cannot be replaced at one moment; the pair is taken when both are there."""
    tls = ServerTls(pki.files)
    renewed = pki.serving.server([SERVICE])
    pki.files.certificate.write_bytes(renewed.certificate)

    with pytest.raises(TlsError, match="key values mismatch"):
        tls.refresh(NOW)
    pki.files.key.write_bytes(renewed.key)

    assert tls.refresh(NOW)
    assert tls.names == (SERVICE,)


def test_a_new_certificate_that_has_expired_is_refused(pki: Pki):
    tls = ServerTls(pki.files)
    past = Authority("serving", now=Timestamp(NOW - 40 * 86_400), days=30)
    pki.renew(past.server([SERVICE]))

    with pytest.raises(TlsError, match=r"expired \d+ s ago; put a renewed one there"):
        tls.refresh(NOW)

    assert tls.expires > NOW


def test_a_broken_ca_is_refused_with_where_it_comes_from(pki: Pki):
    tls = ServerTls(pki.files)
    assert pki.files.client_ca is not None
    pki.files.client_ca.write_text("")

    with pytest.raises(TlsError, match=r"ca\.crt cannot be used: not PEM; .*requestheader-client"):
        tls.refresh(NOW)


def test_files_that_are_gone_are_told_once(pki: Pki):
    tls = ServerTls(pki.files)
    pki.files.key.unlink()

    with pytest.raises(TlsError, match="No such file or directory"):
        tls.refresh(NOW)

    assert not tls.refresh(NOW)


def test_a_missing_certificate_at_start_is_one_sentence(pki: Pki):
    files = replace(pki.files, certificate=pki.directory / "none.crt")

    with pytest.raises(TlsError, match=r"none\.crt with key .*: No such file or directory; both"):
        ServerTls(files)


def test_a_key_with_a_password_is_refused_without_asking_the_terminal(pki: Pki):
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - only here

    key = serialization.load_pem_private_key(pki.files.key.read_bytes(), None)
    pki.files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )

    with pytest.raises(TlsError, match="the key have no password"):
        ServerTls(pki.files)


def test_a_certificate_without_names_has_none(pki: Pki):
    pki.renew(pki.serving.client("only-a-common-name"))

    assert ServerTls(pki.files).names == ()


async def test_a_certificate_that_expired_before_the_start_is_told(
    pki: Pki, caplog: pytest.LogCaptureFixture
):
    """It is served all the same: a renewed one may come, and a crash loop would not take it."""
    expired = FakeClock(start=NOW + 400 * 86_400, stop_at=NOW)

    with pytest.raises(asyncio.CancelledError):
        await ServerTls(pki.files).follow(expired, Counted())

    (record,) = caplog.records
    assert record.levelname == "ERROR"
    assert f"tls=expired file={pki.files.certificate}" in record.getMessage()


async def test_the_files_are_followed_and_every_change_is_told(
    pki: Pki, caplog: pytest.LogCaptureFixture
):
    """Polls 1 to 4: nothing new, broken, still broken, renewed."""
    tls, counted = ServerTls(pki.files), Counted()
    renewed = Authority("serving", now=NOW, days=30).server([SERVICE])

    class Polls(FakeClock):
        async def sleep_until(self, moment: Timestamp) -> None:
            await super().sleep_until(moment)
            if len(self.slept) == 2:
                pki.files.certificate.write_bytes(b"half")
            if len(self.slept) == 4:
                pki.renew(renewed)

    clock = Polls(start=NOW, stop_at=NOW + 5 * POLL)
    with pytest.raises(asyncio.CancelledError):
        await tls.follow(clock, counted)

    assert counted.refused == 1
    assert len(counted.loaded) == 2
    assert abs(counted.loaded[1] - NOW - 30 * 86_400) < 2
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]
    assert "the old files stay in force" in caplog.text
