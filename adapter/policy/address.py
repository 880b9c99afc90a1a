"""Addresses that a policy names: whether they are any, and how they are shown to people."""

import re
from typing import Final
from urllib.parse import urlsplit

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/?#]*@")
_SECRET: Final = re.compile(r"(?<=://)\S*(?=@)")
"""Wider than credentials may be: who forgets to escape a slash in a password shows half of it."""


def checked_address(url: str) -> str:
    """Return ``url`` if a connection to it could be tried.

    Raises:
        ValueError: no host, a port out of range, half a bracket.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("no host, or no port")
    return url


def shown_address(url: str) -> str:
    """Return ``url`` without credentials: fit for logs, answers, and the state on disk."""
    return _CREDENTIALS.sub("", url, count=1)


def masked(text: str) -> str:
    """Return ``text`` with the credentials of every address starred out, as long as it was."""
    return _SECRET.sub(lambda secret: "*" * len(secret[0]), text)
