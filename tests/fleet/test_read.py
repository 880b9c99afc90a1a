"""The rules of reading: names, ranks, copies, units and values that cannot be true."""

import math

import pytest

from adapter.fleet.metrics import Metric
from tests.fleet.expositions import (
    a_body,
    a_histogram,
    a_vllm_body,
    reading_of,
)

WAITING = Metric.REQUESTS_WAITING
RUNNING = Metric.REQUESTS_RUNNING
KV = Metric.KV_CACHE_USAGE
PEAK = Metric.KV_CACHE_USAGE_PEAK


def test_the_newest_name_counts_and_two_names_never_add_up():
    """VLLM 0.9.2 to 0.10.2 write KV usage twice: 0.8 is 0.8, not 1.6."""
    body = a_vllm_body('vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.8', kv="0.8")

    reading = reading_of(body)

    assert reading.values[KV] == 0.8
    assert reading.matched[KV] == "vllm:kv_cache_usage_perc"
    assert reading.warnings == ()


def test_a_deprecated_name_is_read_and_warns_with_successor_and_end():
    """Before the upgrade, not after: gpu_cache_usage_perc goes with 0.12."""
    reading = reading_of(a_body('vllm:gpu_cache_usage_perc{model_name="m"} 0.8'))

    assert reading.values[KV] == 0.8
    (warning,) = reading.warnings
    assert "vllm:gpu_cache_usage_perc is deprecated" in warning
    assert "vllm:kv_cache_usage_perc replaces it since 0.9.2" in warning
    assert "0.12 removes it" in warning


def test_a_part_of_a_sum_under_an_old_name_warns_too():
    labels = '{model_name="m"}'
    body = a_body(
        f"sglang:num_queue_reqs{labels} 1",
        f"sglang:num_prefill_prealloc_queue_reqs{labels} 2",
    )

    reading = reading_of(body)

    assert reading.values[WAITING] == 3
    assert "sglang:num_prefill_bootstrap_queue_reqs replaces it" in reading.warnings[0]


@pytest.mark.parametrize(
    ("prefix", "matched"),
    [
        ("vllm:", "vllm:num_requests_waiting"),
        ("vllm_", "vllm_num_requests_waiting"),
        ("ray_vllm:", "ray_vllm:num_requests_waiting"),
        ("ray_vllm_", "ray_vllm_num_requests_waiting"),
        ("", "num_requests_waiting"),
    ],
)
def test_every_spelling_of_vllm_is_read_and_said(prefix: str, matched: str):
    """kthena#868: Relabelings and wrappers write the prefix differently; NIM writes none."""
    labels = '{model_name="m"}'
    body = a_body(f"{prefix}num_requests_waiting{labels} 4", "process_start_time_seconds 5")

    reading = reading_of(body)

    assert (reading.engine, reading.values[WAITING]) == ("vllm", 4)
    assert reading.values[Metric.PROCESS_START] == 5
    assert reading.matched[WAITING] == matched


def test_two_spellings_in_one_body_are_not_added_up():
    """A recording rule beside the original: 4 waiting are 4."""
    labels = '{model_name="m"}'
    body = a_body(f"vllm:num_requests_waiting{labels} 4", f"vllm_num_requests_waiting{labels} 4")

    assert reading_of(body).values[WAITING] == 4


def test_a_missing_metric_says_what_was_looked_for_and_since_when():
    reading = reading_of(a_body('vllm:num_requests_running{model_name="m"} 1'))

    reason = reading.missing[WAITING]
    assert 'vllm:num_requests_waiting_by_reason{reason="capacity"} (since 0.20)' in reason
    assert "vllm:num_requests_waiting" in reason
    assert WAITING not in reading.unserved


def test_what_an_engine_never_exports_is_unserved_and_not_a_fault():
    reading = reading_of(a_body("tgi_queue_size 3"))

    assert reading.unserved >= {KV, PEAK, "ttft"}
    assert "does not export" in reading.missing[KV]
    assert RUNNING not in reading.unserved


def test_ranks_add_up_for_counts_and_average_for_ratios_with_the_peak_beside():
    """Trap 12: DP 2, one rank hot: waiting 40 + 0, KV mean 0.51 and peak 0.97."""
    body = a_body(
        'vllm:num_requests_waiting{engine="0",model_name="m"} 40',
        'vllm:num_requests_waiting{engine="1",model_name="m"} 0',
        'vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.97',
        'vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.05',
    )

    reading = reading_of(body)

    assert reading.values[WAITING] == 40
    assert reading.values[KV] == pytest.approx(0.51)
    assert reading.values[PEAK] == 0.97
    assert {rank: one.values[WAITING] for rank, one in reading.ranks.items()} == {"0": 40, "1": 0}


