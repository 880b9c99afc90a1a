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
    from adapter.serving.server import Address
    from adapter.serving.telemetry import Meters
    from adapter.serving.tls import ServerTls


@dataclass(frozen=True, slots=True)
class Listening:
    """Where it listens, and the TLS files that somebody must follow meanwhile."""

    address: "Address"
    scaler: "Address | None"
    tls: "tuple[ServerTls, ...]"


@contextlib.asynccontextmanager
async def listening(
    options: argparse.Namespace, board: "Board", *, clock: "Clock", meters: "Meters"
) -> AsyncIterator[Listening]:
    """Listen on every address that the options ask for while the context is open.

    Raises:
        TlsError: a TLS file is missing or unusable.
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
        yield Listening(address, scaler, tuple(followed))


def unusable(options: argparse.Namespace) -> str:
    """Return what keeps these options from being used, with the way out; empty: nothing."""
    return _unfit_keda(options) or _unfit_tls(options)


def _unfit_keda(options: argparse.Namespace) -> str:
    if options.keda_port is None:
        if options.keda_client_ca:
            return "--keda-client-ca says who may call the external scaler: give --keda-port too"
        return ""
    if options.keda_port and options.keda_port == options.port:
        return f"--keda-port {options.keda_port} is --port already: HTTP and gRPC need one each"
    return ""


def _unfit_tls(options: argparse.Namespace) -> str:
    pair = [options.tls_cert, options.tls_key]
    authorities = [options.requestheader_ca, options.keda_client_ca]
    if options.insecure_http:
        if any(pair + authorities):
            return (
                "--insecure-http excludes --tls-cert, --tls-key, --requestheader-ca and "
                "--keda-client-ca: drop one"
            )
        return ""
    # Without the front proxy's CA nobody can read external metrics, which only KEDA can do without.
    if all(pair) and (options.requestheader_ca or options.keda_port is not None):
        return ""
    return (
        "give --tls-cert, --tls-key and --requestheader-ca (what an APIService needs), "
        "--keda-port in place of the last where only KEDA asks, "
        "or --insecure-http to try it on this machine"
    )


def _tls(options: argparse.Namespace) -> "ServerTls":
    from adapter.serving.tls import ServerTls, TlsFiles

    return ServerTls(TlsFiles(options.tls_cert, options.tls_key, options.requestheader_ca))


def _access(options: argparse.Namespace, tls: "ServerTls", clock: "Clock") -> "Access":
    """Return who may ask behind TLS."""
    from adapter.serving.app import Access
    from adapter.serving.external_metrics import authn, authz

    readers = authz.HPA_IDENTITIES | set(options.allow_user)
    names = options.requestheader_allowed_name or authn.RequestHeader().allowed_names
    return Access(
        request_header=authn.RequestHeader(allowed_names=tuple(names)),
        gate=authz.Gate(authz.AllowListAuthorizer(readers), clock=clock),
        trusts=tls.trusts,
    )


def _scaler_tls(options: argparse.Namespace, tls: "ServerTls") -> "ServerTls":
    """Return the scaler's TLS: the same certificate, but KEDA's CA and not the front proxy's."""
    from adapter.serving.tls import ServerTls, TlsFiles

    if options.keda_client_ca is None and options.requestheader_ca is None:
        return tls
    return ServerTls(
        TlsFiles(
            options.tls_cert,
            options.tls_key,
            options.keda_client_ca,
            ca_is="KEDA's client CA",
            ca_must_be="the PEM of the CA that signs the TriggerAuthentication's tlsClientCert",
        )
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
