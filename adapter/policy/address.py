"""Addresses that a policy names: whether they are any, and how they are shown to people."""

import re
from typing import Final
from urllib.parse import urlsplit

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/?#]*@")
_PAIR: Final = re.compile(r"([^&;=]*=)([^&;]*)|[^&;]+")
"""One part of a query: a name and its value, or a word alone, which may be a token."""

_HIDDEN: Final = "***"
_CLOSING: Final = "\"'])},"
"""What may stand behind an address in YAML without belonging to it."""


def checked_address(url: str) -> str:
    """Return ``url`` if a connection to it could be tried.

    Raises:
        ValueError: no host, a port out of range, half a bracket.
    """
    parts = urlsplit(url)
    if not parts.hostname or parts.port == 0:
        raise ValueError("no host, or no port")
    return url


def without_credentials(url: str) -> str:
    """Return what tells ``url`` from another address; its query may still hold a secret."""
    return _CREDENTIALS.sub("", url, count=1)


def shown_address(url: str) -> str:
    """Return ``url`` without credentials and without the values of its query, where tokens stand.

    Fit for logs, answers, and the state on disk. What is no address comes back as it is.
    """
    if "://" not in url:
        return url
    place, mark, query = without_credentials(url).partition("#")[0].partition("?")
    return place + mark + _PAIR.sub(lambda pair: (pair[1] or "") + _HIDDEN, query)


def masked(text: str) -> str:
    """Return ``text`` with the secrets of every address starred out, as long as it was.

    Wider than credentials may be: who forgets to escape a slash in a password shows half of it.
    """
    return re.sub(r"\S+", lambda word: _starred(word[0]), text)


def _starred(word: str) -> str:
    scheme, mark, rest = word.partition("://")
    secret, at, place = rest.rpartition("@")
    host, question, query = place.partition("?")
    asked = query.rstrip(_CLOSING)
    hidden = _PAIR.sub(lambda p: (p[1] or "") + "*" * (len(p[0]) - len(p[1] or "")), asked)
    shown = host + question + hidden + query[len(asked) :]
    return scheme + mark + "*" * len(secret) + at + shown if mark else word
