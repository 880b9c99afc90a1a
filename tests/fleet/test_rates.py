"""Two readings of one replica: growth, resets and TTFT windows."""

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.rates import first_tokens, increase, seconds_between, was_reset
from adapter.fleet.reading import Rank, Reading
from adapter.fleet.units import Timestamp

TOKENS = Metric.GENERATION_TOKENS


def a_histogram(*counts: float, bounds: tuple[float, ...] = (1.0, math.inf)) -> Histogram:
    return Histogram(bounds, counts, sum_seconds=counts[-1])


def a_reading(
    at: float = 0.0,
    started: float | None = None,
    model: str = "m",
    **tokens: float | Histogram,
) -> Reading:
    """Return a reading with one rank per keyword: its tokens, or its TTFT histogram."""
    ranks = {
        name: Rank({}, value) if isinstance(value, Histogram) else Rank({TOKENS: value})
        for name, value in tokens.items()
    }
    values = {TOKENS: sum(rank.values.get(TOKENS, 0.0) for rank in ranks.values())}
    if started is not None:
        values[Metric.PROCESS_START] = started
    ttfts = [rank.ttft for rank in ranks.values() if rank.ttft is not None]
    return Reading(
        Timestamp(at), "vllm", model, values, ttft=ttfts[0] if ttfts else None, ranks=ranks
    )


def test_a_counter_grows_by_the_sum_of_what_each_rank_added():
    """10→15 and 100→101 are 6."""
    before, now = a_reading(r0=10, r1=100), a_reading(r0=15, r1=101)

    assert increase(now, before, TOKENS) == 6


def test_a_flat_counter_grew_by_nothing_which_is_not_unknown():
    before, now = a_reading(r0=10), a_reading(r0=10)

    assert increase(now, before, TOKENS) == 0
    assert not was_reset(now, before)


def test_after_a_reset_the_new_value_counts_once():
    """Trap 8: 100→7 is 7, not -93; the reading after that is compared with 7."""
    first, second, third = a_reading(r0=100), a_reading(r0=7), a_reading(r0=9)

    assert increase(second, first, TOKENS) == 7
    assert increase(third, second, TOKENS) == 2


def test_one_rank_that_restarts_does_not_reset_the_others():
    before, now = a_reading(r0=100, r1=50), a_reading(r0=3, r1=60)

    assert increase(now, before, TOKENS) == 13
    assert was_reset(now, before)


def test_a_restart_hidden_by_a_fast_counter_shows_in_the_process_start():
    """100→150 with a new process is 150: the counter passed its old value within one interval."""
    before, now = a_reading(r0=100, started=1000.0), a_reading(r0=150, started=1060.0)

    assert increase(now, before, TOKENS) == 150
    assert was_reset(now, before)


def test_a_process_start_rounded_differently_is_no_restart():
    before, now = a_reading(r0=100, started=1000.0), a_reading(r0=150, started=1000.4)

    assert increase(now, before, TOKENS) == 50
    assert not was_reset(now, before)


def test_a_process_start_that_only_one_reading_has_says_nothing():
    before, now = a_reading(r0=100), a_reading(r0=150, started=1000.0)

    assert not was_reset(now, before)


def test_counters_of_another_model_do_not_compare():
    before, now = a_reading(r0=100, model="old"), a_reading(r0=150, model="new")

    assert increase(now, before, TOKENS) is None
    assert was_reset(now, before)


def test_a_counter_read_from_another_series_is_neither_growth_nor_reset():
    """SGLang's live token counter appears after the first log interval: 5000 at finish, 40 live."""
    before = replace(a_reading(r0=5000), matched={TOKENS: "sglang:generation_tokens_total"})
    now = replace(a_reading(r0=40), matched={TOKENS: "sglang:realtime_tokens_total"})

    assert increase(now, before, TOKENS) is None
    assert not was_reset(now, before)


