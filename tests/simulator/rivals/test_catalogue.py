"""The catalogue, the folder and the documents say the same, and every rule survives anything."""

import dataclasses
import pkgutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Timestamp
from adapter.simulator import rivals as package
from adapter.simulator.rivals import HINDSIGHT, rivals
from adapter.simulator.rivals.observation import Observation, PodFacts, RouterFacts
from adapter.simulator.rivals.port import Calibration, Ordered, Seat
from tests.simulator.rivals.build import pods, seen, silent

DOCUMENT = Path(__file__).parents[3] / "docs" / "rivals.md"
PARTS = {"observation", "pattern", "port", "published", "window"}
CALIBRATION = Calibration(
    kv_tokens=400_000,
    prefill_tokens_per_second=16_000.0,
    requests_per_second=6.0,
    batched_tokens=8192,
    sequences=256,
)
EVERY = rivals(CALIBRATION)

maybe = st.none() | st.floats(0.0, 1e4)
facts = st.builds(
    PodFacts,
    name=st.sampled_from([f"pod-{n}" for n in range(8)]),
    ready=st.booleans(),
    waiting=maybe,
    running=maybe,
    kv_usage_ratio=st.none() | st.floats(0.0, 1.0),
    generated_tokens_per_second=maybe,
)
routers = st.builds(
    RouterFacts,
    in_flight_requests=maybe,
    queued_requests=maybe,
    requests_per_second=maybe,
    prompt_tokens_mean=maybe,
    output_tokens_mean=maybe,
    cached_share=st.floats(0.0, 1.0),
    uncached_tokens_in_flight=maybe,
    ttft_p90_seconds=maybe,
    tpot_p90_seconds=maybe,
)
moments = st.lists(
    st.tuples(
        st.lists(facts, max_size=4, unique_by=lambda pod: pod.name),
        routers,
        st.integers(1, 12),
        st.sampled_from(["", "", "", "401 from Thanos"]),
    ),
    min_size=1,
    max_size=5,
)


def play(rival, story):
    wishes, seat = [], None
    for tick, (some, router, spec, error) in enumerate(story):
        observation = Observation(
            at=Timestamp(1000.0 + tick * rival.interval),
            pods=() if error else tuple(some),
            spec_replicas=spec,
            router=RouterFacts() if error else router,
            max_replicas=12,
            source_error=error,
        )
        seat = seat or Seat(rival, observation)
        wishes.append((seat.wish(observation), observation))
    return wishes


def test_every_file_is_in_the_catalogue():
    files = {module.name for module in pkgutil.iter_modules(package.__path__)} - PARTS
    listed = {type(rival).__module__ for rival in EVERY} | {rule.__module__ for rule in HINDSIGHT}

    assert {f"{package.__name__}.{file}" for file in files} == listed


def test_names_are_unique():
    names = [rival.name for rival in EVERY]

    assert len(set(names)) == len(names)


@pytest.mark.parametrize("rival", EVERY, ids=lambda rival: rival.name)
def test_every_rival_has_its_row_in_the_documents(rival):
    assert f"| `{rival.name}` |" in DOCUMENT.read_text()


@pytest.mark.parametrize("rival", EVERY, ids=lambda rival: rival.name)
def test_settings_cannot_be_changed_behind_anyones_back(rival):
    field = dataclasses.fields(rival)[0].name

    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        setattr(rival, field, 1)


@pytest.mark.parametrize("rival", EVERY, ids=lambda rival: rival.name)
def test_what_writes_scale_has_no_hpa_and_what_publishes_has_one(rival):
    observation = seen(*pods((0.5, 1.0), (0.5, 1.0)))

    wish = Seat(rival, observation).wish(observation)

    assert isinstance(wish, Ordered) is (rival.behavior is None)


@pytest.mark.parametrize("rival", EVERY, ids=lambda rival: rival.name)
@settings(max_examples=15, deadline=None)
@given(story=moments)
def test_any_story_is_answered_the_same_way_twice_within_the_bounds(rival, story):
    """Silence, errors, no pods, no router: a rule answers; equal input, equal answers."""
    wishes = play(rival, story)

    assert wishes == play(rival, story)
    for wish, observation in wishes:
        if isinstance(wish, Ordered):
            assert 1 <= wish.replicas <= observation.max_replicas
        else:
            known = [one.value for one in wish.metrics if one.value is not None]
            assert all(0 <= value < float("inf") for value in known)


@pytest.mark.parametrize("rival", EVERY, ids=lambda rival: rival.name)
def test_a_fleet_that_says_nothing_at_all_is_survived(rival):
    observation = seen(*silent(3), spec=4)

    Seat(rival, observation).wish(observation)
