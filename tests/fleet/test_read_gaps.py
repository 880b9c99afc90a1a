"""Which model is read, and why a body gives no reading."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap
from tests.fleet.expositions import (
    AT,
    TARGET,
    a_body,
    a_histogram,
    a_vllm_body,
    gap_of,
    read,
    reading_of,
)

WAITING = Metric.REQUESTS_WAITING


TWO_MODELS = a_body(
    'vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-32B"} 3',
    'vllm:num_requests_waiting{engine="0",model_name="meta/llama"} 5',
    "process_start_time_seconds 1000",
)


@pytest.mark.parametrize(("model", "waiting"), [("Qwen/Qwen3-32B", 3), ("meta/llama", 5)])
def test_one_of_several_models_is_read_when_it_is_named(model: str, waiting: float):
    reading = reading_of(TWO_MODELS, model)

    assert (reading.model, reading.values[WAITING]) == (model, waiting)


def test_series_without_a_model_label_belong_to_every_model():
    """A filter on the model must not lose process and info series (llm-d-autoscaling#1198).

    Trap 16.
    """
    assert reading_of(TWO_MODELS, "meta/llama").values[Metric.PROCESS_START] == 1000


def test_several_models_without_a_name_are_a_gap_that_lists_them():
    gap = gap_of(TWO_MODELS)

    assert gap == Gap(
        AT,
        Cause.SEVERAL_MODELS,
        f"{TARGET}: serves 2 models and the policy names none: set spec.model to one of "
        f"'Qwen/Qwen3-32B', 'meta/llama'",
    )


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Qwen3-32B", "did you mean 'Qwen/Qwen3-32B'? "),
        ("qwen/qwen3-32b", "did you mean 'Qwen/Qwen3-32B'? "),
        ("meta/lama", "did you mean 'meta/llama'? "),
        ("zzz", "no series of model 'zzz'; The engine calls"),
    ],
)
def test_a_wrong_model_is_a_gap_that_names_the_nearest(asked: str, meant: str):
    """Trap 21, llm-d#2310: the id differs from the label and everything stays green."""
    gap = gap_of(TWO_MODELS, asked)

    assert gap.cause is Cause.WRONG_MODEL
    assert meant in gap.detail
    assert "'Qwen/Qwen3-32B', 'meta/llama'" in gap.detail


def test_a_long_list_of_models_is_shortened():
    body = a_body(*(f'vllm:num_requests_waiting{{model_name="m{n:02}"}} 1' for n in range(12)))

    assert "'m07' and 4 more" in gap_of(body).detail


def test_an_engine_that_names_no_model_serves_the_policy_s():
    reading = reading_of(a_body("tgi_queue_size 3"), "any/model")

    assert (reading.model, reading.values[WAITING]) == (None, 3)


def test_a_placeholder_is_no_model_name():
    """trtllm-serve 1.1 labels everything model_name="undefined"."""
    body = a_body('trtllm_num_requests_waiting{model_name="undefined"} 3')

    assert reading_of(body, "nemotron").model is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty answer"),
        (b"  \n", "empty answer"),
        (b"<!doctype html><title>Login</title>", "HTML page"),
        (b'{"detail":"Not Found"}', "--enable-metrics"),
        (b"[]", "/prometheus/metrics"),
        (b"{ not json", "begins with '{ not json'"),
        (b"\x1f\x8b\x08\x00\x00\x00\x00", "binary"),
        (b"\x0a\x00\x12\x07metrics", "binary"),
        (b"no healthy upstream", "begins with 'no healthy upstream'"),
        (a_vllm_body()[:-30], "cut short"),
        (a_vllm_body('vllm:prompt_tokens_total{model_name="m"} oops'), "oops"),
    ],
)
def test_a_body_that_is_no_exposition_is_a_gap_that_says_what_it_is(body: bytes, words: str):
    """Trap 18: JSON, HTML, nothing, half of it; missing is not 0."""
    gap = gap_of(body)

    assert gap.cause is Cause.NOT_METRICS
    assert gap.detail.startswith(f"{TARGET}: ")
    assert words in gap.detail
    assert gap.at == AT


def test_metrics_of_something_else_are_a_gap_that_names_the_usual_causes():
    """--disable-log-stats leaves python_* and process_* only."""
    gap = gap_of(a_body("# TYPE python_info gauge", 'python_info{version="3"} 1'), engine="vllm")

    assert gap.cause is Cause.NO_ENGINE
    assert "no series of vllm" in gap.detail
    assert "vllm: --disable-log-stats is set" in gap.detail


def test_another_engine_than_the_policy_s_is_a_gap_that_names_it():
    gap = gap_of(a_vllm_body(), engine="sglang")

    assert gap.cause is Cause.NO_ENGINE
    assert "metrics of vllm, not of sglang" in gap.detail
    assert "set spec.engine to 'auto'" in gap.detail


def test_no_engine_is_recommended_that_a_policy_cannot_name():
    """TGI, LMDeploy and others are read under ``auto`` alone."""
    gap = gap_of(a_body("tgi_queue_size 1"), engine="vllm")

    assert "metrics of tgi, not of vllm" in gap.detail
    assert "'tgi'" not in gap.detail


def test_an_engine_without_one_usable_value_is_a_gap_and_not_an_empty_reading():
    gap = gap_of(
        a_body('vllm:num_requests_waiting{model_name="m"} NaN', "process_start_time_seconds 5")
    )

    assert gap.cause is Cause.NO_ENGINE
    assert "NaN in vllm:num_requests_waiting" in gap.detail


def test_an_engine_with_other_series_only_says_what_was_looked_for():
    gap = gap_of(a_body("tgi_unknown 1"))

    assert "tgi answers, but without any usable value: the port or path may be wrong" in gap.detail
    assert "tgi_queue_size" in gap.detail


@given(st.binary(max_size=200), st.sampled_from(["auto", "vllm", "triton"]))
@settings(max_examples=200, deadline=None)
def test_no_body_whatever_raises(body: bytes, engine: str):
    read(body, engine=engine)


@given(
    st.lists(
        st.sampled_from(
            a_vllm_body(*a_histogram("vllm:time_to_first_token_seconds", le_1=2, inf=3)).split(
                b"\n"
            )
        )
    ),
    st.binary(max_size=4),
    st.integers(0, 400),
)
@settings(max_examples=200, deadline=None)
def test_no_damaged_body_raises_or_invents_a_number(lines: list[bytes], noise: bytes, at: int):
    """Lines lost, doubled and broken at a random place: values are finite and not negative."""
    body = b"\n".join(lines) + b"\n"

    result = read(body[:at] + noise + body[at:])

    if not isinstance(result, Gap):
        assert all(0 <= value < math.inf for value in result.values.values())