def test_ttft_read_from_another_series_is_neither_a_window_nor_a_reset():
    """The first stream of an SGLang server: its own histogram replaces that of whole answers."""
    before = replace(a_reading(r0=a_histogram(10, 90)), matched={"ttft": '…{is_streaming="false"}'})
    now = replace(a_reading(r0=a_histogram(1, 1)), matched={"ttft": '…{is_streaming="true"}'})

    assert first_tokens(now, before) is None
    assert not was_reset(now, before)


def test_a_rank_that_went_silent_makes_the_growth_unknown():
    """DP 2 with one rank gone: half the work must not read as half the load."""
    before, now = a_reading(r0=10, r1=10), a_reading(r0=20)

    assert increase(now, before, TOKENS) is None


def test_a_metric_that_either_reading_lacks_has_unknown_growth():
    with_tokens, without = a_reading(r0=10), a_reading()
    empty = Reading(Timestamp(0.0), "vllm", "m", {})

    assert increase(with_tokens, empty, TOKENS) is None
    assert increase(empty, with_tokens, TOKENS) is None
    assert increase(with_tokens, without, TOKENS) is None


def test_a_gauge_that_falls_is_no_reset():
    def running(count: float) -> Reading:
        rank = Rank({Metric.REQUESTS_RUNNING: count})
        return Reading(Timestamp(0.0), "vllm", "m", rank.values, ranks={"": rank})

    assert not was_reset(running(1), running(9))


def test_first_tokens_between_readings_are_the_difference_over_all_ranks():
    """Ranks saw 2+1 and 4+0 first tokens under 1 s: the window is (6, 7)."""
    before = a_reading(r0=a_histogram(10, 10), r1=a_histogram(5, 9))
    now = a_reading(r0=a_histogram(12, 13), r1=a_histogram(9, 13))

    window = first_tokens(now, before)

    assert window is not None
    assert window.counts == (6, 7)


def test_no_first_token_is_a_window_of_nothing_with_no_quantile():
    """Count 0 is an answer (nobody got a token); its quantile is None and never 0."""
    reading = a_reading(r0=a_histogram(10, 10))

    window = first_tokens(reading, reading)

    assert window is not None
    assert window.count == 0
    assert window.quantile(0.95) is None


@pytest.mark.parametrize(
    "now",
    [
        pytest.param(a_reading(r0=a_histogram(1, 1)), id="a bucket fell"),
        pytest.param(a_reading(r0=a_histogram(20, 20, bounds=(2.0, math.inf))), id="new layout"),
        pytest.param(a_reading(r0=5), id="no histogram"),
        pytest.param(a_reading(r1=a_histogram(20, 20)), id="another rank"),
        pytest.param(a_reading(r0=a_histogram(20, 20), model="other"), id="another model"),
    ],
)
def test_a_ttft_window_is_unknown_when_the_two_readings_do_not_compare(now: Reading):
    before = a_reading(r0=a_histogram(10, 10))

    assert first_tokens(now, before) is None


def test_a_fallen_ttft_bucket_is_a_reset_even_without_a_counter():
    before, now = a_reading(r0=a_histogram(10, 10)), a_reading(r0=a_histogram(2, 3))

    assert was_reset(now, before)


def test_the_time_between_readings_keeps_its_sign():
    assert seconds_between(a_reading(at=10.0), a_reading(at=4.0)) == 6.0
    assert seconds_between(a_reading(at=4.0), a_reading(at=10.0)) == -6.0


@given(st.lists(st.floats(0, 1e12), min_size=2, max_size=12))
@settings(max_examples=100, deadline=None)
def test_growth_is_never_negative_and_never_more_than_the_new_value(values: list[float]):
    readings = [a_reading(r0=value) for value in values]

    for before, now in itertools.pairwise(readings):
        growth = increase(now, before, TOKENS)
        assert growth is not None
        assert 0 <= growth <= now.values[TOKENS]
