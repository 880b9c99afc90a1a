"""Triton: the v2 protocol. A model takes the tensors that its metadata names, so that is asked."""

import hashlib
import json
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

_TEXT: Final = "text_input"
"""The input of LLM backends; their models answer ``/generate``, decoupled ones included."""

_WHOLE: Final = ("INT", "UINT")


def _generate(model: str, prompt: str) -> Ask:
    parameters = {"max_tokens": TOKENS, "temperature": 0, "stream": False}
    return json_ask(f"/v2/models/{model}/generate", {_TEXT: prompt, "parameters": parameters})


def _shaped(model: str, prompt: str, described: Mapping[str, Any]) -> Ask:
    """Return the request that the description asks for, with values made from the prompt.

    Dimensions that are free are 1. Numbers are small and differ with the prompt.
    """
    inputs = described.get("inputs")
    listed = [one for one in inputs if isinstance(one, dict)] if isinstance(inputs, list) else []
    if any(one.get("name") == _TEXT for one in listed):
        return _generate(model, prompt)
    if not listed:
        raise UnusableAnswerError("the model's metadata names no inputs: give two with --input")
    tensors = [_tensor(one, prompt) for one in listed]
    return json_ask(f"/v2/models/{model}/infer", {"inputs": tensors})


def _tensor(one: Mapping[str, Any], prompt: str) -> dict[str, object]:
    kind, name = str(one.get("datatype")), str(one.get("name"))
    shape = [max(1, int(size)) for size in one.get("shape", [1])]
    count = 1
    for size in shape:
        count *= size
    if count > _MOST:
        raise UnusableAnswerError(f"input {name} has {count} elements: give two with --input")
    return {"name": name, "datatype": kind, "shape": shape, "data": _data(kind, count, prompt)}


_MOST: Final = 65_536
"""Elements of an input that are still made up; more is a picture, and wants a real one."""


def _data(kind: str, count: int, prompt: str) -> list[object]:
    seed = hashlib.sha256(prompt.encode()).digest()
    numbers = [seed[k % len(seed)] % 100 for k in range(count)]
    if kind == "BYTES":
        return [prompt] * count
    if kind == "BOOL":
        return [number % 2 == 0 for number in numbers]
    if kind.startswith(_WHOLE):
        return list(numbers)
    return [number / 100.0 for number in numbers]


def _said(answer: Answer) -> Said:
    found = object_of(answer)
    versions = strings(found, "model_version")
    text = found.get("text_output")
    if isinstance(text, str):
        if not text:
            raise UnusableAnswerError("no token was generated")
        return Said(text, None, versions)
    outputs = found.get("outputs")
    if not isinstance(outputs, list) or not outputs:
        raise UnusableAnswerError("an answer without outputs")
    name = found.get("id")
    kept = name if isinstance(name, str) and name else None
    return Said(json.dumps(outputs, sort_keys=True), kept, versions)


def _identities(model: str) -> Mapping[str, Ask]:
    return {
        "/v2/repository/index": json_ask("/v2/repository/index", {}),
        f"/v2/models/{model}": Ask(f"/v2/models/{model}", method="GET"),
    }


def _identity(where: str, model: str, answer: Answer) -> Mapping[str, str]:
    if where == "/v2/repository/index":
        return _from_index(model, answer)
    try:
        versions = object_of(answer).get("versions")
    except UnusableAnswerError:
        return {}
    return {"versions": ",".join(map(str, versions))} if isinstance(versions, list) else {}


def _from_index(model: str, answer: Answer) -> Mapping[str, str]:
    try:
        index = json.loads(answer.body)
    except ValueError:
        return {}
    listed = [one for one in index if isinstance(one, dict)] if isinstance(index, list) else []
    mine = [one for one in listed if one.get("name") == model]
    loaded = sorted(str(one.get("version")) for one in mine if one.get("state") == "READY")
    return {"ready": ",".join(loaded)} if mine else {}


def _describe(model: str) -> Ask:
    return Ask(f"/v2/models/{model}", method="GET")


TRITON: Final = Protocol(
    "triton", _generate, _said, _identities, _identity, describe=_describe, shaped=_shaped
)