def test_a_rank_that_does_not_report_a_metric_makes_it_unknown():
    """One of two ranks silent: 40 of who knows how many must not read as 40."""
    body = a_body(
        'vllm:num_requests_waiting{engine="0",model_name="m"} 40',
        'vllm:num_requests_running{engine="0",model_name="m"} 8',
        'vllm:num_requests_running{engine="1",model_name="m"} 8',
    )

    reading = reading_of(body)

    assert reading.values[RUNNING] == 16
    assert WAITING not in reading.values
    assert "rank 1 does not report vllm:num_requests_waiting" in reading.missing[WAITING]


def test_a_counter_that_a_rank_has_not_shown_yet_is_0_there_and_known():
    """SGLang's registry shows a counter with its first count: rank 1 has decoded nothing yet."""
    body = a_body(
        'sglang:num_running_reqs{dp_rank="0",model_name="m"} 3',
        'sglang:num_running_reqs{dp_rank="1",model_name="m"} 0',
        'sglang:realtime_tokens_total{dp_rank="0",mode="decode",model_name="m"} 90',
    )

    assert reading_of(body).values[Metric.GENERATION_TOKENS] == 90


def test_a_series_without_rank_label_stands_for_all_ranks():
    """SGLang counts tokens without dp_rank, vLLM rejections without engine."""
    body = a_body(
        'sglang:num_running_reqs{dp_rank="0",model_name="m"} 3',
        'sglang:num_running_reqs{dp_rank="1",model_name="m"} 4',
        'sglang:generation_tokens_total{model_name="m"} 90',
    )

    reading = reading_of(body)

    assert reading.values[RUNNING] == 7
    assert reading.values[Metric.GENERATION_TOKENS] == 90
    assert sorted(reading.ranks) == ["", "0", "1"]


def test_copies_of_one_quantity_are_not_added_up():
    """Trap 13: tp_rank, pp_rank, moe_ep_rank and pid repeat the same queue: 5 is 5."""
    body = a_body(
        *(
            f'sglang:num_queue_reqs{{dp_rank="0",model_name="m",pid="{10 * tp}",tp_rank="{tp}"}} 5'
            for tp in range(4)
        )
    )

    assert reading_of(body).values[WAITING] == 5


def test_parts_add_up_within_a_rank():
    body = a_vllm_body(
        'vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 3',
        'vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 4',
    )

    assert reading_of(body).values[Metric.REQUESTS_FINISHED] == 7


def test_a_total_stands_for_its_parts():
    """SGLang with priorities: 37 in all, 30 and 7 its parts."""
    body = a_body(
        'sglang:num_queue_reqs{model_name="m",priority=""} 37',
        'sglang:num_queue_reqs{model_name="m",priority="0"} 30',
        'sglang:num_queue_reqs{model_name="m",priority="10"} 7',
    )

    assert reading_of(body).values[WAITING] == 37


def test_parts_without_a_total_add_up():
    body = a_body(
        'sglang:num_queue_reqs{model_name="m",priority="0"} 30',
        'sglang:num_queue_reqs{model_name="m",priority="10"} 7',
    )

    assert reading_of(body).values[WAITING] == 37


def test_a_series_that_stands_twice_counts_once_and_warns():
    """The first counts, as in Prometheus, wherever the labels stand in the line."""
    line = 'vllm:num_requests_waiting{engine="0",model_name="m"}'
    turned = 'vllm:num_requests_waiting{model_name="m", engine="0"}'

    reading = reading_of(a_body(f"{line} 4", f"{turned} 6"))

    assert reading.values[WAITING] == 4
    assert "stands twice, with 4 and 6" in reading.warnings[0]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("NaN", "NaN"),
        ("Nan", "NaN"),
        ("+Inf", "+Inf"),
        ("-Inf", "-Inf"),
        ("-1", "impossible value -1"),
        ("1.7", "impossible ratio 1.7"),
        ("71", "impossible ratio 71"),
    ],
)
def test_a_value_that_cannot_be_true_is_missing_with_the_reason(value: str, why: str):
    """Trap 17: sentinels are unknown, and never 0."""
    reading = reading_of(a_vllm_body(kv=value))

    assert KV not in reading.values
    assert PEAK not in reading.values
    assert why in reading.missing[KV]
    assert "vllm:kv_cache_usage_perc" in reading.missing[KV]
    assert any(why in warning for warning in reading.warnings)
    assert reading.values[RUNNING] == 1


def test_one_rank_without_a_number_makes_the_sum_unknown_and_not_smaller():
    body = a_body(
        'vllm:num_requests_waiting{engine="0",model_name="m"} 40',
        'vllm:num_requests_waiting{engine="1",model_name="m"} NaN',
        'vllm:num_requests_running{engine="0",model_name="m"} 1',
        'vllm:num_requests_running{engine="1",model_name="m"} 1',
    )

    reading = reading_of(body)

    assert WAITING not in reading.values
    assert 'engine="1"' in reading.missing[WAITING]
    assert reading.ranks["0"].values[WAITING] == 40


def test_a_ratio_just_above_1_by_rounding_is_1():
    assert reading_of(a_vllm_body(kv="1.0000000002")).values[KV] == 1.0


