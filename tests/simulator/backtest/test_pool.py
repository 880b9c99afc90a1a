"""The pool: no request appears or vanishes, and what replicas tell adds up to what they did."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.flow import Lengths
from adapter.simulator.backtest.load import Bin
from adapter.simulator.backtest.pool import Pool
from adapter.simulator.deployment import Pod
from adapter.simulator.engine import TTFT_BOUNDS
from adapter.simulator.score import Objective
from tests.build import T0
from tests.simulator.worlds import ENGINE

CARDS = [(1200, 120)]
MINUTE = 60.0


def a_pool(seed: int = 1) -> Pool:
    return Pool(ENGINE, Lengths.of(CARDS), objective=Objective(), seed=seed)


def pods(*ready_after: float) -> list[Pod]:
    """Return serving pods by the seconds after T0 at which they were ready."""
    every = [Pod(f"r-{n}", n, Timestamp(T0 - 600)) for n, _ in enumerate(ready_after)]
    for pod, after in zip(every, ready_after, strict=True):
        pod.ready_at = Timestamp(T0 + after)
    return every


def a_minute(number: int, requests: float, prompt: float = 1200, output: float = 120) -> Bin:
    start = Timestamp(T0 + number * MINUTE)
    return Bin(start, Seconds(MINUTE), requests, requests * prompt, requests * output)


def play(pool: Pool, *counts: float, on: list[Pod]) -> float:
    """Return the requests that were late."""
    return sum(
        pool.play(a_minute(n, count), on, warm_up=Seconds(0.0)).missed
        for n, count in enumerate(counts)
    )


def test_a_light_load_is_served_in_time():
    pool = a_pool()

    missed = play(pool, *[120.0] * 10, on=pods(-600))

    assert missed < 1
    assert pool.waiting == 0
    assert sum(pool.ttft) == pytest.approx(1200)


def test_an_overload_waits_and_is_late():
    pool = a_pool()

    missed = play(pool, *[1500.0] * 10, on=pods(-600))

    assert pool.waiting > 1000
    assert missed > 5000


def test_without_a_replica_everything_waits_and_is_late():
    pool = a_pool()

    assert play(pool, 60.0, 60.0, on=[]) == 120
    assert pool.waiting == 120


def test_a_replica_works_only_once_it_is_warm():
    pool = a_pool()
    late = pods(-600, 50)

    pool.play(a_minute(0, 300.0), late, warm_up=Seconds(5.0))
    assert pool.told["r-1"].taken == 0
    pool.play(a_minute(1, 300.0), late, warm_up=Seconds(5.0))

    assert 0 < pool.told["r-1"].taken < pool.told["r-0"].taken


def test_what_finished_and_what_runs_is_what_was_taken_in():
    pool = a_pool()

    play(pool, *[2400.0] * 8, *[300.0] * 8, on=pods(-600, -600, -600))

    taken, finished = (
        sum(getattr(t, f) for t in pool.told.values()) for f in ("taken", "finished")
    )
    assert finished + pool.running == pytest.approx(taken)
    tokens = sum(told.output_tokens for told in pool.told.values())
    assert tokens == pytest.approx(120 * finished, rel=0.1)


def test_what_is_gone_is_forgotten():
    pool = a_pool()
    play(pool, 300.0, on=pods(-600, -600))

    play(pool, 300.0, on=pods(-600))

    assert list(pool.told) == ["r-0"]


def test_equal_replicas_tell_the_same_but_for_the_whole_requests_they_show():
    pool = a_pool()

    play(pool, *[600.0] * 5, on=pods(-600, -600, -600))

    one, two, _ = pool.told.values()
    assert (one.taken, one.finished, one.ttft) == (two.taken, two.finished, two.ttft)
    assert one.running == int(one.running)
    shown = []
    for _ in range(300):
        play(pool, 600.0, on=pods(-600, -600, -600))
        shown.append(sum(told.running for told in pool.told.values()))
    assert sum(shown) / len(shown) == pytest.approx(pool.running, rel=0.05)


def test_longer_prompts_come_later_and_fill_the_cache():
    short, long = a_pool(), a_pool()
    for number in range(5):
        short.play(a_minute(number, 120), pods(-600), warm_up=Seconds(0.0))
        long.play(a_minute(number, 60, prompt=9000), pods(-600), warm_up=Seconds(0.0))

    told = [pool.told["r-0"] for pool in (short, long)]
    assert told[1].ttft_seconds / 300 > 3 * told[0].ttft_seconds / 600
    assert told[1].prompt_tokens == pytest.approx(9000 * 300, rel=0.02)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.floats(0, 3000), st.integers(0, 4)), min_size=1, max_size=12))
def test_no_request_appears_or_vanishes(minutes):
    pool, came, before = a_pool(), 0.0, {}
    for number, (count, replicas) in enumerate(minutes):
        missed = pool.play(
            a_minute(number, count), pods(*[-600] * replicas), warm_up=Seconds(0.0)
        ).missed
        came += count

        assert -1e-6 <= missed <= count + 1e-6
        assert sum(pool.ttft) + pool.waiting == pytest.approx(came, abs=1e-3)
        for name, told in pool.told.items():
            now = (told.taken, told.finished, told.output_tokens, told.steps, *told.ttft_counts)
            assert all(
                a <= b for a, b in zip(before.get(name, (0.0,) * len(now)), now, strict=True)
            )
            assert told.ttft_counts[-1] == pytest.approx(told.taken, abs=1e-3)
        before = {
            name: (t.taken, t.finished, t.output_tokens, t.steps, *t.ttft_counts)
            for name, t in pool.told.items()
        }


def test_what_is_shown_is_scattered_as_a_poisson_count_is():
    """The mean alone would look calmer than any engine, and order fewer replicas."""
    pool, on = a_pool(), pods(-600)
    play(pool, *[300.0] * 10, on=on)

    shown = []
    for _ in range(600):
        play(pool, 300.0, on=on)
        shown.append(pool.told["r-0"].running)

    mean = sum(shown) / len(shown)
    spread = sum((each - mean) ** 2 for each in shown) / len(shown)
    assert mean == pytest.approx(pool.running, rel=0.05)
    assert spread == pytest.approx(mean, rel=0.25)


def test_nobody_shows_less_than_nothing():
    pool = a_pool()

    for _ in range(200):
        play(pool, 1.0, on=pods(-600, -600))

        assert all(told.running >= 0 and told.waiting >= 0 for told in pool.told.values())


def test_first_tokens_fall_into_the_buckets_of_their_time():
    """Alone on an engine a prompt of 1,200 tokens takes about a tenth of a second."""
    pool = a_pool()
    play(pool, *[12.0] * 10, on=pods(-600))

    told = pool.told["r-0"]

    mean = told.ttft_seconds / told.taken
    counts = dict(zip(TTFT_BOUNDS, told.ttft_counts, strict=False))
    assert mean == pytest.approx(ENGINE.isolated_prefill_seconds(1200), rel=0.3)
    assert counts[0.02] == 0
    assert counts[0.5] > 0.95 * told.taken
    assert counts[2.5] == pytest.approx(told.taken, rel=1e-3)


def test_a_queue_moves_them_beyond():
    pool = a_pool()
    play(pool, *[1500.0] * 10, on=pods(-600))

    counts = dict(zip(TTFT_BOUNDS, pool.told["r-0"].ttft_counts, strict=False))

    assert counts[2.5] < 0.6 * pool.told["r-0"].taken


@pytest.mark.parametrize("ttft", [0.5, 2.0, 30.0])
def test_the_longer_the_promise_the_fewer_are_late(ttft):
    def late(promise: float) -> float:
        pool = Pool(ENGINE, Lengths.of(CARDS), objective=Objective(ttft=Seconds(promise)), seed=1)
        return play(pool, *[900.0] * 10, on=pods(-600))

    assert late(ttft) >= late(2 * ttft)


def test_lengths_that_hardly_differ_share_a_law():
    pool = a_pool()

    for number in range(50):
        minute = a_minute(number, 60, prompt=1200 + number / 100)
        pool.play(minute, pods(-600), warm_up=Seconds(0.0))

    assert pool._law.cache_info().currsize == 1
