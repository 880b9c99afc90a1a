"""The Dynamo-like planner, by peers.md sections 1.3 and 5.5."""

import dataclasses
import math

import pytest

from adapter.simulator.rivals.dynamo import DynamoPlanner, Estimate, Target, next_rate
from adapter.simulator.rivals.observation import PodFacts, RouterFacts
from adapter.simulator.rivals.port import Ordered, Seat
from tests.simulator.rivals.build import Play, reached, seen, silent

RULE = DynamoPlanner(kv_tokens=100_000, prefill_tokens_per_second=10_000.0, requests_per_second=5.0)
LENGTHS = RouterFacts(prompt_tokens_mean=1000.0, requests_per_second=0.0)
"""0.1 s of prefill for each prompt."""


def engines(*waiting: float, itl: float = 0.02, ready: bool = True):
    return tuple(
        PodFacts(
            name=f"engine-{n}",
            ready=ready,
            waiting=each,
            running=10.0,
            kv_usage_ratio=0.3,
            generated_tokens_per_second=10.0 / itl,
        )
        for n, each in enumerate(waiting)
    )


def estimates(*ttft: float, own: float = 0.1, itl: float = 0.02) -> list[Estimate]:
    return [Estimate(seconds - own, own, itl, 0.5) for seconds in ttft]


def after_burn_in(facts, *, router=LENGTHS, spec=None, **settings):
    """Return the answers to six observations: the load loop waits for five."""
    rule = dataclasses.replace(RULE, **settings)
    seat = Seat(rule, seen(*facts, spec=spec, router=router))
    wishes = [seat.wish(seen(*facts, at=5.0 * n, spec=spec, router=router)) for n in range(6)]
    return [wish.replicas for wish in wishes]


def test_one_fast_engine_vetoes_a_scale_up():
    """Estimates of 9, 9, 9 and 0.48 s against 0.5 s: it stays at 4."""
    assert RULE.step(estimates(9.0, 9.0, 9.0, 0.48)) == 4
    assert RULE.step(estimates(9.0, 9.0, 9.0, 9.0)) == 5


def test_slow_decoding_everywhere_asks_for_one_more():
    assert RULE.step(estimates(0.2, 0.2, itl=0.06)) == 3


def test_one_goes_only_when_the_others_could_bear_its_load():
    """2 of 3 at 0.05 s of queue: 0.075 s is inside (0.5 - 0.1) x 0.8; 0.25 s is not."""
    assert RULE.step(estimates(0.15, 0.15, 0.15)) == 2
    assert RULE.step(estimates(0.35, 0.35, 0.35)) == 3
    assert RULE.step(estimates(0.15, 0.15, 0.15, itl=0.03)) == 3
    assert RULE.step(estimates(0.1)) == 1


def test_two_do_not_flap_between_one_and_two():
    """Dynamo PR#9294: 0.6 of the objective with two is 1.2 with one, so two stay."""
    assert RULE.step(estimates(0.28, 0.28)) == 2


def test_the_load_loop_waits_for_five_observations():
    assert after_burn_in(engines(90.0, 90.0)) == [2, 2, 2, 2, 3, 3]


def test_scaling_under_way_is_waited_for():
    loading = silent(1, ready=False)

    assert after_burn_in((*engines(90.0, 90.0), *loading), spec=3) == [3] * 6


def test_the_forecast_waits_for_scaling_under_way_too():
    """22 requests/s need five; a third replica is loading: three until it is there."""
    router = dataclasses.replace(LENGTHS, requests_per_second=22.0)
    facts = (*engines(0.0, 0.0), *silent(1, ready=False))
    seat = Seat(RULE, seen(*facts, router=router))

    loading = seat.wish(seen(*facts, at=180.0, router=router))
    there = seat.wish(seen(*engines(0.0, 0.0, 0.0), at=185.0, router=router))

    assert (loading, there) == (Ordered(3), Ordered(5))


def test_the_predictor_keeps_fifty_points():
    state = RULE.begin(seen(*engines(0.0)))
    for interval in range(1, 61):
        _, state = RULE.decide(seen(*engines(0.0), at=180.0 * interval, router=LENGTHS), state)

    assert len(state.rates) == 50


def test_engines_that_do_not_answer_change_nothing():
    assert after_burn_in((*engines(90.0), *silent(1))) == [2] * 6
    assert after_burn_in(silent(2)) == [2] * 6


