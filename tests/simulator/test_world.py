"""The world as a whole: nothing is lost, nothing depends on strides or on hash seeds."""

import hashlib
import os
import subprocess
import sys
from dataclasses import astuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.autoscaler import product
from adapter.simulator.deployment import PodSpec
from adapter.simulator.faults import long_prompts, replica_dies, scrape_gap, slow_loads
from adapter.simulator.starts import LoadTimes
from adapter.simulator.synthetic import Curve, Play, Steady
from adapter.simulator.workload import Arrival
from adapter.simulator.world import Setting, World
from tests.simulator.worlds import CHAT, ENGINE, a_policy, a_world, after, arrivals, exact_pods


def in_flight(world: World) -> int:
    return sum(pod.engine.in_flight for pod in world.deployment.pods if pod.engine)


def set_to(*plan: tuple[float, int]):
    """Return an autoscaler that sets the counts at these seconds."""

    def attach(world: World) -> None:
        for seconds, count in plan:
            world.agenda.at(
                after(world, seconds), lambda _, count=count: world.deployment.set_replicas(count)
            )

    return attach


@settings(max_examples=12, deadline=None)
@given(
    plan=st.lists(st.tuples(st.floats(0, 200), st.integers(0, 5)), max_size=6),
    deaths=st.lists(st.floats(0, 200), max_size=2),
    seed=st.integers(0, 99),
    router=st.sampled_from(["round-robin", "power-of-two", "least-work"]),
)
def test_every_request_is_finished_in_flight_refused_or_lost(plan, deaths, seed, router):
    """Pods come, drain past a short grace and die: the sum is right at each half minute."""
    world = a_world(
        arrivals(12, 300, seed=seed),
        first=1,
        load=20,
        pods=exact_pods(20, grace=Seconds(3.0)),
        autoscaler=set_to(*plan),
        faults=[replica_dies(after=Seconds(death)) for death in deaths],
        router=router,
    )

    for half_minute in range(1, 9):
        world.play(after(world, 30 * half_minute))
        totals = world.gateway.totals
        world.deployment.advance(world.agenda.now())
        known = totals.finished + totals.lost + totals.refused + in_flight(world) + world.queued
        assert totals.requests == known
        assert world.gateway.in_flight == in_flight(world) + world.queued


def test_every_arrival_is_judged_exactly_once():
    world = a_world(arrivals(20, 100), first=2)

    world.play(after(world, 100))
    score = world.score()

    assert score.requests == world.gateway.totals.requests == sum(1 for _ in arrivals(20, 100))


def a_messy_world() -> World:
    """Everything random at once: load times, routing, arrivals, a policy, faults."""
    pods = PodSpec(preset=ENGINE, load_times=LoadTimes(Seconds(40), seed=3))
    return a_world(
        arrivals(25, 600, seed=4),
        first=2,
        pods=pods,
        autoscaler=product(a_policy(most=8, interval="5s")),
        faults=[
            scrape_gap(after=Seconds(100), length=Seconds(60)),
            replica_dies(after=Seconds(250)),
            slow_loads(after=Seconds(200), length=Seconds(200)),
            long_prompts(after=Seconds(300), length=Seconds(100)),
        ],
        seed=9,
    )


@pytest.mark.slow
@pytest.mark.parametrize("stride", [0.37, 7.0, 45.0])
def test_the_strides_of_play_change_nothing(stride):
    """600 s at one go, and in strides that end anywhere: the same score to the last bit."""
    whole, parts = a_messy_world(), a_messy_world()

    whole.play(after(whole, 600))
    moment = 0.0
    while moment < 600:
        moment = min(600.0, moment + stride)
        parts.play(after(parts, moment))

    assert astuple(whole.score()) == astuple(parts.score())
    assert whole.deployment.history == parts.deployment.history


PROGRAM = """
from tests.simulator.test_world import a_messy_world
from tests.simulator.worlds import after
world = a_messy_world()
world.play(after(world, 600))
print(world.score(), world.deployment.history)
"""


