"""Asks a Prometheus, or whatever speaks its API, over HTTP: bounded in time and size."""

import asyncio
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import aiohttp
from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from adapter import __version__
from adapter.controller.errors import SourceError
from adapter.fleet.reading import Cause
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.address import shown_address
from adapter.policy.document import PrometheusSource
from adapter.sources.resolve import DaemonResolver
from adapter.sources.scrape import BODY_LIMIT

LONGEST_TIMEOUT: Final = Seconds(10.0)
"""A later answer would be older than the next question, and a decision would wait for it."""

Data = TypeVar("Data")

_SHOWN: Final = 300
"""Characters of its own error that are shown."""


class PrometheusError(SourceError):
    """It gave no usable answer: the cause of the gap, and the sentence."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Access:
    """Where it is and how to be let in; secrets are named by file and never kept."""

    url: str
    timeout: Seconds = LONGEST_TIMEOUT
    tenant: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None

    @staticmethod
    def of(source: PrometheusSource) -> "Access":
        """Return what a policy says."""
        return Access(
            source.url,
            source.timeout or Seconds(min(source.interval, LONGEST_TIMEOUT)),
            source.tenant,
            _path(source.token_file),
            _path(source.ca_file),
            _path(source.cert_file),
            _path(source.key_file),
        )


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)


def _or_empty(value: object) -> object:
    """Return an empty list for the null that Go writes for one."""
    return [] if value is None else value


class Series(BaseModel):
    """One series of an answer; native histograms have neither of the two."""

    model_config = ConfigDict(frozen=True)

    metric: dict[str, str]
    value: tuple[float, str] | None = None
    """Of an instant vector: the time of the question, and the number as text."""

    values: tuple[tuple[float, str], ...] = ()
    """Of a range: the time of each scrape, oldest first."""


class _Result(BaseModel):
    result: Annotated[tuple[Series, ...], BeforeValidator(_or_empty)]


class _Envelope(BaseModel, Generic[Data]):
    status: str
    data: Data | None = None
    error: str = ""
    warnings: Annotated[tuple[str, ...], BeforeValidator(_or_empty)] = ()


_SERIES: Final = TypeAdapter(_Envelope[_Result])
_NAMES: Final = TypeAdapter(_Envelope[tuple[str, ...]])
_FAILURE: Final = TypeAdapter(_Envelope[Any])


class PrometheusApi:
    """The questions that are asked; one pool of kept-alive connections."""

    def __init__(self, access: Access, *, body_limit: int = BODY_LIMIT) -> None:
        self._access, self._limit = access, body_limit
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[tuple[int, ...], ssl.SSLContext] | None = None
        self.name = f"prometheus {shown_address(access.url)}"
        self.questions = 0

    async def close(self) -> None:
        """Close every connection."""
        if self._session is not None:
            await self._session.close()

    async def query(self, promql: str) -> tuple[Series, ...]:
        """Return what ``promql`` yields now.

        Raises:
            PrometheusError: no answer, a refusal, or an answer that is not all of it.
        """
        return await self._series("query", {"query": promql})

    async def query_range(
        self, promql: str, *, start: Timestamp, end: Timestamp, step: Seconds
    ) -> tuple[Series, ...]:
        """Return what ``promql`` yields at ``start`` and each ``step`` after it, to ``end``.

        Raises:
            PrometheusError: see ``query``.
        """
        span = {"start": f"{start:.3f}", "end": f"{end:.3f}", "step": f"{step:g}"}
        return await self._series("query_range", {"query": promql, **span})

    async def label_names(self, match: str, *, since: Timestamp) -> tuple[str, ...]:
        """Return the labels of the series that ``match``, after ``since``.

        Raises:
            PrometheusError: see ``query``.
        """
        form = {"match[]": match, "start": f"{since:.0f}"}
        return await self._names("POST", "labels", form)

    async def label_values(self, label: str, match: str, *, since: Timestamp) -> tuple[str, ...]:
        """Return the values of ``label`` on the series that ``match``, after ``since``.

        Raises:
            PrometheusError: see ``query``.
        """
        form = {"match[]": match, "start": f"{since:.0f}"}
        return await self._names("GET", f"label/{quote(label)}/values", form)

    async def _series(self, verb: str, form: Mapping[str, str]) -> tuple[Series, ...]:
        # Thanos fails then instead of leaving stores out; everyone else ignores the parameter.
        timeout = f"{round(1000 * self._access.timeout)}ms"  # it reads whole numbers only
        asked = {**form, "partial_response": "false", "timeout": timeout}
        answer = await self._ask("POST", verb, asked, _SERIES)
        return answer.result if answer is not None else ()

    async def _names(self, method: str, verb: str, form: Mapping[str, str]) -> tuple[str, ...]:
        return await self._ask(method, verb, form, _NAMES) or ()

    async def _ask(
        self,
        method: str,
        verb: str,
        form: Mapping[str, str],
        adapter: TypeAdapter[_Envelope[Data]],
    ) -> Data | None:
        self.questions += 1
        body = await self._body(method, verb, form)
        try:
            answer = await asyncio.to_thread(adapter.validate_json, body)
        except ValidationError as error:
            raise self._failed(Cause.NOT_METRICS, _what_else(body)) from error
        if answer.status != "success":
            raise self._failed(Cause.HTTP_STATUS, f"says {answer.error[:_SHOWN]!r}")
        if answer.warnings:
            raise self._failed(
                Cause.NOT_METRICS,
                f"the answer is partial ({'; '.join(answer.warnings)[:_SHOWN]}): part of a fleet "
                f"is no fleet; mend the store that is silent, or ask the Prometheus that scrapes",
            )
        return answer.data

    async def _body(self, method: str, verb: str, form: Mapping[str, str]) -> bytes:
        timeout = self._access.timeout
        try:
            async with asyncio.timeout(timeout):
                return await self._exchange(method, verb, form)
        except TimeoutError as error:
            raise self._failed(
                Cause.TIMEOUT,
                f"no complete answer within {timeout:g} s: it is overloaded, or a firewall drops "
                f"the packets; source.prometheus.timeout allows more",
            ) from error
        except aiohttp.InvalidURL as error:  # its own words would be the address, password and all
            raise self._failed(Cause.UNREACHABLE, "no address that could be asked") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self._failed(Cause.UNREACHABLE, _unreachable(error)) from error

    async def _exchange(self, method: str, verb: str, form: Mapping[str, str]) -> bytes:
        headers = await asyncio.to_thread(self._headers)
        tls = await asyncio.to_thread(self._context)
        data, params = (form, None) if method == "POST" else (None, form)
        async with self._open().request(
            method,
            _address(self._access.url, verb),
            data=data,
            params=params,
            headers=headers,
            ssl=tls if tls is not None else True,
            allow_redirects=False,  # a token is for the address it was given for
        ) as answer:
            body = await self._read(answer)
            if answer.status != HTTPStatus.OK:
                raise self._failed(Cause.HTTP_STATUS, _about_status(answer, body))
            return body

    async def _read(self, answer: aiohttp.ClientResponse) -> bytes:
        pieces, length = [], 0
        async for piece in answer.content.iter_any():
            length += len(piece)
            if length > self._limit:
                raise self._failed(
                    Cause.TOO_LARGE,
                    f"the answer is over {self._limit / 1024 / 1024:g} MiB, and was not read on: "
                    f"do source.prometheus.labels choose one fleet?",
                )
            pieces.append(piece)
        return b"".join(pieces)

    def _open(self) -> aiohttp.ClientSession:
        """Return the session; it wants a running loop, which there is at the first question."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(resolver=DaemonResolver()),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept": "application/json", "User-Agent": f"leadtime/{__version__}"},
            )
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {} if self._access.tenant is None else {"X-Scope-OrgID": self._access.tenant}
        path = self._access.token_file
        if path is not None:
            try:
                token = path.read_text(encoding="ascii").strip()
            except (OSError, ValueError) as error:
                raise self._no_file("tokenFile", path, error) from error
            if not token or not token.isprintable():
                raise self._no_file("tokenFile", path, ValueError("no token in it"))
            headers["Authorization"] = f"Bearer {token}"
        return headers

    def _context(self) -> ssl.SSLContext | None:
        """Return the TLS settings of the files, read again when one of them changes."""
        access = self._access
        files = [path for path in (access.ca_file, access.cert_file, access.key_file) if path]
        if not files:
            return None
        try:
            marks = tuple(path.stat().st_mtime_ns for path in files)
            if self._tls is None or self._tls[0] != marks:
                context = ssl.create_default_context(cafile=access.ca_file)
                if access.cert_file is not None:
                    context.load_cert_chain(access.cert_file, access.key_file)
                self._tls = (marks, context)
        except (OSError, ValueError) as error:
            named = ", ".join(map(str, files))
            raise self._no_file("caFile, certFile or keyFile", named, error) from error
        return self._tls[1]

    def _no_file(self, key: str, path: Path | str, error: Exception) -> PrometheusError:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        why = "not ASCII text" if isinstance(error, UnicodeError) else why
        return self._failed(
            Cause.UNREACHABLE, f"was not asked: source.prometheus.{key} {path}: {why}"
        )

    def _failed(self, cause: Cause, detail: str) -> PrometheusError:
        return PrometheusError(cause, f"{self.name}: {detail}")


