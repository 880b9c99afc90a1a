"""Asks many engines for their metrics over HTTP, bounded in time, size and connections."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from http import HTTPStatus
from types import TracebackType
from typing import Final, Self

import aiohttp

from adapter import __version__
from adapter.controller.ports import Clock
from adapter.fleet.assemble import Target
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Seconds
from adapter.policy.address import shown_address
from adapter.sources.resolve import DaemonResolver

BODY_LIMIT: Final = 64 * 1024 * 1024
"""Decoded bytes; an engine with tens of thousands of LoRA series reaches some 50 MB."""

SMALL_BODY: Final = 1024 * 1024
"""Above this a body is large: few are held at a time, so that memory has a bound."""

LARGE_AT_ONCE: Final = 4

_PIECE: Final = 256 * 1024
"""Unpacked at a time: about a millisecond, so that a bomb does not stop the other targets."""

_HEADERS: Final = {
    "Accept": "text/plain;version=1.0.0,text/plain;version=0.0.4;q=0.9,*/*;q=0.1",
    "Accept-Encoding": "identity",  # compressing would cost the engine's CPU, which serves users
    "User-Agent": f"leadtime/{__version__}",
}


class Scraper:
    """One pool of kept-alive connections for every target of every policy.

    Each target has at most one request in flight (see ``live``), hence at most one connection.
    """

    def __init__(self, clock: Clock, *, body_limit: int = BODY_LIMIT) -> None:
        self._clock = clock
        self._body_limit = body_limit
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=75.0, resolver=DaemonResolver()
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=_HEADERS,
            skip_auto_headers=("Content-Type",),
            auto_decompress=False,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    async def fetch(self, target: Target, timeout: Seconds) -> bytes | Gap:
        """Return the body of ``target``, or why there is none.

        ``timeout`` covers all of it: the name, the connection, the headers and the last byte.
        """
        try:
            async with asyncio.timeout(timeout):
                return await self._body(target)
        except TimeoutError:
            return self._gap(
                target,
                Cause.TIMEOUT,
                f"no complete answer within {timeout:g} s: "
                f"the engine is overloaded or hung, or a firewall drops the packets",
            )
        except _UnusableError as error:
            return self._gap(target, error.cause, str(error))
        except aiohttp.InvalidURL:  # its own words would be the address, credentials and all
            detail = "no address that could be asked: check scheme, host and port"
            return self._gap(target, Cause.UNREACHABLE, detail)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return self._gap(target, Cause.UNREACHABLE, _unreachable(error))

    async def _body(self, target: Target) -> bytes:
        async with self._session.get(target.url, allow_redirects=False) as answer:
            if answer.status != HTTPStatus.OK:
                raise _UnusableError(Cause.HTTP_STATUS, _about_status(answer))
            async with aclosing(_decoded(answer, self._body_limit)) as pieces:
                head, ended = await _until(pieces, SMALL_BODY)
                if ended:
                    return head
                async with self._large:
                    rest, _ = await _until(pieces, self._body_limit)
                    return head + rest

    def _gap(self, target: Target, cause: Cause, detail: str) -> Gap:
        return Gap(self._clock.now(), cause, f"{target.name}: {detail}")


class _UnusableError(Exception):
    """The target answered, and the answer is of no use."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


async def _until(pieces: AsyncIterator[bytes], size: int) -> tuple[bytes, bool]:
    """Return at least ``size`` bytes, or all there are and True."""
    read, length = [], 0
    async for piece in pieces:
        read.append(piece)
        length += len(piece)
        if length > size:
            return b"".join(read), False
    return b"".join(read), True


async def _decoded(answer: aiohttp.ClientResponse, limit: int) -> AsyncGenerator[bytes]:
    """Yield the decoded body; what goes over ``limit`` is neither read nor unpacked."""
    left = limit
    async for piece in _unpacked(answer):
        left -= len(piece)
        if left < 0:
            raise _UnusableError(
                Cause.TOO_LARGE,
                f"the body is over {limit / 1024 / 1024:g} MiB and was not read on: "
                f"is this the metrics address? LoRA and per-process labels multiply series",
            )
        yield piece


async def _unpacked(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the body without its content encoding, in pieces that do not block the others."""
    encoding = answer.headers.get("Content-Encoding", "").strip().lower()
    if encoding in {"", "identity"}:
        async for chunk in answer.content.iter_any():
            yield chunk
    elif encoding in {"gzip", "x-gzip", "deflate"}:
        async for chunk in _inflated(answer.content.iter_any()):
            yield chunk
    else:
        raise _UnusableError(
            Cause.NOT_METRICS,
            f"answers with Content-Encoding {encoding!r}, which was not asked for: "
            f"take the compressing proxy out of the way",
        )


async def _inflated(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packed = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        async for chunk in chunks:
            left = chunk
            while left and not packed.eof:
                yield packed.decompress(left, max_length=_PIECE)
                left = packed.unconsumed_tail
                await asyncio.sleep(0)
    except zlib.error as error:
        raise _UnusableError(
            Cause.NOT_METRICS, f"the body is not the compressed data it claims to be ({error})"
        ) from error
    if not packed.eof:
        raise _UnusableError(Cause.NOT_METRICS, "the compressed body ends too early: truncated")


def _about_status(answer: aiohttp.ClientResponse) -> str:
    said = f"answered {answer.status} {answer.reason or ''}".rstrip()
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"{said}: the metrics need credentials; scrape the engine's own port, not a proxy's"
    if answer.status == HTTPStatus.NOT_FOUND:
        return (
            f"{said}: nothing at this path; SGLang exports metrics only with --enable-metrics, "
            f"Triton on its own port (8002)"
        )
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the class of redirects
        where = shown_address(answer.headers.get("Location", "nowhere"))
        return f"{said} to {where!r}: redirects are not followed; give the final address"
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"{said}: the engine, or a proxy before it, fails; see its log"
    return f"{said}, expected 200"


def _unreachable(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no such host ({error.host}): check the name, or the pod is gone"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return f"TLS failed ({error}): the metrics address is usually plain http"
    if isinstance(error, aiohttp.ClientConnectorError):
        return (
            f"no connection ({error.os_error.strerror or error}): nothing listens there, or not yet"
        )
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke in the middle of the body: truncated answers are not used"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"not HTTP ({error.message}): is this the metrics port?"
    return f"the connection broke ({str(error) or type(error).__name__})"
