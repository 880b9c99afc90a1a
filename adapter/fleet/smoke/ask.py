"""What a smoke request is and what its answer says, whichever protocol it speaks."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

TOKENS: Final = 16
"""Tokens asked for: enough that two answers of a working model differ, few enough to be free."""


class UnusableAnswerError(ValueError):
    """The engine answered, and what it says is no generation; says what it was."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One HTTP request, relative to an endpoint's base address."""

    path: str
    body: bytes = b""
    method: str = "POST"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; header names are lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Said:
    """What a generation says."""

    output: str
    """The generated text, or the output tensors as canonical JSON; never empty."""

    id: str | None = None
    """The response's own id; two answers with one id are one answer, replayed."""

    versions: Mapping[str, str] = field(default_factory=dict)
    """What the body says of the model that answered, by field."""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How one kind of server is asked."""

    name: str
    generation: Callable[[str, str], Ask]
    """Model and prompt to the request, greedy and short."""

    said: Callable[[Answer], Said]
    """The answer's meaning. Raises UnusableAnswerError."""

    identities: Callable[[str], Mapping[str, Ask]]
    """Model to the questions about which version is loaded, by where it is asked."""

    identity: Callable[[str, str, Answer], Mapping[str, str]]
    """Where it was asked, model, answer to the versions it tells; empty when it tells none."""

    describe: Callable[[str], Ask] | None = None
    """Model to the question what inputs it takes, where the protocol has no fixed ones."""

    shaped: Callable[[str, str, Mapping[str, Any]], Ask] | None = None
    """Model, prompt and that description to the request."""


def json_ask(path: str, body: object) -> Ask:
    """Return a POST of ``body`` as JSON."""
    return Ask(path, json.dumps(body).encode())


def object_of(answer: Answer) -> Mapping[str, Any]:
    """Return the JSON object in an answer that went well.

    Raises:
        UnusableAnswerError: another status, or not a JSON object.
    """
    if answer.status != 200:  # noqa: PLR2004 - a generation is answered 200 or it is none
        raise UnusableAnswerError(f"answered {answer.status}: {_start(answer.body)}")
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError) as error:  # nested without end, the second
        raise UnusableAnswerError(f"not JSON: {_start(answer.body)}") from error
    if not isinstance(found, dict):
        raise UnusableAnswerError(f"not a JSON object: {_start(answer.body)}")
    if "error" in found:
        raise UnusableAnswerError(f"an error with status 200: {_start(answer.body)}")
    return found


def strings(found: Mapping[str, Any], *keys: str) -> dict[str, str]:
    """Return those of ``keys`` that ``found`` has a plain value for."""
    return {key: str(found[key]) for key in keys if isinstance(found.get(key), str | int | float)}


def _start(body: bytes) -> str:
    return shown(body[:200].decode("utf-8", "replace")) or "an empty body"


def shown(text: str) -> str:
    """Return what a stranger sent on one line, and nothing that a terminal would obey."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