def _address(url: str, verb: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/api/v1/{verb}", fragment=""))


def _about_status(answer: aiohttp.ClientResponse, body: bytes) -> str:
    said = f"answered {answer.status} {answer.reason or ''}".rstrip()
    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        return f"{said}: it wants credentials; set source.prometheus.tokenFile, or certFile"
    if 300 <= answer.status < 400:  # noqa: PLR2004 - the class of redirects
        where = shown_address(answer.headers.get("Location", "nowhere"))
        return f"{said} to {where!r}: redirects are not followed; give the final address"
    why = _own_words(body)
    if why:
        return f"{said}: {why}"
    if answer.status == HTTPStatus.NOT_FOUND:
        return f"{said}: no Prometheus API at this path; Mimir's address ends in /prometheus"
    return f"{said}, and does not say why"


def _own_words(body: bytes) -> str:
    try:
        return _FAILURE.validate_json(body).error[:_SHOWN]
    except ValidationError:
        return ""


def _what_else(body: bytes) -> str:
    """Return what an answer is that is none of this API's."""
    start = body[:512].lstrip()
    if not start:
        return "an empty answer: a proxy between may have swallowed it"
    if start.startswith(b"<"):
        return "an HTML page, no answer of the API: a login or a proxy answers here; check the url"
    shown = start[:60].decode(errors="replace")
    return f"no answer of the API, or a damaged one: it begins with {shown!r}; check the url"


def _unreachable(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no such host ({error.host}): check source.prometheus.url"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        return f"TLS failed ({error}): set source.prometheus.caFile, or certFile and keyFile"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection ({error.os_error.strerror or error}): nothing listens there"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "the connection broke in the middle of the answer"
    return f"the connection broke ({str(error) or type(error).__name__})"
