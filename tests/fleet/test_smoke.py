"""Smoke requests: what is asked of each protocol, what an answer means, and the verdict."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.smoke import PROTOCOLS
from adapter.fleet.smoke.ask import Answer, Said, UnusableAnswerError
from adapter.fleet.smoke.judge import (
    Fault,
    cache_faults,
    determinism_faults,
    expectation_faults,
    freshness_faults,
    version_faults,
)
from adapter.fleet.smoke.openai import OPENAI, OPENAI_CHAT
from adapter.fleet.smoke.sglang import SGLANG
from adapter.fleet.smoke.triton import TRITON


def answered(body: object, status: int = 200) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, {}, text)


COMPLETION = {"id": "cmpl-1", "model": "m", "choices": [{"text": " four"}]}


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_a_generation_is_greedy_and_short_and_carries_the_prompt(protocol):
    ask = protocol.generation("m", "how many?")

    assert ask.method == "POST"
    assert b"how many?" in ask.body
    assert b'"temperature": 0' in ask.body
    assert b"16" in ask.body


@pytest.mark.parametrize(
    ("protocol", "body", "output", "name"),
    [
        (OPENAI, COMPLETION, " four", "cmpl-1"),
        (OPENAI, {"choices": [{"text": "four"}]}, "four", None),
        (OPENAI_CHAT, {"id": "c", "choices": [{"message": {"content": "four"}}]}, "four", "c"),
        (OPENAI_CHAT, {"choices": [{"message": {"content": None, "reasoning_content": "hm"}}]},
         "hm", None),
        (SGLANG, {"text": "four", "meta_info": {"id": "r1", "weight_version": "7"}}, "four", "r1"),
        (SGLANG, {"text": "four"}, "four", None),
        (TRITON, {"text_output": "four", "model_version": "2"}, "four", None),
        (TRITON, {"id": "x", "outputs": [{"name": "o", "data": [4]}]},
         '[{"data": [4], "name": "o"}]', "x"),
    ],
)  # fmt: skip
def test_what_an_answer_says(protocol, body, output, name):
    said = protocol.said(answered(body))

    assert (said.output, said.id) == (output, name)


@pytest.mark.parametrize(
    ("protocol", "answer", "why"),
    [
        (OPENAI, answered(b"", 503), "answered 503: an empty body"),
        (OPENAI, answered(b"<html>oops", 200), "not JSON: <html>oops"),
        (OPENAI, answered([1]), "not a JSON object"),
        (OPENAI, answered({"error": {"message": "EngineDead"}}), "an error with status 200"),
        (OPENAI, answered({"choices": []}), "without choices"),
        (OPENAI, answered({"choices": [{"text": ""}]}), "no token was generated"),
        (SGLANG, answered({"text": ""}), "no token was generated"),
        (TRITON, answered({"text_output": ""}), "no token was generated"),
        (TRITON, answered({"outputs": []}), "without outputs"),
    ],
)
def test_an_answer_that_is_no_generation_says_what_it_is(protocol, answer, why):
    with pytest.raises(UnusableAnswerError, match=why):
        protocol.said(answer)


def test_versions_in_the_answer_itself_are_kept():
    assert OPENAI.said(answered({**COMPLETION, "system_fingerprint": "fp1"})).versions == {
        "model": "m",
        "system_fingerprint": "fp1",
    }
    assert SGLANG.said(answered({"text": "a", "meta_info": {"weight_version": "7"}})).versions == {
        "weight_version": "7"
    }
    assert TRITON.said(answered({"text_output": "a", "model_version": 3})).versions == {
        "model_version": "3"
    }


@pytest.mark.parametrize(
    ("protocol", "where", "body", "told"),
    [
        (OPENAI, "/v1/models", {"data": [{"id": "m", "root": "/w/m-7"}]}, {"root": "/w/m-7"}),
        (OPENAI, "/v1/models", {"data": [{"id": "n"}]}, {"served": "not m (serves n)"}),
        (OPENAI, "/v1/models", {}, {"served": "not m (serves none)"}),
        (OPENAI, "/health", {"status": "ok", "model_hash": "ab12"}, {"model_hash": "ab12"}),
        (OPENAI, "/health", b"", {}),
        (SGLANG, "/model_info", {"model_path": "/w/7", "weight_version": "7"},
         {"model_path": "/w/7", "weight_version": "7"}),
        (TRITON, "/v2/repository/index",
         [{"name": "m", "version": "2", "state": "READY"}, {"name": "m", "version": "1",
          "state": "UNAVAILABLE"}, {"name": "n", "version": "9", "state": "READY"}],
         {"ready": "2"}),
        (TRITON, "/v2/repository/index", [{"name": "n"}], {}),
        (TRITON, "/v2/repository/index", {"error": "no"}, {}),
        (TRITON, "/v2/repository/index", b"<", {}),
        (TRITON, "/v2/models/m", {"versions": ["1", "2"]}, {"versions": "1,2"}),
        (TRITON, "/v2/models/m", {"name": "m"}, {}),
        (TRITON, "/v2/models/m", b"", {}),
    ],
)  # fmt: skip
def test_what_an_endpoint_tells_of_its_version(protocol, where, body, told):
    assert dict(protocol.identity(where, "m", answered(body))) == told


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda one: one.name)
def test_the_version_is_asked_where_each_server_tells_it(protocol):
    asks = protocol.identities("m")

    wanted = {"openai": "/v1/models", "openai-chat": "/v1/models", "sglang": "/model_info",
              "triton": "/v2/repository/index"}  # fmt: skip
    assert asks[wanted[protocol.name]].path == wanted[protocol.name]


def shaped(prompt: str, *inputs: dict[str, object]):
    assert TRITON.shaped is not None
    return TRITON.shaped("m", prompt, {"inputs": list(inputs)})


def test_a_language_model_of_triton_is_asked_to_generate():
    ask = shaped("hello", {"name": "text_input", "datatype": "BYTES", "shape": [1]})

    assert ask.path == "/v2/models/m/generate"
    assert b"hello" in ask.body


def test_other_models_of_triton_get_the_tensors_that_their_metadata_names():
    """A free dimension is 1; every element is made from the prompt."""
    asked = [
        {"name": "a", "datatype": "FP32", "shape": [-1, 3]},
        {"name": "b", "datatype": "INT64", "shape": [2]},
        {"name": "c", "datatype": "BYTES", "shape": [1]},
        {"name": "d", "datatype": "BOOL", "shape": [1]},
    ]

    one, other = (json.loads(shaped(prompt, *asked).body)["inputs"] for prompt in ("p", "q"))

    assert [(i["name"], i["shape"], len(i["data"])) for i in one] == [
        ("a", [1, 3], 3), ("b", [2], 2), ("c", [1], 1), ("d", [1], 1),
    ]  # fmt: skip
    assert all(0 <= x < 1 for x in one[0]["data"])
    assert all(isinstance(x, int) for x in one[1]["data"])
    assert (one[2]["data"], type(one[3]["data"][0])) == (["p"], bool)
    assert one[0]["data"] != other[0]["data"]
    assert one[1]["data"] != other[1]["data"]


@pytest.mark.parametrize(
    ("inputs", "why"),
    [
        ([], "names no inputs"),
        ([{"name": "img", "datatype": "FP32", "shape": [3, 1024, 1024]}], "3145728 elements"),
    ],
)
def test_what_cannot_be_made_up_is_asked_for(inputs, why):
    with pytest.raises(UnusableAnswerError, match=why):
        shaped("p", *inputs)


def test_the_description_of_a_triton_model_is_asked_first():
    assert TRITON.describe is not None
    assert TRITON.describe("m").path == "/v2/models/m"


@pytest.mark.parametrize(
    ("headers", "found"),
    [
        ({"x-cache-status": "HIT"}, True),
        ({"x-cache": "Hit from edge"}, True),
        ({"x-cache": "MISS, HIT"}, True),
        ({"x-cache-status": "MISS"}, False),
        ({"cf-cache-status": "DYNAMIC"}, False),
        ({"age": "31"}, True),
        ({"age": "0"}, False),
        ({"age": "soon"}, False),
        ({"cache-control": "no-store"}, False),
        ({}, False),
    ],
)
def test_headers_that_speak_of_a_stored_answer(headers, found):
    faults = cache_faults(headers)

    assert [one.fault for one in faults] == ([Fault.CACHED] if found else [])


def test_different_inputs_and_one_output_every_time_is_stale():
    same, other = Said("x", "a"), Said("x", "b")

    (fault,) = freshness_faults([(same, other)])

    assert fault.fault is Fault.IDENTICAL
    assert "2 different inputs" in fault.detail


def test_one_equal_pair_among_others_may_be_chance():
    assert freshness_faults([(Said("x"), Said("x")), (Said("y"), Said("z"))]) == ()


def test_one_response_id_twice_is_a_replay_whatever_the_text():
    faults = freshness_faults([(Said("x", "a"), Said("y", "b")), (Said("z", "a"), Said("w", "c"))])

    assert [one.fault for one in faults] == [Fault.REPLAYED]
    assert faults[0].detail == "2 requests were answered as a"


def test_no_pairs_are_no_finding():
    assert freshness_faults([]) == ()


def test_one_input_answered_in_two_ways_is_not_deterministic():
    assert determinism_faults(Said("a"), Said("a")) == ()
    (fault,) = determinism_faults(Said("a"), Said("b" * 80))
    assert fault.fault is Fault.NOT_EQUAL
    assert fault.detail.endswith("b...'")


def test_a_fixed_prompt_must_be_answered_as_expected():
    assert expectation_faults(Said("  Paris, France"), "Paris") == ()
    assert [f.fault for f in expectation_faults(Said("London"), "Paris")] == [Fault.UNEXPECTED]


def seen(**endpoints: dict[str, set[str]]):
    return {
        name: {field: frozenset(values) for field, values in fields.items()}
        for name, fields in endpoints.items()
    }


def test_the_odd_one_of_three_is_named():
    faults = version_faults(seen(a={"v": {"1"}}, b={"v": {"1"}}, c={"v": {"2"}}))

    assert list(faults) == ["c"]
    assert faults["c"][0].detail == "v is 2, others say 1"


def test_in_a_draw_nobody_is_right():
    assert set(version_faults(seen(a={"v": {"1"}}, b={"v": {"2"}}))) == {"a", "b"}


def test_two_versions_behind_one_address_are_found():
    faults = version_faults(seen(a={"v": {"1", "2"}}))

    assert "two versions behind one address" in faults["a"][0].detail


def test_a_field_that_only_some_tell_is_no_skew():
    assert version_faults(seen(a={"v": {"1"}}, b={"w": {"2"}}, c={"v": {"1"}})) == {}


@pytest.mark.parametrize(
    ("fields", "expected", "said"),
    [({"v": {"1"}}, "1", None), ({"v": {"1"}}, "2", "says v 1"), ({}, "2", "nothing of its ver")],
)
def test_an_expected_version_must_be_told(fields, expected, said):
    faults = version_faults(seen(a=fields), expected)

    assert (said is None and faults == {}) or said in faults["a"][0].detail


@given(st.dictionaries(st.text(min_size=1, max_size=3), st.sampled_from("12"), min_size=1))
def test_skew_is_found_exactly_when_two_values_are_told(values):
    faults = version_faults({name: {"v": frozenset({v})} for name, v in values.items()})

    assert bool(faults) == (len(set(values.values())) > 1)
