"""The JSON Schema: what it says, and that it and the loader are of one mind."""

import copy
import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.policy.load import read_policies
from adapter.policy.schema import (
    SCHEMA_FILE,
    every_path,
    policy_schema,
    schema_at,
    schema_text,
    section_of,
)

ROOT = Path(__file__).parents[2]
VALIDATOR = jsonschema.Draft202012Validator(policy_schema())

WHOLE = {
    "apiVersion": "leadtime.dev/v1alpha1",
    "kind": "ScalingPolicy",
    "metadata": {"name": "chat", "namespace": "inference", "labels": {"team": "a"}},
    "spec": {
        "mode": "active",
        "target": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "chat"},
        "engine": "vllm",
        "model": "m",
        "source": {"static": {"urls": ["http://a/metrics"], "interval": "5s", "timeout": "1s"}},
        "replicas": {"min": 2, "max": 8},
        "signals": {
            "queue": {"targetInFlight": "auto", "headroom": 0.9},
            "kvCache": {"target": 0.8},
            "ttft": {"objective": "2s", "quantile": 0.95, "window": "2m"},
        },
        "scaleUp": {"maxStep": "100%"},
        "scaleDown": {
            "delay": "auto",
            "delayFactor": 1.5,
            "minDelay": "2m",
            "maxDelay": "30m",
            "onlyIdle": True,
        },
        "loadTime": {"quantile": 0.95, "default": "4m"},
        "standby": {"coverage": 0.99, "history": "336h", "floor": 0, "ceiling": 6},
        "staleAfter": "2m",
    },
}
VALUES = (
    *(None, True, False, 0, 1, 2, 5, 80, 70_000, -1, 0.5, 1.5, -0.5, 10**30),
    *("auto", "5m", "0s", "0h0ms", "1d", "", "x", "X_y", "100%", "0%", "off", "sglang", "8000"),
    *("http://a/b", "http://", "/metrics", "metrics", "a.b", "-a", "leadtime.dev/v1alpha1"),
    *([], ["http://a"], ["http://a", "http://a"], ["x"], {}, {"a": "b"}, {"a": 1}),
)


def test_the_schema_is_a_valid_schema_of_its_draft():
    jsonschema.Draft202012Validator.check_schema(policy_schema())


def test_a_whole_policy_satisfies_it_and_the_loader():
    assert VALIDATOR.is_valid(WHOLE)
    assert read_policies(json.dumps(WHOLE), "p.json")[1] == ()


def test_every_key_is_in_the_whole_policy_of_these_tests():
    """So that the properties below reach every key there is, but for the other sources."""

    def paths(value, above=()):
        for key, below in value.items():
            yield (*above, key)
            if isinstance(below, dict):
                yield from paths(below, (*above, key))

    left_out = {path for path in every_path() if path[:2] == ("spec", "source")}
    left_out |= {("metadata", "annotations")}

    assert set(every_path()) - left_out <= set(paths(WHOLE))


@pytest.mark.parametrize("path", list(every_path()), ids=".".join)
def test_every_key_has_a_meaning(path):
    """Hovering over a key in an editor says what it is for."""
    schema = schema_at(path)

    assert schema.get("description")
    assert "``" not in schema["description"]
    assert re.fullmatch(r"[a-z][A-Za-z]*", path[-1])


@pytest.mark.parametrize("path", [(), *every_path()], ids=".".join)
def test_every_required_key_has_an_example(path):
    """What is missing is asked for with a line to copy."""
    section = section_of(schema_at(path))

    for key in section.get("required", ()):
        assert {"examples", "const"} & set(schema_at((*path, key)))


def test_unknown_keys_are_refused_in_every_section():
    sections = [section_of(schema_at(path)) for path in ((), *every_path())]
    closed = [section for section in sections if "properties" in section]

    assert len(closed) > 10
    assert all(section["additionalProperties"] is False for section in closed)


def test_defaults_are_written_as_people_write_them():
    assert schema_at(("spec", "scaleDown", "minDelay"))["default"] == "2m"
    assert schema_at(("spec", "standby", "history"))["default"] == "336h"
    assert schema_at(("spec", "mode"))["default"] == "active"


def test_patterns_are_fit_for_go():
    """The API server compiles a CRD's patterns with RE2, which knows no look-around."""
    patterns = re.findall(r'"pattern": "(.*)"', schema_text())

    assert patterns
    assert not [pattern for pattern in patterns if "(?" in pattern]


def test_the_published_file_is_current():
    """If not: leadtime schema > policies/schema/scalingpolicy_leadtime_v1alpha1.json."""
    published = ROOT / "policies" / "schema" / SCHEMA_FILE

    assert published.read_bytes() == schema_text().encode()


@pytest.mark.parametrize(
    "example", sorted((ROOT / "policies").glob("*.yaml")), ids=lambda p: p.name
)
def test_the_examples_satisfy_it(example):
    jsonschema.validate(yaml.safe_load(example.read_text()), policy_schema())


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_schema_and_loader_are_of_one_mind(data):
    """Of two values that exclude each other the schema may know nothing; of all else it does."""
    policy = copy.deepcopy(WHOLE)
    for _ in range(data.draw(st.integers(0, 3))):
        _bend(policy, data)

    placed, found = read_policies(json.dumps(policy), "p.json")

    codes = {finding.code for finding in found}
    if VALIDATOR.is_valid(policy):
        assert placed or codes == {"LT008"}
    else:
        assert not placed
        assert codes & {"LT005", "LT006", "LT007", "LT008", "LT009", "LT011"}


def _bend(policy, data):
    """Put any value at any key, take a key away, or add one that no policy has."""
    path = data.draw(
        st.sampled_from([*every_path(), ("spec", "nonsense"), ("spec", "source", "x")])
    )
    section = policy
    for key in path[:-1]:
        section = section.get(key) if isinstance(section, dict) else None
    if not isinstance(section, dict):
        return
    if data.draw(st.booleans()):
        section[path[-1]] = data.draw(st.sampled_from(VALUES))
    else:
        section.pop(path[-1], None)