def test_four_to_twenty_takes_65_minutes():
    """peers.md 4, with a load time of 240 s."""

    def world(at, ready, ordered):
        waiting = 90.0 if ready < 20 else 0.0
        facts = (*engines(*[waiting] * ready), *silent(ordered - ready, ready=False))
        return seen(*facts, at=at, router=LENGTHS)

    changes = Play(RULE, world, first=4, load_time=240).until(6000)

    assert (reached(changes, 20) + 240) / 60 == pytest.approx(65, abs=2)


def test_the_forecast_is_a_floor_under_the_load_loop():
    """22 requests/s at 5 each: five replicas at the first forecast, after 180 s."""
    router = dataclasses.replace(LENGTHS, requests_per_second=22.0)

    def world(at, ready, ordered):
        facts = (*engines(*[0.0] * ready), *silent(ordered - ready, ready=False))
        return seen(*facts, at=at, router=router, low=2)

    changes = Play(RULE, world, first=2, load_time=60).until(600)

    assert changes == [(180, 5)]


def test_an_unknown_load_is_forecast_as_none():
    """At 360 s the counter is gone: the floor falls to the minimum, and the load loop follows."""

    def world(at, ready, ordered):
        rate = 22.0 if at < 300 else None
        router = dataclasses.replace(LENGTHS, requests_per_second=rate)
        return seen(*engines(*[0.0] * ready), at=at, router=router, low=2)

    changes = Play(RULE, world, first=2, load_time=0).until(400)

    assert changes == [(180, 5), (360, 4), (365, 3), (370, 2)]


@pytest.mark.parametrize(
    ("rates", "forecast"),
    [
        ([5.0], 5.0),
        ([5.0, 7.0], 7.0),
        ([4.0, 4.0, 4.0], 4.0),
        ([1.0, 2.0, 3.0, 4.0], 5.0),
        ([8.0, 4.0, 2.0], 1.0),
        ([9.0, 6.0, 3.0, 0.0], 0.0),
    ],
)
def test_the_forecast_carries_the_last_step_on(rates, forecast):
    """ARIMA(1,1,0): a steady slope goes on, a halving one halves again; never below 0."""
    assert next_rate(rates) == pytest.approx(forecast)


def test_a_batch_that_yields_no_token_is_infinitely_slow():
    stuck = PodFacts(
        name="a", ready=True, waiting=0.0, running=5.0, generated_tokens_per_second=0.0
    )
    unknown = dataclasses.replace(stuck, generated_tokens_per_second=None)
    idle = dataclasses.replace(stuck, running=0.0)

    found = RULE.estimates(seen(stuck, unknown, idle))

    assert [each.itl for each in found] == [math.inf, 0.0, 0.0]


def test_cached_prompts_are_cheap():
    router = dataclasses.replace(LENGTHS, cached_share=0.75)

    (found,) = RULE.estimates(seen(*engines(4.0), router=router))

    assert found == pytest.approx(Estimate(0.1, 0.025, 0.02, 0.31))


@pytest.mark.parametrize(
    ("target", "utilizations", "count"),
    [
        (Target.THROUGHPUT, [1.2, 0.1, 0.1], 4),
        (Target.THROUGHPUT, [0.9, 0.1, 0.1], 3),
        (Target.THROUGHPUT, [0.5, 0.5, 0.5], 2),
        (Target.LATENCY, [0.5, 0.1, 0.1], 4),
        (Target.LATENCY, [0.05, 0.05], 1),
        (Target.LATENCY, [0.05], 1),
    ],
)
def test_easy_targets_grow_for_any_and_shrink_for_all(target, utilizations, count):
    """Peers.md 5.5: easy decode [1.2, .1, .1] → 4."""
    rule = dataclasses.replace(RULE, target=target)

    assert rule.step([Estimate(0.0, 0.1, 0.0, used) for used in utilizations]) == count


def test_utilization_counts_the_queue():
    """30 % in use and 20 prompts of 1000 tokens waiting for a cache of 100,000: half."""
    (found,) = RULE.estimates(seen(*engines(20.0), router=LENGTHS))

    assert found.utilization == pytest.approx(0.5)


def test_bounds_are_kept():
    high = seen(*engines(0.0), spec=9, high=4)

    assert Seat(RULE, high).wish(high) == Ordered(4)
