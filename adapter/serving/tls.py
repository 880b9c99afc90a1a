"""TLS of the listener: certificate and front-proxy CA, both replaceable while it listens."""

import contextlib
import hashlib
import logging
import ssl
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from cryptography import x509

from adapter.controller.errors import AdapterError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp

POLL: Final = Seconds(10.0)
"""How often the files are looked at; content counts, because Secret mounts swap symlinks."""

_CIPHERS: Final = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2; those of 1.3 are all sound."""

_log = logging.getLogger("leadtime")


class TlsError(AdapterError):
    """The TLS files cannot be used: says which and why."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Where the PEM files are."""

    certificate: Path
    key: Path
    client_ca: Path | None = None
    """Whose certificates are asked for; None: nobody can be anybody."""

    ca_is: str = "front-proxy CA"
    """What ``client_ca`` is called where it cannot be used, and what it must be."""

    ca_must_be: str = (
        "the PEM of requestheader-client-ca-file in kube-system/extension-apiserver-authentication"
    )


@dataclass(frozen=True, slots=True)
class Pem:
    """What the files held when they were taken over: for gRPC, which has its own OpenSSL."""

    certificate: bytes
    key: bytes = field(repr=False)
    client_ca: bytes | None


class CertificateMeters(Protocol):
    """What is counted about certificates."""

    def certificate_loaded(self, expires: Timestamp) -> None:
        """Record the certificate in use."""
        ...

    def certificate_refused(self) -> None:
        """Count new TLS files that could not be used."""
        ...


class _Context(ssl.SSLContext):
    """A server context that knows which CA it trusts."""

    trust: bytes = b""


@dataclass(frozen=True, slots=True)
class _Loaded:
    context: _Context
    digest: bytes
    expires: Timestamp
    names: tuple[str, ...]
    pem: Pem


class ServerTls:
    """The TLS of one listener.

    asyncio holds one context for ever. That one only hands every handshake to the context in
    force, so a new certificate and a new CA count from the next connection on, and none breaks.
    """

    def __init__(self, files: TlsFiles) -> None:
        """Load the files.

        Raises:
            TlsError: one is missing or unusable.
        """
        self._files = files
        self._loaded = _load(files)
        self._refused = b""
        self.context = _server_context()
        # OpenSSL takes the store of the context it is switched to, but asks for a client's
        # certificate only if the first context would.
        self.context.verify_mode = self._loaded.context.verify_mode
        self.context.sni_callback = self._switch

    @property
    def expires(self) -> Timestamp:
        """Return when the served certificate expires."""
        return self._loaded.expires

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names it is good for; the API server insists on SERVICE.NAMESPACE.svc."""
        return self._loaded.names

    @property
    def pem(self) -> Pem:
        """Return the files' content in force; another object after each take-over."""
        return self._loaded.pem

    def trusts(self, connection: ssl.SSLObject) -> bool:
        """Return whether ``connection`` was made under the CA that is trusted now."""
        made_under = connection.context
        return isinstance(made_under, _Context) and made_under.trust == self._loaded.context.trust

    def refresh(self, now: Timestamp) -> bool:
        """Take over the files if their content changed; return whether it did.

        Raises:
            TlsError: they changed and cannot be used; the old ones stay in force. Raised once
                for each new content.
        """
        digest = _digest(self._files)
        if digest in {self._loaded.digest, self._refused}:
            return False
        self._refused = digest
        loaded = _load(self._files)
        if loaded.expires <= now:
            raise TlsError(
                f"TLS certificate {self._files.certificate} expired {now - loaded.expires:.0f} s "
                f"ago; put a renewed one there"
            )
        self._loaded, self._refused = loaded, b""
        return True

    async def follow(self, clock: Clock, meters: CertificateMeters) -> None:
        """Look at the files until cancelled."""
        meters.certificate_loaded(self.expires)
        if self.expires <= clock.now():
            note = "clients refuse it; a renewed one is taken over within seconds"
            file = self._files.certificate
            _log.error("tls=expired file=%s expires=%d note=%r", file, self.expires, note)
        while True:
            await clock.sleep_until(Timestamp(clock.now() + POLL))
            try:
                changed = self.refresh(clock.now())
            except TlsError as error:
                meters.certificate_refused()
                _log.error("tls=refused error=%r note='the old files stay in force'", str(error))
                continue
            if changed:
                meters.certificate_loaded(self.expires)
                _log.warning("tls=replaced names=%s expires=%d", self.names, self.expires)

    def _switch(
        self,
        connection: ssl.SSLObject | ssl.SSLSocket,
        name: str | None,
        initial: ssl.SSLContext,
    ) -> None:
        """Give the handshake the context in force; OpenSSL calls this without a name as well."""
        del name, initial
        connection.context = self._loaded.context


def _server_context() -> _Context:
    context = _Context(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_CIPHERS)
    # A resumed session would bring an identity that an older CA vouched for.
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
    return context


def _load(files: TlsFiles) -> _Loaded:
    digest = _digest(files)
    context = _server_context()
    ca = None
    with _readable(files):
        context.load_cert_chain(files.certificate, files.key, password=_no_password)
        certificate, key = files.certificate.read_bytes(), files.key.read_bytes()
        leaf = x509.load_pem_x509_certificate(certificate)
    if files.client_ca is not None:
        ca = _trusted(files.client_ca, files)
        context.load_verify_locations(cadata=ca.decode("ascii"))
        context.verify_mode = ssl.CERT_OPTIONAL
        context.trust = hashlib.sha256(ca).digest()
    expires = Timestamp(leaf.not_valid_after_utc.timestamp())
    return _Loaded(context, digest, expires, _names(leaf), Pem(certificate, key, ca))


def _digest(files: TlsFiles) -> bytes:
    """Return what tells one set of files from another, unreadable ones included."""
    digest = hashlib.sha256()
    for path in (files.certificate, files.key, files.client_ca):
        content = b"" if path is None else _content(path)
        digest.update(hashlib.sha256(content).digest())
    return digest.digest()


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        return repr(error).encode()


@contextlib.contextmanager
def _readable(files: TlsFiles) -> Iterator[None]:
    """Turn what is wrong with certificate and key into one sentence."""
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise TlsError(
            f"TLS certificate {files.certificate} with key {files.key} cannot be used: "
            f"{_cause(error)}; both must be PEM, belong together, and the key have no password"
        ) from error


def _trusted(path: Path, files: TlsFiles) -> bytes:
    """Return the CA certificates in ``path``."""
    try:
        content = path.read_bytes()
        x509.load_pem_x509_certificates(content)
    except (OSError, ValueError) as error:
        raise TlsError(
            f"{files.ca_is} {path} cannot be used: {_cause(error)}; it must be {files.ca_must_be}"
        ) from error
    return content


def _cause(error: Exception) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not PEM").replace("_", " ").lower()
    if isinstance(error, OSError):
        return str(error.strerror)
    return "not PEM"


def _names(leaf: x509.Certificate) -> tuple[str, ...]:
    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = [str(address) for address in found.get_values_for_type(x509.IPAddress)]
    return (*found.get_values_for_type(x509.DNSName), *addresses)


def _no_password() -> str:
    """Answer for the terminal, which OpenSSL would ask otherwise."""
    return ""
