"""What has gone wrong with engines' metrics before, each with the reading that avoids it.

Traps of the engine reference and public reports that concern reading; what a decision makes of
the readings is tested where it is made.
"""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import first_tokens, increase
from adapter.fleet.reading import Cause, Reading
from tests.fleet.expositions import a_body, a_vllm_body, gap_of, reading_of, recorded

REAL = "vllm-0.32.0-real_cpu"
WAITING = Metric.REQUESTS_WAITING
RUNNING = Metric.REQUESTS_RUNNING
KV = Metric.KV_CACHE_USAGE


@pytest.mark.parametrize(
    ("dump", "matched"),
    [
        ("vllm-0.8.5-codegen", "vllm:gpu_cache_usage_perc"),
        ("vllm-0.9.2-codegen", "vllm:kv_cache_usage_perc"),
        ("vllm-0.11.2-codegen_show_hidden", "vllm:kv_cache_usage_perc"),
        ("vllm-0.13.0-codegen", "vllm:kv_cache_usage_perc"),
    ],
)
def test_the_kv_rename_of_vllm_is_followed(dump: str, matched: str):
    """vllm#24245; gateway-api-inference-extension#1905, aibrix#2057 broke on it."""
    reading = reading_of(recorded(dump))

    assert reading.matched[KV] == matched
    assert any("gpu_cache_usage_perc is deprecated" in warning for warning in reading.warnings) == (
        "gpu" in matched
    )


def test_a_body_with_the_new_name_only_is_read():
    assert reading_of(a_body('vllm:kv_cache_usage_perc{model_name="m"} 0.4')).values[KV] == 0.4


@pytest.mark.parametrize("spelling", ["infight", "inflight"])
def test_both_spellings_of_sglang_s_typo_are_read(spelling: str):
    """sglang#7317: ``infight`` up to 0.4.10."""
    body = a_body(
        'sglang:num_queue_reqs{model_name="m"} 1',
        'sglang:num_grammar_queue_reqs{model_name="m"} 2',
        f'sglang:num_prefill_{spelling}_queue_reqs{{model_name="m"}} 3',
    )

    assert reading_of(body).values[Metric.REQUESTS_DEFERRED] == 5


def test_sglang_s_queue_is_read_under_the_same_canonical_name():
    """aibrix#1663: ``num_queue_reqs`` was missing from the mapping."""
    reading = reading_of(recorded("sglang-0.5.23-codegen"))

    assert reading.values[WAITING] == 37
    assert reading.matched[WAITING].startswith("sglang:num_queue_reqs")


def test_what_no_new_replica_helps_is_deferred_and_not_waiting():
    """Trap 3: 7 wait, 2 of them for remote KV or a grammar: 5 and 2."""
    reading = reading_of(recorded("vllm-0.26.0-codegen"))

    assert (reading.values[WAITING], reading.values[Metric.REQUESTS_DEFERRED]) == (5, 2)


def test_queues_of_prefill_and_decode_servers_count_by_what_they_wait_for():
    """Room: queue 1, bootstrap 2, prealloc 4. On its way or compiling: 8 + 16 + 32."""
    queues = {
        "num_queue_reqs": 1,
        "num_prefill_bootstrap_queue_reqs": 2,
        "num_decode_prealloc_queue_reqs": 4,
        "num_grammar_queue_reqs": 8,
        "num_prefill_inflight_queue_reqs": 16,
        "num_decode_transfer_queue_reqs": 32,
    }
    body = a_body(*(f'sglang:{name}{{model_name="m"}} {n}' for name, n in queues.items()))

    reading = reading_of(body)

    assert reading.values[WAITING] == 7
    assert reading.values[Metric.REQUESTS_DEFERRED] == 56


def test_requests_before_a_free_handle_wait_too():
    """LMDeploy has two queues: 1 in the engine, 4 before it."""
    assert reading_of(recorded("lmdeploy-main20260821-codegen")).values[WAITING] == 5


