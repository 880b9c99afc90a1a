"""The policy's JSON Schema: for editors, for kubeconform, and for the words of our own findings."""

import functools
import json
from collections.abc import Iterator
from typing import Any, Final

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from adapter.policy.document import Policy
from adapter.scaling.duration import ParsedDuration, format_duration

Schema = dict[str, Any]
"""A JSON Schema, or a part of one; the one place where JSON of any shape is the very subject."""

SCHEMA_ID: Final = "https://leadtime.dev/schema/scalingpolicy_leadtime_v1alpha1.json"
SCHEMA_FILE: Final = "scalingpolicy_leadtime_v1alpha1.json"
"""The name that kubeconform's ``{kind}_{group}_{version}.json`` looks for."""


@functools.cache
def policy_schema() -> Schema:
    """Return the JSON Schema (draft 2020-12) of one ScalingPolicy document; do not change it.

    It accepts what the loader accepts, but for what no schema can say: the rules between two
    values (``max`` not below ``min``, ``ceiling`` not below ``floor``).
    """
    generated = _polished(Policy.model_json_schema(by_alias=True, schema_generator=_Generator))
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        **generated,
        "title": "ScalingPolicy",
    }


def schema_text() -> str:
    """Return the schema as it is published: the same bytes every time."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"


def schema_at(path: tuple[str | int, ...]) -> Schema:
    """Return the schema of the value at ``path``; empty where the path leaves the policy."""
    found: Schema = policy_schema()
    for part in path:
        found = _below(section_of(found), part)
    return found


def section_of(schema: Schema) -> Schema:
    """Return what ``schema`` stands for: its reference followed, and "or null" left out."""
    while True:
        if "$ref" in schema:
            schema = policy_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
        elif len(variants := _not_null(schema)) == 1:
            schema = variants[0]
        else:
            return schema


def variants_of(schema: Schema) -> list[Schema]:
    """Return the alternatives that ``schema`` offers, without null; itself if it has none."""
    schema = section_of(schema)
    return [section_of(variant) for variant in _not_null(schema)] or [schema]


def every_path() -> Iterator[tuple[str, ...]]:
    """Yield the path of every key that a policy can have, in the order of the document."""
    yield from _paths(policy_schema(), ())


def _paths(schema: Schema, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, below in section_of(schema).get("properties", {}).items():
        yield (*above, key)
        yield from _paths(below, (*above, key))


def _not_null(schema: Schema) -> list[Schema]:
    return [variant for variant in schema.get("anyOf", []) if variant.get("type") != "null"]


def _below(schema: Schema, part: str | int) -> Schema:
    if isinstance(part, int):
        return dict(schema.get("items", {}))
    extra = schema.get("additionalProperties") or {}
    return dict(schema.get("properties", {}).get(part, extra))


class _Generator(GenerateJsonSchema):
    """Leaves out titles that only repeat a name, and writes durations as people do."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def sort(self, value: JsonSchemaValue, parent_key: str | None = None) -> JsonSchemaValue:
        """Keep the order in which the model says things, which is the order of reading."""
        del parent_key
        return value

    def encode_default(self, dft: object) -> object:
        if isinstance(dft, ParsedDuration):
            return format_duration(dft)
        return super().encode_default(dft)


def _polished(part: Any) -> Any:
    """Return ``part`` with descriptions in Markdown and without defaults that say nothing."""
    if isinstance(part, list):
        return [_polished(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _polished(value) for key, value in part.items() if value is not None}
    if isinstance(kept.get("description"), str):
        kept["description"] = " ".join(kept["description"].replace("``", "`").split())
    if "properties" in kept or "enum" in kept:
        kept.pop("title", None)
    return kept
