"""The listeners of ``leadtime serve``, from its options: HTTP, and gRPC for KEDA beside it."""

import argparse
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.controller.board import Board
    from adapter.controller.ports import Clock
    from adapter.serving.app import Access
    from adapter.serving.metrics_api.keys import ApiKeys
    from adapter.serving.server import Address
    from adapter.serving.telemetry import Meters
    from adapter.serving.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Listening:
    """Where it listens, and the files that somebody must follow meanwhile."""

    address: "Address"
    scaler: "Address | None"
    tls: "tuple[ServerTls, ...]"
    keys: "tuple[ApiKeys, ...]"


@contextlib.asynccontextmanager
async def listening(
    options: argparse.Namespace, board: "Board", *, clock: "Clock", meters: "Meters"
) -> AsyncIterator[Listening]:
    """Listen on every address that the options ask for while the context is open.

    Raises:
        TlsError, ApiKeysError: a file is missing or unusable.
        ListenError: an address cannot be served on.
    """
    from adapter.serving.app import create_app
    from adapter.serving.server import serve

    tls = None if options.insecure_http else _tls(options)
    access = None if tls is None else _access(options, tls, clock)
    app = create_app(board, clock=clock, meters=meters, access=access)
    async with contextlib.AsyncExitStack() as stack:
        followed = [] if tls is None else [tls]
        scaler = None
        if options.keda_port is not None:
            own = None if tls is None else _scaler_tls(options, tls)
            scaler = await stack.enter_async_context(
                _scaler(options, board, own, clock=clock, meters=meters)
            )
            followed += [own] if own is not None and own is not tls else []
        address = await stack.enter_async_context(
            serve(app, host=_host(options), port=options.port, tls=tls)
        )
        keys = () if access is None or access.keys is None else (access.keys,)
        yield Listening(address, scaler, tuple(followed), keys)


def unusable(options: argparse.Namespace) -> str:
    """Return what keeps these options from being used, with the way out; empty: nothing."""
    return _unfit_keda(options) or _unfit_tls(options)


def _unfit_keda(options: argparse.Namespace) -> str:
    if options.keda_port and options.keda_port == options.port:
        return f"--keda-port {options.keda_port} is --port already: HTTP and gRPC need one each"
    if options.keda_client_ca and options.keda_port is None and options.requestheader_ca:
        return (
            "--keda-client-ca says who may call the external scaler, and HTTP obeys "
            "--requestheader-ca: give --keda-port, or leave one of the two out"
        )
    return ""


def _unfit_tls(options: argparse.Namespace) -> str:
    pair = [options.tls_cert, options.tls_key]
    doors = [options.keda_client_ca, options.api_keys]
    if options.insecure_http:
        if any([*pair, options.requestheader_ca, *doors]):
            return (
                "--insecure-http excludes --tls-cert, --tls-key, --requestheader-ca, "
                "--keda-client-ca and --api-keys: drop one"
            )
        return ""
    # Without the front proxy's CA nobody can read external metrics, which only KEDA can do without.
    if all(pair) and (options.requestheader_ca or options.keda_port is not None or any(doors)):
        return ""
    return (
        "give --tls-cert, --tls-key and --requestheader-ca (what an APIService needs), "
        "--keda-port or --api-keys in place of the last where only KEDA asks, "
        "or --insecure-http to try it on this machine"
    )


def _tls(options: argparse.Namespace) -> "ServerTls":
    """Return the TLS of HTTP: the front proxy's CA, or KEDA's where there is no front proxy.

    Never both: either CA could then sign a certificate in the name of the front proxy.
    """
    from adapter.serving.tls import ServerTls, TlsFiles

    if options.requestheader_ca is None:
        return _keda_tls(options)
    return ServerTls(TlsFiles(options.tls_cert, options.tls_key, options.requestheader_ca))


def _keda_tls(options: argparse.Namespace) -> "ServerTls":
    from adapter.serving.tls import ServerTls, TlsFiles

    return ServerTls(
        TlsFiles(
            options.tls_cert,
            options.tls_key,
            options.keda_client_ca,
            ca_is="KEDA's client CA",
            ca_must_be="the PEM of the CA that signs the TriggerAuthentication's certificate",
        )
    )


def _scaler_tls(options: argparse.Namespace, tls: "ServerTls") -> "ServerTls":
    """Return the scaler's TLS: the same certificate, but KEDA's CA and not the front proxy's."""
    return tls if options.requestheader_ca is None else _keda_tls(options)


def _access(options: argparse.Namespace, tls: "ServerTls", clock: "Clock") -> "Access":
    """Return who may ask behind TLS."""
    from adapter.serving.app import Access
    from adapter.serving.external_metrics import authn, authz
    from adapter.serving.metrics_api.keys import ApiKeys

    readers = authz.HPA_IDENTITIES | set(options.allow_user)
    names = options.requestheader_allowed_name or authn.RequestHeader().allowed_names
    proxy = authn.RequestHeader(allowed_names=tuple(names)) if options.requestheader_ca else None
    return Access(
        request_header=proxy,
        gate=authz.Gate(authz.AllowListAuthorizer(readers), clock=clock),
        trusts=tls.trusts,
        keys=ApiKeys(options.api_keys) if options.api_keys else None,
    )


def _scaler(
    options: argparse.Namespace,
    board: "Board",
    tls: "ServerTls | None",
    *,
    clock: "Clock",
    meters: "Meters",
) -> "contextlib.AbstractAsyncContextManager[Address]":
    # gRPC's own log would tell every port scan as a failed handshake, in a format of its own.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    from adapter.serving.keda.server import serve_scaler

    return serve_scaler(
        board,
        host=_host(options),
        port=options.keda_port,
        clock=clock,
        meters=meters,
        tls=tls,
    )


def _host(options: argparse.Namespace) -> str:
    """Return where to listen: as told, or this machine without TLS, or every address with it."""
    every = "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - behind TLS and authn
    return str(options.host or ("127.0.0.1" if options.insecure_http else every))
