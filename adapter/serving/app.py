"""The application: every path, who may ask for it, and what a failure looks like."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import NoDecisionYetError, NotServedError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds
from adapter.serving import metrics_api, telemetry
from adapter.serving.external_metrics import GROUP, VERSION
from adapter.serving.external_metrics import discovery as documents
from adapter.serving.external_metrics.accept import accepts_aggregated, check_accepts_json
from adapter.serving.external_metrics.authn import (
    ANONYMOUS,
    RequestHeader,
    User,
    common_name,
)
from adapter.serving.external_metrics.authz import Attributes, Gate
from adapter.serving.external_metrics.metric import metric_value_list
from adapter.serving.external_metrics.status import (
    Status,
    StatusError,
    forbidden_metric,
    forbidden_path,
    method_not_allowed,
    not_found,
    watch_not_supported,
)
from adapter.serving.metrics_api.document import policy_document
from adapter.serving.metrics_api.keys import HEADER, PARAMETER, ApiKeys
from adapter.serving.probes import Health, Probes
from adapter.serving.telemetry import Meters

API: Final = f"/apis/{GROUP}/{VERSION}"
METRIC: Final = API + "/namespaces/{namespace}/{metric}"

_NOSNIFF: Final = {"X-Content-Type-Options": "nosniff"}


@dataclass(frozen=True, slots=True)
class Access:
    """How a caller is identified and judged; without it everything is open (loopback only)."""

    request_header: RequestHeader | None
    """How the front proxy speaks for others; None: nobody does, whatever their certificate."""

    gate: Gate
    trusts: Callable[[ssl.SSLObject], bool]
    """Whether a connection was made under the CA that is trusted now."""

    keys: ApiKeys | None = None
    """Who may read the policies' documents without an API server in between."""


def create_app(
    board: Board, *, clock: Clock, meters: Meters, access: Access | None
) -> web.Application:
    """Return the application; it reads ``board`` and computes nothing.

    ``access`` None opens every path to everybody: for plain HTTP on loopback, and nothing else.
    """
    probes = Probes(board, clock=clock)
    application = web.Application(middlewares=[_measured(meters), _answered(access)])
    router = application.router
    router.add_get("/apis", _groups)
    router.add_get(f"/apis/{GROUP}", _constant(documents.ONE_GROUP))
    router.add_get(API, _constant(documents.RESOURCES))
    router.add_get("/openapi/v2", _constant(documents.OPENAPI_V2))
    router.add_get("/openapi/v3", _constant(documents.OPENAPI_V3))
    router.add_get(METRIC, _metric(board, clock))
    router.add_get(metrics_api.PATH, _document(board, clock))
    router.add_get("/healthz", _probe(lambda: Health(good=True, text="ok")))
    router.add_get("/livez", _probe(probes.live))
    router.add_get("/readyz", _probe(probes.ready))
    router.add_get("/metrics", _exposition(meters))
    return application


def failure(status: Status) -> web.Response:
    """Return ``status`` as a response."""
    body = json.dumps(status.document(), separators=(",", ":")).encode()
    return web.Response(
        status=status.code, body=body, content_type=documents.JSON, headers=_NOSNIFF
    )


def _measured(meters: Meters) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        began, code = loop.time(), 500
        try:
            response = await handler(request)
            code = response.status
        finally:
            meters.answered(_template(request), code, Seconds(loop.time() - began))
        return response

    return middleware


def _answered(access: Access | None) -> Middleware:
    @web.middleware
    async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            if access is not None:
                await _admit(request, access)
            response = await _guarded(request, handler)
        except StatusError as error:
            response = failure(error.status)
        except NoDecisionYetError as error:
            response = failure(Status(503, str(error)))
        except NotServedError as error:
            response = failure(Status(404, str(error)))
        if access is not None:
            _renew_trust(request, response, access)
        return response

    return middleware