def test_an_impossible_part_makes_the_sum_unknown():
    labels = '{model_name="m"}'
    body = a_body(
        f"lmdeploy:num_requests_waiting{labels} 3",
        f"lmdeploy:num_api_requests_waiting{labels} -1",
        f"lmdeploy:num_requests_running{labels} 1",
    )

    reading = reading_of(body)

    assert WAITING not in reading.values
    assert "impossible value -1" in reading.missing[WAITING]


def test_a_division_by_nothing_is_unknown():
    """TensorRT-LLM before its cache exists: 0 of 0 blocks."""
    name = "nv_trt_llm_kv_cache_block_metrics"
    labels = 'model="t",version="1"'
    body = a_body(
        f'{name}{{kv_cache_block_type="used",{labels}}} 0',
        f'{name}{{kv_cache_block_type="max",{labels}}} 0',
        f'nv_trt_llm_request_metrics{{request_type="waiting",{labels}}} 2',
    )

    reading = reading_of(body)

    assert KV not in reading.values
    assert "division by zero" in reading.missing[KV]


def test_a_ratio_falls_back_to_the_engine_s_own_when_its_halves_are_not_both_there():
    name = "nv_trt_llm_kv_cache_block_metrics"
    body = a_body(
        f'{name}{{kv_cache_block_type="used",model="t",version="1"}} 3',
        f'{name}{{kv_cache_block_type="fraction",model="t",version="1"}} 0.25',
    )

    reading = reading_of(body)

    assert reading.values[KV] == 0.25
    assert "fraction" in reading.matched[KV]


def test_half_a_ratio_in_one_version_makes_it_unknown():
    name = "nv_trt_llm_kv_cache_block_metrics"
    body = a_body(
        f'{name}{{kv_cache_block_type="used",model="t",version="1"}} 3',
        f'{name}{{kv_cache_block_type="max",model="t",version="1"}} 10',
        f'{name}{{kv_cache_block_type="used",model="t",version="2"}} 3',
        'nv_inference_request_success{model="t",version="1"} 1',
        'nv_inference_request_success{model="t",version="2"} 1',
    )

    assert "lacks the other half" in reading_of(body).missing[KV]


def test_microseconds_and_milliseconds_become_seconds():
    """Trap 14: 2,500,000 µs are 2.5 s, 100 ms are 0.1 s."""
    labels = 'model="t",version="1",'
    body = a_body(
        'nv_inference_request_success{model="t",version="1"} 10',
        'nv_inference_queue_duration_us{model="t",version="1"} 2500000',
        *a_histogram("nv_inference_first_response_histogram_ms", labels, le_100=8, inf=10),
    )

    reading = reading_of(body)

    assert reading.values[Metric.QUEUE_SECONDS] == pytest.approx(2.5)
    assert reading.ttft is not None
    assert reading.ttft.bounds == (pytest.approx(0.1), math.inf)
    assert reading.ttft.sum_seconds == pytest.approx(0.0015)


def test_what_includes_another_count_is_given_without_it():
    """Dynamo counts 20 in flight, 12 of which have no first token yet."""
    body = a_body(
        'dynamo_frontend_inflight_requests{model="m"} 20',
        'dynamo_frontend_queued_requests{model="m"} 12',
    )

    reading = reading_of(body)

    assert (reading.values[RUNNING], reading.values[WAITING]) == (8, 12)
    assert reading.matched[RUNNING].endswith("- dynamo_frontend_queued_requests")


def test_the_load_time_is_the_engine_s_birth_after_its_process_s():
    """No series tells it, but vLLM's counters are born when the model is up: 29 s later."""
    body = a_vllm_body(
        'vllm:num_preemptions_created{engine="0",model_name="m"} 1029.0',
        "process_start_time_seconds 1000.0",
    )

    assert reading_of(body).values[Metric.MODEL_LOAD_SECONDS] == 29.0


def test_a_load_time_below_0_is_no_load_time():
    """A counter made before the process: two clocks, no number."""
    body = a_vllm_body(
        'vllm:num_preemptions_created{engine="0",model_name="m"} 900.0',
        "process_start_time_seconds 1000.0",
    )

    assert "impossible value -100" in reading_of(body).missing[Metric.MODEL_LOAD_SECONDS]


@pytest.mark.parametrize("value", ["1e16", "1e308"])
def test_a_number_beyond_counting_is_unknown_and_not_a_load(value):
    """Two finite 1e308 add up to infinity, and the decision to NaN: the loop died of it."""
    reading = reading_of(a_vllm_body(running=float(value), waiting=3))

    assert Metric.REQUESTS_RUNNING not in reading.values
    assert "impossible value" in reading.missing[Metric.REQUESTS_RUNNING]
    assert reading.values[Metric.REQUESTS_WAITING] == 3


def test_a_bucket_beyond_counting_makes_ttft_unknown():
    name = "vllm:time_to_first_token_seconds"
    lines = a_histogram(name, 'engine="0",model_name="m",', le_0_5=1, inf=1e308)

    reading = reading_of(a_vllm_body(*lines))

    assert reading.ttft is None
    assert "beyond counting" in reading.missing["ttft"]
