"""Faults: each changes what it says, when it says, and back."""

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.faults import (
    clock_jump,
    long_prompts,
    replica_dies,
    scrape_gap,
    slow_loads,
    staleness,
)
from tests.build import T0
from tests.simulator.worlds import a_world, after, arrivals


def test_a_scrape_gap_begins_and_ends():
    world = a_world(arrivals(1, 1), faults=[scrape_gap(after=Seconds(10), length=Seconds(5))])

    seen = []
    for seconds in (9, 10, 14, 15):
        world.play(after(world, seconds))
        seen.append(world.scraper.broken)

    assert seen == [False, True, True, False]


def test_staleness_comes_on_top_of_the_usual_delay():
    fault = staleness(after=Seconds(10), length=Seconds(5), delay=Seconds(60))
    world = a_world(arrivals(1, 1), faults=[fault], scrape_delay=Seconds(2.0))

    seen = []
    for seconds in (9, 12, 15):
        world.play(after(world, seconds))
        seen.append(world.scraper.delay)

    assert seen == [2.0, 62.0, 2.0]


def test_a_replica_dies_with_what_it_holds_and_is_replaced():
    world = a_world(arrivals(20, 60), faults=[replica_dies(after=Seconds(30))])

    world.play(after(world, 60))
    score = world.score()

    assert score.lost > 0
    assert score.starts == 1
    assert [pod.name for pod in world.deployment.pods] == ["replica-1", "replica-2"]


def test_nobody_dies_where_nobody_serves():
    world = a_world(arrivals(1, 5), first=0, faults=[replica_dies(after=Seconds(1))])

    world.play(after(world, 5))

    assert world.gateway.totals.lost == 0


def test_loads_are_slow_only_meanwhile():
    world = a_world(arrivals(1, 1), faults=[slow_loads(after=Seconds(10), length=Seconds(5))])

    seen = []
    for seconds in (9, 12, 15):
        world.play(after(world, seconds))
        seen.append(world.deployment.load_factor)

    assert seen == [1.0, 2.0, 1.0]


def test_prompts_are_long_only_meanwhile():
    """1200 tokens, for 10 s 2400: the mean says how many were lengthened."""
    fault = long_prompts(after=Seconds(10), length=Seconds(10), factor=2.0)
    world = a_world(arrivals(10, 30), faults=[fault])

    means = []
    for seconds in (10, 20, 30):
        before = (world.gateway.totals.requests, world.gateway.totals.prompt_tokens)
        world.play(after(world, seconds))
        totals = world.gateway.totals
        means.append((totals.prompt_tokens - before[1]) / (totals.requests - before[0]))

    assert means == pytest.approx([1200, 2400, 1200])


def test_the_adapters_clock_jumps_and_the_worlds_does_not():
    world = a_world(arrivals(1, 1), faults=[clock_jump(after=Seconds(10), seconds=Seconds(-3600))])

    world.play(after(world, 20))

    assert world.agenda.now() == T0 + 20
    assert world.clock.now() == T0 + 20 - 3600