@pytest.mark.slow
def test_two_processes_with_different_hash_seeds_agree():
    digests = set()
    for seed in ("1", "4242"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        ran = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, check=True
        )
        digests.add(hashlib.sha256(ran.stdout).hexdigest())

    assert len(digests) == 1


def test_equal_seeds_give_equal_worlds_and_others_do_not():
    scores = []
    for seed in (1, 1, 2):
        world = a_world(arrivals(14, 120, seed=seed), seed=seed)
        world.play(after(world, 120))
        scores.append(world.score())

    assert scores[0] == scores[1] != scores[2]


def test_without_a_replica_requests_wait_at_the_router():
    """A replica serves from 60 s on: who came before has waited for it, and nobody is lost."""
    world = a_world(arrivals(2, 90), first=0, autoscaler=set_to((0, 1)))

    world.play(after(world, 59))
    assert world.queued == world.gateway.totals.requests > 0
    world.play(after(world, 90))
    score = world.score()

    assert world.queued == 0
    assert score.finished == score.requests
    assert score.ttft_p99 > 50


def test_the_queue_at_the_router_moves_as_soon_as_a_pod_serves_even_without_new_arrivals():
    world = a_world(iter([Arrival(Seconds(1.0), 1000, 10)]), first=0, autoscaler=set_to((0, 1)))

    world.play(after(world, 70))

    assert world.gateway.totals.finished == 1


def test_what_no_engine_can_hold_is_refused_and_a_miss():
    world = a_world(iter([Arrival(Seconds(1.0), 500_000, 10), Arrival(Seconds(2.0), 100, 10)]))

    world.play(after(world, 30))
    score = world.score()

    assert (score.requests, score.refused, score.in_time) == (2, 1, 1)


def test_an_answer_that_is_not_done_a_minute_after_the_end_is_a_miss():
    """8,000 tokens at 17 ms take over two minutes; 500 tokens are done within the minute."""
    world = a_world(iter([Arrival(Seconds(1.0), 100, 8000), Arrival(Seconds(9.0), 100, 500)]))

    world.play(after(world, 10))
    score = world.score()

    assert (score.finished, score.unfinished) == (1, 1)


def test_cost_and_requests_before_scoring_are_left_out():
    world = a_world(arrivals(4, 200), first=3, scored_after=Seconds(100.0))

    world.play(after(world, 200))
    score = world.score()

    assert score.paid_hours == pytest.approx(3 * 100 / 3600)
    assert score.seconds == 100
    assert score.mean_replicas == pytest.approx(3.0)
    assert 0 < score.requests < world.gateway.totals.requests


def test_starts_before_scoring_are_left_out():
    world = a_world(
        arrivals(4, 200), autoscaler=set_to((10, 4), (150, 5)), scored_after=Seconds(100.0)
    )

    world.play(after(world, 200))

    assert world.score().starts == 1


def test_routers_differ_where_it_matters():
    """Uneven work near capacity: who weighs tokens is faster at the p99 than who takes turns."""
    deck = Steady([(200, 20)] * 9 + [(12_000, 400)])
    rates = Curve(((0.0, 17.0),))
    p99 = {}
    for name in ("round-robin", "power-of-two", "least-work"):
        play = Play(rates=rates, decks=deck, length=Seconds(600), seed=2)
        world = a_world(play.arrivals(), first=3, router=name)
        world.play(after(world, 600))
        p99[name] = world.score().ttft_p99

    assert p99["least-work"] <= p99["power-of-two"] < p99["round-robin"]


def test_the_default_router_and_scrapes_are_those_of_the_benchmark():
    setting = Setting(pods=exact_pods(), first=1)

    assert (setting.router, setting.scrape_interval, setting.scrape_delay) == (
        "power-of-two",
        5.0,
        0.0,
    )
    assert CHAT.deck(0.0) == [(1200, 120)]
    assert setting.begin == Timestamp(1_715_472_000.0)