def test_refused_requests_are_load_that_tgi_s_queue_does_not_show():
    """Trap 4: 429s with --max-concurrent-requests: 20 overloaded."""
    reading = reading_of(recorded("tgi-3.3-shape_from_source"))

    assert reading.values[Metric.REQUESTS_REJECTED] == 20


def test_a_hot_rank_shows_in_the_peak_where_the_mean_hides_it():
    """DP 2: 0.97 and 0.05 are 0.51 on average."""
    reading = reading_of(recorded("sglang-0.5.23-codegen_dp2"))

    assert reading.values[KV] == pytest.approx(0.51)
    assert reading.values[Metric.KV_CACHE_USAGE_PEAK] == 0.97


def test_priorities_of_sglang_are_not_added_to_their_total():
    """Trap 13: 37 in all; 74 if the parts are added."""
    reading = reading_of(recorded("sglang-0.5.23-codegen_priority_scheduling"))

    assert (reading.values[RUNNING], reading.values[WAITING]) == (12, 37)


def test_eight_ranks_with_process_ids_are_eight_ranks_and_not_the_last_one():
    """aibrix#1614: the last series won. 8 ranks of 5 waiting are 40."""
    line = 'sglang:num_queue_reqs{{dp_rank="{0}",model_name="m",pid="91{0}",tp_rank="{0}"}} 5'

    assert reading_of(a_body(*map(line.format, range(8)))).values[WAITING] == 40


def test_ttft_of_streams_is_preferred_and_its_lack_is_said():
    """Without a stream the first token is the last: what reads as TTFT is the whole answer."""
    labels = 'is_streaming="false",model_name="m"'
    name = "sglang:time_to_first_token_seconds"
    whole = a_body(
        'sglang:num_running_reqs{model_name="m"} 1',
        f'{name}_bucket{{{labels},le="+Inf"}} 3',
        f'{name}_bucket{{{labels},le="1"}} 0',
        f"{name}_sum{{{labels}}} 90",
    )

    streaming = reading_of(recorded("sglang-0.5.23-codegen"))
    without = reading_of(whole)

    assert streaming.ttft is not None
    assert streaming.ttft.count == 4
    assert without.ttft is not None
    assert without.ttft.count == 3
    assert any("nobody streams" in warning for warning in without.warnings)


def test_a_prefill_worker_without_ttft_is_no_fault():
    """PD prefill workers never observe a first token."""
    assert "ttft" in reading_of(a_body('sglang:num_queue_reqs{model_name="m"} 1')).unserved


def test_live_tokens_are_preferred_to_those_counted_at_the_end():
    """Counted at the end, a long answer looks like a stall."""
    body = a_body(
        'sglang:generation_tokens_total{model_name="m"} 100',
        'sglang:prompt_tokens_total{model_name="m"} 10',
        'sglang:realtime_tokens_total{mode="decode",model_name="m",tp_rank="0"} 900',
        'sglang:realtime_tokens_total{mode="prefill_compute",model_name="m",tp_rank="0"} 40',
        'sglang:realtime_tokens_total{mode="prefill_cache",model_name="m",tp_rank="0"} 5',
    )

    reading = reading_of(body)

    assert reading.values[Metric.GENERATION_TOKENS] == 900
    assert reading.values[Metric.PROMPT_TOKENS] == 45
    assert reading.values[Metric.CACHED_PROMPT_TOKENS] == 5


def test_a_node_without_metrics_is_a_gap_with_the_flag_in_it():
    """sglang#5812: other nodes answer {"detail":"Not Found"}."""
    gap = gap_of(b'{"detail":"Not Found"}', engine="sglang")

    assert gap.cause is Cause.NOT_METRICS
    assert "--enable-metrics" in gap.detail


