"""How vLLM behaved when it was measured (0.32.0, on a CPU), by number, as readings."""

import dataclasses
import itertools

import pytest

from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.rates import first_tokens, increase, was_reset
from adapter.fleet.reading import Cause, Reading
from adapter.fleet.units import Timestamp
from tests.fleet.expositions import gap_of, reading_of, recorded

REAL = "vllm-0.32.0-real_cpu"
WAITING = Metric.REQUESTS_WAITING
RUNNING = Metric.REQUESTS_RUNNING
KV = Metric.KV_CACHE_USAGE


def series(dump: str, *numbers: int) -> list[Reading]:
    """Return the readings of a numbered series of dumps, 2 s apart."""
    return [
        dataclasses.replace(reading_of(recorded(f"{dump}_{number}")), at=Timestamp(2.0 * number))
        for number in numbers
    ]


def test_a_frozen_engine_shows_work_and_not_one_event():
    """SIGSTOP for 4 s: running 8, waiting 16, and no counter, no first token, no step moves.

    Trap 5, measured 2.
    """
    readings = series(f"{REAL}-stalled_engine_sigstop", 1, 2, 3)

    for before, now in itertools.pairwise(readings):
        assert (now.values[RUNNING], now.values[WAITING]) == (8, 16)
        assert {increase(now, before, metric) for metric in COUNTERS & now.values.keys()} == {0}
        window = first_tokens(now, before)
        assert window is not None
        assert (window.count, window.quantile(0.95)) == (0, None)
        assert not was_reset(now, before)


def test_a_busy_engine_moves_its_heartbeat_in_every_interval():
    """The counterpart of the frozen one: tokens and steps grow in all four intervals."""
    readings = series(f"{REAL}-under_load", 1, 2, 3, 4, 5)

    for before, now in itertools.pairwise(readings):
        assert (increase(now, before, Metric.GENERATION_TOKENS) or 0) > 1000
        assert (increase(now, before, Metric.ENGINE_STEPS) or 0) > 100


def test_two_scrapes_under_load_give_the_arrivals_between_them():
    """1→2: 800 prompt tokens, 2168 output tokens, 8 finished, 8 first tokens."""
    before, now = series(f"{REAL}-under_load", 1, 2)

    assert increase(now, before, Metric.PROMPT_TOKENS) == 2411 - 1611
    assert increase(now, before, Metric.GENERATION_TOKENS) == 5197 - 3029
    assert increase(now, before, Metric.REQUESTS_FINISHED) == 17 - 9
    window = first_tokens(now, before)
    assert window is not None
    assert window.count == 25 - 17


def test_a_killed_engine_still_reports_its_last_gauges():
    """After kill -9 /metrics answers 200 for 3 s: 8 running, 16 waiting. Reading cannot tell.

    Trap 9, measured 3.
    """
    reading = reading_of(recorded(f"{REAL}-engine_killed9_stale"))

    assert (reading.values[RUNNING], reading.values[WAITING]) == (8, 16)


def test_a_mass_abort_empties_the_gauges_and_is_counted_nowhere():
    """Measured 11, vllm#31503: 25 clients gone, 0 running, and request_success stays 0."""
    reading = reading_of(recorded(f"{REAL}_after_mass_abort"))

    assert (reading.values[RUNNING], reading.values[WAITING]) == (0, 0)
    assert reading.values[Metric.REQUESTS_FINISHED] == 0
    assert reading.values[Metric.GENERATION_TOKENS] == 2912


def test_a_full_kv_cache_shows_as_usage_and_preemptions_while_the_queue_empties():
    """Measured 8: 24 blocks: waiting 9→1 at usage 0.91→0.83, preemptions 0→14: trap 1."""
    first, *_, last = series(f"{REAL}_kvfull-under_load", 1, 2, 3, 4, 5, 6)

    assert (first.values[WAITING], last.values[WAITING]) == (7, 1)
    assert last.values[KV] == pytest.approx(19 / 23)
    assert increase(last, first, Metric.PREEMPTIONS) == 14


def test_a_prefill_bound_engine_waits_at_low_kv_usage():
    """Trap 2: 24 waiting at usage 0.004. Usage alone says idle."""
    reading = reading_of(recorded(f"{REAL}-under_load_1"))

    assert reading.values[WAITING] == 24
    assert reading.values[KV] < 0.01


def test_a_warm_prefix_cache_does_not_count_as_usage():
    """Measured 7, vllm#20302: load gone, blocks cached: 0.0 is right."""
    assert reading_of(recorded(f"{REAL}_after_load")).values[KV] == 0.0


def test_a_fresh_engine_reads_as_idle_and_not_as_missing():
    """Measured 6: before any request every series stands there with 0."""
    reading = reading_of(recorded(f"{REAL}_idle_before_any_request"))

    assert (reading.values[RUNNING], reading.values[WAITING], reading.values[KV]) == (0, 0, 0)
    assert reading.missing.keys() == reading.unserved
    assert reading.ttft is not None
    assert reading.ttft.quantile(0.95) is None


def test_a_fresh_engine_of_several_api_servers_has_no_gauges_yet_which_is_not_0():
    """DP 2, 2 API servers, before any request: counters 0, gauges absent, so unknown."""
    reading = reading_of(recorded(f"{REAL}_dp2_api2_idle"))

    assert {RUNNING, WAITING, KV} <= reading.missing.keys() - reading.unserved
    assert reading.values[Metric.GENERATION_TOKENS] == 0


def test_data_parallel_ranks_add_up_to_one_replica():
    """Trap 12, measured 9: engines 0 and 1 wait 12 + 12 and run 8 + 8."""
    reading = reading_of(recorded(f"{REAL}_dp2_api2-under_load_1"))

    assert [reading.ranks[rank].values[WAITING] for rank in ("0", "1")] == [12, 12]
    assert (reading.values[WAITING], reading.values[RUNNING]) == (24, 16)
    assert Metric.PROCESS_START in reading.unserved


def test_the_measured_load_time_is_that_of_the_engine():
    """Measured 10: 29.02 s from series, 29.6 s by the clock at its start."""
    reading = reading_of(recorded(f"{REAL}-under_load_1"))

    assert reading.values[Metric.MODEL_LOAD_SECONDS] == pytest.approx(29.02, abs=0.005)


def test_admission_rejections_are_counted_without_an_engine_label():
    """Measured 12: 40 turned away, 8 first tokens: the queue gauge and TTFT never saw them."""
    reading = reading_of(recorded(f"{REAL}_after_admission_rejections"))

    assert reading.values[Metric.REQUESTS_REJECTED] == 40
    assert reading.values[Metric.REQUESTS_FINISHED] == 8


def test_lora_series_without_a_model_neither_disturb_nor_count():
    """Five stale lora_requests_info series: one model, 8 running, 8 waiting.

    Trap 16, measured 13.
    """
    reading = reading_of(recorded(f"{REAL}_lora_under_load"))

    assert reading.model == "tiny"
    assert (reading.values[RUNNING], reading.values[WAITING]) == (8, 8)


def test_an_answer_to_an_openmetrics_request_reads_alike():
    """The Accept header is ignored; the body is what counts, never its content type.

    Measured 15.
    """
    reading = reading_of(recorded(f"{REAL}_openmetrics_accept"))

    assert reading.values[WAITING] == 0


def test_log_stats_off_is_a_gap_with_the_flag_in_it():
    """Measured 14: 200, 96 lines and no series of vLLM."""
    gap = gap_of(recorded(f"{REAL}_disable_log_stats"), engine="vllm")

    assert gap.cause is Cause.NO_ENGINE
    assert "--disable-log-stats" in gap.detail