async def _guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refuse what no handler wants: other methods, unknown paths, bodies."""
    if isinstance(request.match_info.http_exception, web.HTTPMethodNotAllowed):
        raise StatusError(method_not_allowed())
    if request.match_info.http_exception is not None:
        raise StatusError(not_found())
    if request.body_exists:
        raise StatusError(Status(413, "nothing here takes a request body"))
    return await handler(request)


async def _admit(request: web.Request, access: Access) -> None:
    """Let the request through, or raise what it is refused with."""
    transport = request.transport
    certificate = transport.get_extra_info("peercert") if transport is not None else None
    name = common_name(certificate)
    if _template(request) == metrics_api.PATH and _knocks(request, access, name):
        return
    proxy = access.request_header
    user = ANONYMOUS if proxy is None else proxy.identify(request.headers, name)
    asked = _attributes(request, user)
    if not await access.gate.allows(asked):
        raise StatusError(_forbidden(asked))


def _knocks(request: web.Request, access: Access, certified: str | None) -> bool:
    """Return whether the request may read a policy's document on its own account.

    A certificate is enough where there is no front proxy: its CA is then the readers' own.
    """
    if access.request_header is None and certified is not None:
        return True
    if access.keys is None:
        return False
    admitted = access.keys.admit(request.headers, request.query)
    if admitted:
        return True
    if admitted is None and certified is not None:
        return False
    raise StatusError(
        Status(
            401,
            f"{'no' if admitted is None else 'not a'} valid API key; show one of --api-keys: "
            f"header {HEADER}, query {PARAMETER}, bearer, or basic",
        )
    )


def _attributes(request: web.Request, user: User) -> Attributes:
    """Return what is asked for, as Go's RequestInfo would read it.

    A metric's path has a resource and no name, so the verb is ``list``, although discovery
    advertises ``get``.
    """
    verb = "get" if request.method in {"GET", "HEAD"} else request.method.lower()
    found = request.match_info
    if "metric" not in found:
        return Attributes(user, verb, request.path)
    verb = "watch" if _watches(request) else "list"
    return Attributes(user, verb, request.path, found["namespace"], found["metric"].lower())


def _forbidden(asked: Attributes) -> Status:
    name = asked.user.name
    if asked.resource:
        return forbidden_metric(name, asked.verb, asked.namespace, asked.resource)
    return forbidden_path(name, asked.verb, asked.path)


def _renew_trust(request: web.Request, response: web.StreamResponse, access: Access) -> None:
    """Close a connection after this answer if it was made under a CA that is trusted no more."""
    transport = request.transport
    connection = transport.get_extra_info("ssl_object") if transport is not None else None
    if connection is not None and not access.trusts(connection):
        response.force_close()


def _template(request: web.Request) -> str:
    resource = request.match_info.route.resource
    return "unknown" if resource is None else resource.canonical


async def _groups(request: web.Request) -> web.Response:
    if accepts_aggregated(_accept(request)):
        return _cached(request, documents.AGGREGATED_GROUPS)
    return await _constant(documents.GROUPS)(request)


def _constant(document: documents.Document) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        check_accepts_json(_accept(request))
        return _cached(request, document)

    return handler


def _cached(request: web.Request, document: documents.Document) -> web.Response:
    """Return the document, or 304 to those who have it."""
    headers = {"ETag": document.etag, "Vary": "Accept"}
    known = request.headers.get("If-None-Match", "")
    if document.etag in {etag.strip().removeprefix("W/") for etag in known.split(",")}:
        return web.Response(status=304, headers=headers)
    headers["Content-Type"] = document.content_type
    return web.Response(body=document.body, headers=headers)


def _metric(board: Board, clock: Clock) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        check_accepts_json(_accept(request))
        if _watches(request):
            raise StatusError(watch_not_supported())
        value = metric_value_list(
            board,
            namespace=request.match_info["namespace"],
            metric=request.match_info["metric"],
            selector=request.query.get("labelSelector", ""),
            now=clock.now(),
        )
        body = json.dumps(value, separators=(",", ":")).encode()
        return web.Response(body=body, content_type=documents.JSON)

    return handler


def _document(board: Board, clock: Clock) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        check_accepts_json(_accept(request))
        key = PolicyKey(request.match_info["namespace"], request.match_info["policy"])
        body = json.dumps(policy_document(board, key, clock.now()), separators=(",", ":")).encode()
        return web.Response(
            body=body,
            content_type=documents.JSON,
            headers={"Cache-Control": "no-store", **_NOSNIFF},
        )

    return handler


def _probe(check: Callable[[], Health]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        del request
        health = check()
        status = 200 if health.good else 503
        return web.Response(status=status, text=health.text, headers=_NOSNIFF)

    return handler


def _exposition(meters: Meters) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        del request
        return web.Response(
            body=meters.render(), headers={"Content-Type": telemetry.CONTENT_TYPE, **_NOSNIFF}
        )

    return handler


def _accept(request: web.Request) -> str:
    return ",".join(request.headers.getall("Accept", []))


def _watches(request: web.Request) -> bool:
    return request.query.get("watch", "").lower() in {"1", "t", "true"}
