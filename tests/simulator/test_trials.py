"""Trials: each fault begins halfway through what is judged, and does what its name says."""

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.trials import FAULTS, trial
from adapter.simulator.world import World
from tests.simulator.worlds import a_world, after, arrivals

WARM_UP, JUDGED = Seconds(60.0), Seconds(1200.0)
HALFWAY = 660.0


def world_with(name: str) -> World:
    fault = trial(name, warm_up=WARM_UP, judged=JUDGED)
    return a_world(arrivals(0.1, 60), faults=[fault])


def traits(world: World) -> dict[str, object]:
    return {
        "broken": world.scraper.broken,
        "delay": world.scraper.delay,
        "serving": len(world.deployment.serving),
        "load_factor": world.deployment.load_factor,
        "prompt_factor": world.prompt_factor,
        "clock": world.clock.off,
    }


@pytest.mark.parametrize(
    ("name", "trait", "value"),
    [
        ("scrape-gap-5m", "broken", True),
        ("stale-60s", "delay", 60.0),
        ("replica-dies", "serving", 1),
        ("load-time-doubles", "load_factor", 2.0),
        ("prompts-double", "prompt_factor", 2.0),
        ("clock-1h-forward", "clock", 3600.0),
        ("clock-1h-back", "clock", -3600.0),
    ],
)
def test_it_changes_what_its_name_says_halfway_and_nothing_else(name, trait, value):
    world = world_with(name)

    world.play(after(world, HALFWAY - 1))
    before = traits(world)
    world.play(after(world, HALFWAY))

    changed = {key: now for key, now in traits(world).items() if now != before[key]}
    assert changed == {trait: value}


def test_every_fault_there_is_is_tested_above():
    marks = test_it_changes_what_its_name_says_halfway_and_nothing_else.pytestmark

    assert {name for name, _, _ in marks[0].args[1]} == set(FAULTS)


def test_the_gap_ends_after_five_minutes():
    world = world_with("scrape-gap-5m")

    seen = []
    for seconds in (HALFWAY + 299, HALFWAY + 300):
        world.play(after(world, seconds))
        seen.append(world.scraper.broken)

    assert seen == [True, False]


@pytest.mark.parametrize("name", ["stale-60s", "load-time-doubles", "prompts-double"])
def test_what_lasts_lasts_to_the_end_of_what_is_judged(name):
    world = world_with(name)

    world.play(after(world, HALFWAY))
    begun = traits(world)
    world.play(after(world, WARM_UP + JUDGED - 1))

    assert traits(world) == begun


def test_another_name_is_no_fault():
    with pytest.raises(KeyError, match="magic"):
        trial("magic", warm_up=WARM_UP, judged=JUDGED)
