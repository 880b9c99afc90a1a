"""Sends smoke requests: one connection each, bounded in time and size, to one address of a name."""

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from adapter import __version__
from adapter.controller.ports import Clock
from adapter.fleet.smoke.ask import Answer, Ask, UnusableAnswerError, shown
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.address import checked_address

BODY_LIMIT: Final = 4 * 1024 * 1024
"""Bytes of an answer; sixteen tokens and their envelope take a few hundred."""

_PIECE: Final = 64 * 1024


class EndpointError(ValueError):
    """An address that cannot be asked at all; says what to give instead."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One server behind an address: what is asked for, and who is really asked."""

    url: str
    """Base address as the user gave it; its host is what TLS and ``Host`` name."""

    address: str
    """The IP address of one replica."""

    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return who this is for a person."""
        parts = urlsplit(self.url)
        return self.url if parts.hostname == self.address else f"{self.url} at {self.address}"


def endpoints_of(url: str, headers: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """Return one endpoint per address that the host of ``url`` resolves to, in order.

    Raises:
        EndpointError: no address, or no such host.
    """
    try:
        parts = urlsplit(url)
        port = _port(checked_address(url))
        infos = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
    except ValueError as error:
        raise EndpointError(f"{url!r}: {error}; give an address like http://host:8000") from error
    except OSError as error:
        raise EndpointError(f"{urlsplit(url).hostname}: no such host ({error.strerror})") from error
    addresses = dict.fromkeys(str(info[4][0]) for info in infos)
    return tuple(Endpoint(url.rstrip("/"), address, headers) for address in sorted(addresses))


class Prober:
    """Asks endpoints; each request has its own connection, so that no pool picks the replica."""

    def __init__(self, clock: Clock, *, timeout: Seconds, insecure: bool = False) -> None:
        self._clock, self._timeout = clock, timeout
        self._tls = ssl.create_default_context()
        if insecure:
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE

    def send(self, endpoint: Endpoint, ask: Ask) -> Answer:
        """Return the answer.

        Raises:
            UnusableAnswerError: none came in time, or it was no HTTP, or too large.
        """
        ends = Timestamp(self._clock.now() + self._timeout)
        connection = _Connection(endpoint, self._tls, timeout=self._timeout)
        # a socket's timeout is for each wait: headers that come drop by drop would never end.
        end = threading.Timer(self._timeout, connection.cut)
        end.daemon = True
        end.start()
        try:
            return self._exchange(connection, endpoint, ask, ends)
        except (OSError, http.client.HTTPException) as error:
            late = connection.was_cut or isinstance(error, TimeoutError)
            why = f"no complete answer within {self._timeout:g} s" if late else _unreachable(error)
            raise UnusableAnswerError(why) from error
        finally:
            end.cancel()
            connection.close()

    def _exchange(
        self, connection: "_Connection", endpoint: Endpoint, ask: Ask, ends: Timestamp
    ) -> Answer:
        path = urlsplit(endpoint.url).path + ask.path
        sent = {**_HEADERS, **endpoint.headers}
        if ask.method == "POST":
            sent["Content-Type"] = "application/json"
        connection.request(ask.method, path, body=ask.body or None, headers=sent)
        connection.bound(self._left(ends))
        response = connection.getresponse()
        body = bytearray()
        while True:
            connection.bound(self._left(ends))
            piece = response.read1(_PIECE)
            body += piece
            if not piece:
                break
            if len(body) > BODY_LIMIT:
                raise UnusableAnswerError(f"an answer over {BODY_LIMIT} bytes, not read on")
        if connection.was_cut:
            raise TimeoutError
        if response.length:
            raise UnusableAnswerError(f"the answer broke off {response.length} bytes too early")
        headers = {name.lower(): value for name, value in response.getheaders()}
        coding = headers.get("content-encoding", "identity").lower()
        if coding != "identity":
            raise UnusableAnswerError(f"an answer in {shown(coding)}, which nobody asked for")
        return Answer(response.status, headers, bytes(body))

    def _left(self, ends: Timestamp) -> Seconds:
        left = ends - self._clock.now()
        if left <= 0:
            raise TimeoutError
        return Seconds(left)


_HEADERS: Final = {
    "User-Agent": f"leadtime/{__version__}",
    "Accept": "application/json",
    "Cache-Control": "no-cache, no-store",
    "Connection": "close",
}
"""Asks caches on the way not to answer; one that does all the same is found out."""


class _Connection(http.client.HTTPConnection):
    """A connection to one address of a host."""

    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext, *, timeout: Seconds) -> None:
        parts = urlsplit(endpoint.url)
        super().__init__(parts.hostname or "", _port(endpoint.url), timeout=timeout)
        self._address = endpoint.address
        self._tls = tls if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._wait = timeout
        self._made: socket.socket | None = None
        self.was_cut = False

    def connect(self) -> None:
        """Connect to the address, and speak TLS with the host where the scheme says so."""
        self.sock = self._made = socket.create_connection((self._address, self.port), self._wait)
        if self._tls is not None:
            self.sock = self._made = self._tls.wrap_socket(self.sock, server_hostname=self._host)

    def cut(self) -> None:
        """End whatever is waited for; from another thread."""
        self.was_cut = True
        if self._made is not None:
            with suppress(OSError):  # closed meanwhile
                # not TLS's own: it would wait for the peer, and is in use by the other thread.
                socket.socket.shutdown(self._made, socket.SHUT_RDWR)

    def bound(self, left: Seconds) -> None:
        """Let the next wait last no longer than ``left``."""
        if self.sock is not None:  # the answer's end has closed it
            self.sock.settimeout(left)


def _port(url: str) -> int:
    """Return the port of ``url``.

    Raises:
        ValueError: no scheme that says one, or a port out of range.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise ValueError("neither http:// nor https://")
    return parts.port or _PORTS[parts.scheme]


_PORTS: Final = {"http": 80, "https": 443}


def _unreachable(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS failed ({error.verify_message})"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed ({error.reason or error})"
    if isinstance(error, ConnectionRefusedError):
        return "no connection: nothing listens there, or not yet"
    if isinstance(error, OSError):
        return f"the connection broke ({error.strerror or error})"
    return f"not HTTP ({shown(str(error)) or type(error).__name__})"
