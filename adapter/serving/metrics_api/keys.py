"""API keys: a file of names and secrets, replaceable while it is served."""

import base64
import binascii
import hashlib
import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Protocol

from adapter.controller.errors import AdapterError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp

POLL: Final = Seconds(10.0)
"""How often the file is looked at; content counts, because Secret mounts swap symlinks."""

SHORTEST: Final = 16
"""Characters of a secret; what is shorter can be guessed."""

HEADER: Final = "X-API-KEY"
PARAMETER: Final = "api_key"
"""Where KEDA puts an apiKey when nothing else is said."""

_log = logging.getLogger("leadtime")


class ApiKeysError(AdapterError):
    """The file cannot be used: says which line and why, and never the secret."""


class Headers(Protocol):
    """Request headers, by name in any case."""

    def get(self, name: str, default: str, /) -> str:
        """Return the first value of ``name``."""
        ...


@dataclass(frozen=True, slots=True)
class _Key:
    """Digests, so that a comparison tells neither a length nor a beginning."""

    name: bytes = field(repr=False)
    secret: bytes = field(repr=False)


class ApiKeys:
    """Says whether a request shows one of the keys."""

    def __init__(self, path: Path) -> None:
        """Load the file.

        Raises:
            ApiKeysError: it is missing or unusable.
        """
        self._path = path
        self._content = _content(path)
        self._refused: bytes | None = None
        self._keys = _parsed(path, self._content)

    def admit(self, headers: Headers, query: Mapping[str, str]) -> bool | None:
        """Return whether what the request shows is a key; None when it shows nothing."""
        shown = [_shown(headers.get("Authorization", ""))]
        shown += [(None, text) for text in (headers.get(HEADER, ""), query.get(PARAMETER, ""))]
        offers = [offer for offer in shown if offer is not None and offer[1]]
        if not offers:
            return None
        return any(self._is_key(name, secret) for name, secret in offers)

    def refresh(self) -> bool:
        """Take over the file if its content changed; return whether it did.

        Raises:
            ApiKeysError: it changed and cannot be used; the old keys stay in force. Raised once
                for each new content.
        """
        content = _content(self._path)
        if content in {self._content, self._refused}:
            return False
        self._refused = content
        self._keys = _parsed(self._path, content)
        self._content, self._refused = content, None
        return True

    async def follow(self, clock: Clock) -> None:
        """Look at the file until cancelled."""
        while True:
            await clock.sleep_until(Timestamp(clock.now() + POLL))
            try:
                if self.refresh():
                    _log.warning("keys=replaced count=%d", len(self._keys))
            except ApiKeysError as error:
                _log.error("keys=refused error=%r note='the old keys stay in force'", str(error))

    def _is_key(self, name: str | None, secret: str) -> bool:
        """Compare with every key, whichever is found, so that time tells nothing."""
        secret_digest = _digest(secret)
        name_digest = None if name is None else _digest(name)
        found = False
        for key in self._keys:
            same = hmac.compare_digest(key.secret, secret_digest)
            named = name_digest is None or hmac.compare_digest(key.name, name_digest)
            found |= same & named
        return found


def _shown(authorization: str) -> tuple[str | None, str] | None:
    """Return the name and the secret of an Authorization header; None where it has none."""
    scheme, _, credentials = authorization.strip().partition(" ")
    credentials = credentials.strip()
    if scheme.lower() == "bearer":
        return None, credentials
    if scheme.lower() != "basic":
        return ("", authorization) if authorization else None
    try:
        text = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return "", credentials
    name, _, secret = text.partition(":")
    return name, secret


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ApiKeysError(
            f"API keys {path} cannot be read: {error.strerror}; it holds one NAME:SECRET a line"
        ) from error


def _parsed(path: Path, content: bytes) -> tuple[_Key, ...]:
    try:
        lines = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise ApiKeysError(
            f"API keys {path} are no UTF-8 text; write one NAME:SECRET a line"
        ) from (error)
    keys = []
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, colon, secret = (part.strip() for part in line.partition(":"))
        if not (name and colon and secret):
            raise ApiKeysError(f"API keys {path} line {number}: write NAME:SECRET")
        if len(secret) < SHORTEST:
            raise ApiKeysError(
                f"API keys {path} line {number}: the secret of {name!r} is shorter than "
                f"{SHORTEST} characters; make one with: openssl rand -hex 24"
            )
        keys.append(_Key(_digest(name), _digest(secret)))
    if not keys:
        raise ApiKeysError(f"API keys {path} hold no key; write one NAME:SECRET a line")
    return tuple(keys)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()