def test_all_clients_gone_and_gauges_frozen_shows_as_flat_counters():
    """vllm#29928: running 106, waiting 15, KV .904 for ever, nothing moves."""
    tokens = 'vllm:generation_tokens_total{engine="0",model_name="m"} 5000'
    frozen = reading_of(a_vllm_body(tokens, running=106, waiting=15, kv="0.904"))

    assert frozen.values[RUNNING] == 106
    assert increase(frozen, frozen, Metric.GENERATION_TOKENS) == 0


def test_queue_times_tell_nothing_of_a_stall():
    """kaito#2216: they are added at the end; 251 wait and nothing is added."""
    line = 'vllm:request_queue_time_seconds_sum{engine="0",model_name="m"} 12.5'
    stalled = reading_of(a_vllm_body(line, waiting=251))

    assert increase(stalled, stalled, Metric.QUEUE_SECONDS) == 0
    assert stalled.values[WAITING] == 251


def test_an_idle_window_has_no_quantile_which_is_neither_0_nor_nan():
    """dynamo#3131: 0/0 became NaN and the fleet never scaled down again."""
    reading = reading_of(recorded(f"{REAL}_after_load"))

    window = first_tokens(reading, reading)

    assert window is not None
    assert window.quantile(0.95) is None
    assert (reading.values[RUNNING], reading.values[WAITING]) == (0, 0)


def test_the_last_rank_does_not_overwrite_the_others():
    """kthena#1782: engine 0 waits 40, engine 1 waits 0: it read 0."""
    line = 'vllm:num_requests_waiting{{engine="{}",model_name="m"}} {}'

    assert reading_of(a_body(line.format(0, 40), line.format(1, 0))).values[WAITING] == 40


def test_skewed_and_even_queues_stay_told_apart_by_rank():
    """vllm#36748: [40,0,0,0] is a routing fault, [10,10,10,10] is load; both are 40."""
    line = 'vllm:num_requests_waiting{{engine="{}",model_name="m"}} {}'

    def queues(*waiting: int) -> Reading:
        return reading_of(a_body(*(line.format(*pair) for pair in enumerate(waiting))))

    skewed, even = queues(40, 0, 0, 0), queues(10, 10, 10, 10)

    assert skewed.values[WAITING] == even.values[WAITING] == 40
    assert [rank.values[WAITING] for rank in skewed.ranks.values()] == [40, 0, 0, 0]
    assert [rank.values[WAITING] for rank in even.ranks.values()] == [10, 10, 10, 10]


def test_usage_kept_high_on_purpose_is_told_by_an_empty_queue():
    """llm-d-autoscaling#927: an offloading cache stays at 0.97 with nothing waiting."""
    reading = reading_of(a_vllm_body(waiting=0, kv="0.97"))

    assert (reading.values[KV], reading.values[WAITING]) == (0.97, 0)


def test_series_that_come_with_the_first_request_are_missing_until_then_and_no_gap():
    """nvcf#1601: gauges are there, the histogram is not yet: nothing to fall back from."""
    reading = reading_of(a_vllm_body())

    assert reading.values[WAITING] == 0
    assert "ttft" in reading.missing


def test_a_histogram_named_like_a_counter_is_read_by_its_count():
    """Trap 15: iteration_tokens_total is a histogram; its count is the heartbeat."""
    reading = reading_of(recorded(f"{REAL}-under_load_1"))

    assert reading.values[Metric.ENGINE_STEPS] == 397


def test_hit_rates_of_minus_1_disturb_nothing():
    """Trap 17: Ray's vLLM 0.6 writes -1 for "not applicable" in series that are not read."""
    reading = reading_of(recorded("ray_vllm-0.6-datadog_integrations_core_excerpt"))

    assert reading.values[Metric.GENERATION_TOKENS] == 300


def test_two_ray_workers_warn_that_the_dead_linger():
    line = 'ray_vllm:num_requests_running{{WorkerId="{}",model_name="m"}} 2'

    reading = reading_of(a_body(line.format("a"), line.format("b")))

    assert reading.values[RUNNING] == 4
    assert "those of dead ones linger" in reading.warnings[0]
