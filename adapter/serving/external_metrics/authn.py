"""Who asks: the front proxy's word, believed only behind its client certificate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import unquote

from adapter.serving.external_metrics.status import StatusError, unauthorized

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"


@dataclass(frozen=True, slots=True)
class User:
    """The identity that authorization is asked about."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Sorted by key."""


ANONYMOUS: Final = User("system:anonymous", (UNAUTHENTICATED,))


class Headers(Protocol):
    """Request headers: names in any case, repeated ones kept apart."""

    def getall(self, name: str, default: list[str]) -> list[str]:
        """Return every value of ``name``."""
        ...

    def items(self) -> Iterable[tuple[str, str]]:
        """Return every header, in order."""
        ...


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The ``requestheader-*`` keys of ``kube-system/extension-apiserver-authentication``."""

    allowed_names: tuple[str, ...] = ("front-proxy-client",)
    """Common names that may speak for others; empty: any that the CA signed."""

    username_headers: tuple[str, ...] = ("X-Remote-User",)
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    uid_headers: tuple[str, ...] = ("X-Remote-Uid",)

    def identify(self, headers: Headers, peer_name: str | None) -> User:
        """Return who asks.

        ``peer_name`` is the common name of the verified client certificate, None without one:
        then the headers are anybody's claim, and are not read.

        Raises:
            StatusError: 401, for a certificate under another name or a bearer token, which
                nothing here can check.
        """
        if peer_name is not None and self.allowed_names and peer_name not in self.allowed_names:
            raise StatusError(unauthorized())
        name = _first(headers, self.username_headers) if peer_name is not None else ""
        if name:
            return self._user(name, headers)
        if headers.getall("Authorization", []):
            raise StatusError(unauthorized())
        return ANONYMOUS

    def _user(self, name: str, headers: Headers) -> User:
        groups = [group for header in self.group_headers for group in headers.getall(header, [])]
        if name != ANONYMOUS.name and not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
            groups.append(AUTHENTICATED)
        return User(name, tuple(groups), _first(headers, self.uid_headers), self._extra(headers))

    def _extra(self, headers: Headers) -> tuple[tuple[str, tuple[str, ...]], ...]:
        found: dict[str, list[str]] = {}
        for header, value in headers.items():
            for prefix in self.extra_prefixes:
                if header.lower().startswith(prefix.lower()):
                    key = unquote(header[len(prefix) :].lower())
                    found.setdefault(key, []).append(value)
        return tuple((key, tuple(found[key])) for key in sorted(found))


def common_name(certificate: Mapping[str, Any] | None) -> str | None:
    """Return the common name of a client certificate; empty if it has none, None without one.

    ``certificate`` is what ``ssl.SSLSocket.getpeercert`` returned: None or empty means that no
    certificate was sent, or none was verified.
    """
    if not certificate:
        return None
    parts = [part for group in certificate.get("subject", ()) for part in group]
    return next((value for name, value in reversed(parts) if name == "commonName"), "")


def _first(headers: Headers, names: tuple[str, ...]) -> str:
    """Return the first value that says something, or nothing."""
    for name in names:
        for value in headers.getall(name, [])[:1]:
            if value.strip():
                return value.strip()
    return ""
