"""Triton: which numbers of its backends and models are believed."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import increase
from adapter.fleet.reading import Cause
from tests.fleet.expositions import a_body, gap_of, reading_of, recorded

REAL = "vllm-0.32.0-real_cpu"
WAITING = Metric.REQUESTS_WAITING
RUNNING = Metric.REQUESTS_RUNNING
KV = Metric.KV_CACHE_USAGE


def test_a_decoupled_model_hides_its_queue_from_triton():
    """20 inside, 5 answered: pending 0 and success 20. Triton says so; nothing tells it apart.

    Trap 4, measured 3.
    """
    reading = reading_of(recorded("triton-2.51.0-real_cpu_decoupled_hidden_queue"))

    assert reading.values[WAITING] == 0
    assert reading.values[Metric.REQUESTS_FINISHED] == 20
    assert RUNNING in reading.unserved


TRITON_WITH_VLLM = (
    'nv_inference_request_success{model="llm",version="1"} 90',
    'nv_inference_request_failure{model="llm",reason="OTHER",version="1"} 1',
    'nv_inference_pending_request_count{model="llm",version="1"} 0',
    'nv_inference_queue_duration_us{model="llm",version="1"} 5',
    'nv_inference_request_success{model="embed",version="1"} 7',
    'nv_inference_pending_request_count{model="embed",version="1"} 3',
    'vllm:prompt_tokens_total{model="llm",version="1"} 1000',
    'vllm:generation_tokens_total{model="llm",version="1"} 5000',
    'vllm:e2e_request_latency_seconds_count{model="llm",version="1"} 60',
    'vllm:e2e_request_latency_seconds_sum{model="llm",version="1"} 240',
    'vllm:time_to_first_token_seconds_bucket{model="llm",version="1",le="1"} 50',
    'vllm:time_to_first_token_seconds_bucket{model="llm",version="1",le="+Inf"} 61',
    'vllm:time_to_first_token_seconds_sum{model="llm",version="1"} 30',
)


def test_triton_and_its_vllm_backend_make_one_reading_with_the_right_rule_for_each():
    """Tokens, TTFT and finished requests from vLLM; Triton's pending 0 is not a queue of 0."""
    reading = reading_of(a_body(*TRITON_WITH_VLLM), "llm")

    assert reading.engine == "triton"
    assert reading.values[Metric.GENERATION_TOKENS] == 5000
    assert reading.values[Metric.REQUESTS_FINISHED] == 60 + 1
    assert reading.values[Metric.REQUEST_SECONDS] == 240
    assert reading.ttft is not None
    assert reading.ttft.count == 61
    assert reading.unserved >= {WAITING, RUNNING, KV, Metric.QUEUE_SECONDS}
    assert "means nothing next to vllm:prompt_tokens_total" in reading.missing[WAITING]


def test_a_plain_model_beside_the_vllm_backend_keeps_its_queue():
    """The rule is per model, not per server."""
    reading = reading_of(a_body(*TRITON_WITH_VLLM), "embed")

    assert reading.values[WAITING] == 3
    assert reading.ttft is None


def test_the_policy_may_name_either_engine_of_such_a_body():
    reading = reading_of(a_body(*TRITON_WITH_VLLM), engine="vllm")

    assert (reading.engine, reading.model) == ("vllm", "llm")
    assert reading.values[Metric.GENERATION_TOKENS] == 5000
    assert WAITING in reading.missing


def test_tensorrt_llm_s_cache_usage_is_reckoned_from_its_blocks():
    """The README's fraction 0.4875 contradicts its own 1 used of 6239."""
    reading = reading_of(recorded("triton_trtllm-main-readme_sample"))

    assert reading.values[KV] == pytest.approx(1 / 6239)
    assert (reading.values[WAITING], reading.values[RUNNING]) == (1, 1)


def test_an_ensemble_is_not_added_to_its_members():
    """Trap 13: 59 requests passed three members; the policy says which one counts."""
    dump = recorded("triton_trtllm-2023.11-tensorrtllm_backend_issue49_excerpt")

    assert gap_of(dump).cause is Cause.SEVERAL_MODELS
    assert reading_of(dump, "ensemble").values[Metric.REQUESTS_FINISHED] == 59


def test_an_unloaded_model_is_a_wrong_model_and_not_an_idle_one():
    """Its series go, only failure counters linger; /v2/health/ready stays 200.

    Trap 8, measured 5.
    """
    dump = recorded("triton-2.51.0-real_cpu_after_unload")

    gap = gap_of(dump, "slow_py")

    assert gap.cause is Cause.WRONG_MODEL
    assert "'stream_py'" in gap.detail


def test_before_2_38_triton_has_no_queue_to_read():
    """server#6341: absent in 2.36, there in 2.41."""
    old = reading_of(recorded("triton-2.36.0-real_cpu_under_load_1"))
    new = reading_of(recorded("triton-2.41.0-real_cpu_under_load_1"))

    assert WAITING in old.unserved
    assert new.values[WAITING] == 8


def test_a_full_queue_of_triton_is_counted_nowhere():
    """Measured 1: 28 of 60 requests got a 503; no failure counter moved."""
    reading = reading_of(recorded("triton-2.51.0-real_cpu_under_load_4"), "slow_py")

    assert reading.values[Metric.REQUESTS_FINISHED] == 30
    assert Metric.REQUESTS_REJECTED in reading.unserved


def test_errors_of_a_python_model_count_as_success():
    """Trap 19, measured 2: 32 in version 2 though 2 of them were errors; no failure moved."""
    reading = reading_of(recorded("triton-2.51.0-real_cpu_after_load"), "slow_py")

    assert reading.ranks["2"].values[Metric.REQUESTS_FINISHED] == 32


def test_summaries_without_a_sample_are_nan_and_disturb_nothing():
    """Measured 7: every quantile is "Nan"; queue and counters are 0."""
    reading = reading_of(recorded("triton-2.51.0-real_cpu_idle"), "slow_py")

    assert (reading.values[WAITING], reading.values[Metric.REQUESTS_FINISHED]) == (0, 0)
    assert reading.warnings == ()


def test_a_histogram_flag_that_does_nothing_leaves_ttft_not_exported():
    """Measured 8: 2.51 takes histogram_latencies=true and writes no histogram; that is no fault."""
    reading = reading_of(recorded("triton-2.51.0-real_cpu_after_streaming"), "stream_py")

    assert reading.ttft is None
    assert "ttft" in reading.unserved


def test_a_new_version_of_a_model_is_no_burst():
    """Version 2 loads with a history: the ranks differ, the growth is unknown once."""
    line = 'nv_inference_request_success{{model="m",version="{}"}} {}'
    before = reading_of(a_body(line.format(1, 100)))
    now = reading_of(a_body(line.format(1, 101), line.format(2, 5000)))

    assert increase(now, before, Metric.REQUESTS_FINISHED) is None
