"""SGLang's own API: ``/generate``, and ``/model_info``, which names the weights' version."""

from collections.abc import Mapping
from typing import Final

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
from adapter.fleet.smoke.openai import identity

_ASKED: Final = ("/model_info", "/get_model_info", "/v1/models")
"""``/get_model_info`` is the name before 0.5.x and still answers."""


def _generation(model: str, prompt: str) -> Ask:
    del model
    greedy = {"max_new_tokens": TOKENS, "temperature": 0}
    return json_ask("/generate", {"text": prompt, "sampling_params": greedy})


def _said(answer: Answer) -> Said:
    found = object_of(answer)
    output = found.get("text")
    if not isinstance(output, str) or not output:
        raise UnusableAnswerError("no token was generated")
    about = found.get("meta_info")
    meta = about if isinstance(about, dict) else {}
    name = meta.get("id")
    return Said(output, name if isinstance(name, str) else None, strings(meta, "weight_version"))


def _identities(model: str) -> Mapping[str, Ask]:
    del model
    return {path: Ask(path, method="GET") for path in _ASKED}


SGLANG: Final = Protocol("sglang", _generation, _said, _identities, identity)
