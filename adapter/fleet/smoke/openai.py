"""OpenAI's API, as vLLM, SGLang, TensorRT-LLM and Triton's front end serve it."""

from collections.abc import Mapping
from typing import Any, Final

from adapter.fleet.smoke.ask import (
    TOKENS,
    Answer,
    Ask,
    Protocol,
    Said,
    UnusableAnswerError,
    json_ask,
    object_of,
    strings,
)

_GREEDY: Final = {"max_tokens": TOKENS, "temperature": 0, "seed": 0, "stream": False}


def _completion(model: str, prompt: str) -> Ask:
    return json_ask("/v1/completions", {"model": model, "prompt": prompt, **_GREEDY})


def _chat(model: str, prompt: str) -> Ask:
    messages = [{"role": "user", "content": prompt}]
    return json_ask("/v1/chat/completions", {"model": model, "messages": messages, **_GREEDY})


def _said(answer: Answer) -> Said:
    found = object_of(answer)
    choices = found.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict):
        raise UnusableAnswerError("an answer without choices")
    output = _text(first)
    if not output:
        raise UnusableAnswerError("no token was generated")
    name = found.get("id")
    versions = strings(found, "model", "system_fingerprint")
    return Said(output, name if isinstance(name, str) and name else None, versions)


def _text(choice: Mapping[str, Any]) -> str:
    """Return the text of either face; a reasoning model's thoughts are tokens as well."""
    message = choice.get("message")
    holder = message if isinstance(message, dict) else choice
    parts = (holder.get(key) for key in ("text", "content", "reasoning_content", "reasoning"))
    return "".join(part for part in parts if isinstance(part, str))


def identities(model: str) -> Mapping[str, Ask]:
    """Return the questions that servers of this API answer about their version."""
    del model
    return {path: Ask(path, method="GET") for path in ("/v1/models", "/health", "/version")}


def identity(where: str, model: str, answer: Answer) -> Mapping[str, str]:
    """Return what ``answer`` tells of ``model``'s version; silence is none."""
    try:
        found = object_of(answer)
    except UnusableAnswerError:
        return {}
    if where != "/v1/models":
        return strings(found, *FIELDS)
    listed = found.get("data")
    cards = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    mine = [one for one in cards if not model or one.get("id") == model]
    if not mine:
        names = ", ".join(str(one.get("id")) for one in cards) or "none"
        return {"served": f"not {model} (serves {names})"}
    return strings(mine[0], "root", *FIELDS)


FIELDS: Final = (
    "version", "model_version", "weight_version", "model_hash", "weights_hash", "hash",
    "revision", "sha", "model_path",
)  # fmt: skip
"""Fields by which servers and sidecars tell their weights or release."""

OPENAI: Final = Protocol("openai", _completion, _said, identities, identity)
OPENAI_CHAT: Final = Protocol("openai-chat", _chat, _said, identities, identity)
