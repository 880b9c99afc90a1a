"""A release: rounds, minutes, least capacity and extra GPUs, and the verdict on them."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.units import Seconds
from adapter.scaling.rollout import (
    Release,
    Strategy,
    Verdict,
    best,
    best_start,
    blue_green,
    plan,
    resolved,
    slowest_of,
)


def a_release(**facts) -> Release:
    known = {"replicas": 16, "load": 0.8, "cold_start": Seconds(180.0), "drain": Seconds(120.0)}
    return Release(**{**known, **facts})


@pytest.mark.parametrize(
    ("strategy", "rounds", "minutes", "capacity", "extra", "verdict"),
    [
        (Strategy(1, 0), 16, 80, 0.9375, 0.0, Verdict.OK),
        (Strategy(4, 0), 4, 20, 0.75, 0.0, Verdict.OVERLOADED),
        (Strategy(0, 2), 8, 40, 1.0, 0.125, Verdict.OK),
        (Strategy(0, 16), 1, 5, 1.0, 1.0, Verdict.OK),
        (Strategy(3, 0), 6, 30, 0.8125, 0.0, Verdict.TIGHT),
    ],
)
def test_the_numbers_of_sixteen_replicas(strategy, rounds, minutes, capacity, extra, verdict):
    """16 replicas at 80 % load, 3 min of cold start and 2 of drain."""
    made = plan(a_release(), strategy)

    assert (made.rounds, made.seconds) == (rounds, 60 * minutes)
    assert (made.minimum_capacity, made.extra_gpus, made.verdict) == (capacity, extra, verdict)
    assert made.overloaded is (verdict is Verdict.OVERLOADED)


def test_both_knobs_together_shorten_the_rounds():
    """kserve#5916: 12 replicas, surge 2, unavailable 1, 300 s: 4 rounds of 5 minutes."""
    release = a_release(replicas=12, cold_start=Seconds(300.0), drain=Seconds(0.0), load=0.5)

    made = plan(release, Strategy(1, 2))

    assert (made.rounds, made.seconds, made.peak_gpus) == (4, 1200, 14)


def test_a_surge_without_a_free_gpu_never_ends_where_none_may_be_missing():
    made = plan(a_release(gpus_per_replica=8, free_gpus=7), Strategy(0, 1))

    assert (made.verdict, made.rounds, made.seconds) == (Verdict.DEADLOCK, None, None)
    assert "7 free" in made.because
    assert made.verdict.bad


def test_a_surge_that_finds_room_in_part_takes_more_rounds():
    made = plan(a_release(gpus_per_replica=4, free_gpus=8), Strategy(0, 4))

    assert (made.rounds, made.extra_gpus) == (8, 0.125)
    assert "no GPU for 2 of the surge" in made.because


def test_replicas_without_gpus_always_find_room():
    assert a_release(gpus_per_replica=0, free_gpus=0).surge_room == 16


def test_blue_green_fits_whole_or_not_at_all():
    assert blue_green(a_release()).rounds == 1
    assert blue_green(a_release(free_gpus=15)).verdict is Verdict.DEADLOCK


def test_the_best_takes_no_gpu_where_none_is_needed_and_is_the_quickest_of_those():
    made = best(a_release())

    assert made is not None
    assert (made.strategy, made.rounds, made.extra_gpus) == (Strategy(2, 0), 8, 0.0)


def test_the_best_takes_more_gpus_when_it_must_be_done_sooner():
    made = best(a_release(), within=Seconds(1200.0))

    assert made is not None
    assert made.seconds is not None
    assert made.seconds <= 1200
    assert made.extra_gpus == 0.125
    assert made.verdict is Verdict.OK


def test_an_overloaded_fleet_has_no_best():
    assert best(a_release(load=1.2)) is None


def test_nothing_may_be_missing_and_nothing_on_top_is_refused_as_kubernetes_does():
    with pytest.raises(ValueError, match="both 0"):
        Strategy(0, 0)
    with pytest.raises(ValueError, match="below 0"):
        Strategy(-1, 2)


@pytest.mark.parametrize(
    ("text", "surge", "replicas"),
    [("25%", True, 3), ("25%", False, 2), ("3", True, 3), ("0%", True, 0), ("100%", False, 10)],
)
def test_percentages_round_as_kubernetes_rounds_them(text, surge, replicas):
    """Surge up, unavailable down; of 10 replicas."""
    assert resolved(text, 10, surge=surge) == replicas


@pytest.mark.parametrize("text", ["", "%", "-1", "2.5", "25 %", "x%", "²"])
def test_what_is_neither_number_nor_percentage_is_refused(text):
    with pytest.raises(ValueError, match="neither"):
        resolved(text, 10, surge=True)


def test_the_best_hour_meets_the_least_load_over_its_whole_length():
    """80 minutes begun at 2 see the hours 2 to 4."""
    hourly = [0.6] * 24
    hourly[2:5] = [0.1, 0.2, 0.3]
    hourly[12] = 0.97

    start = best_start(plan(a_release(), Strategy(1, 0)), hourly)

    assert start is not None
    assert (start.hour, start.peak_load) == (2, 0.3)
    assert start.overloaded_hours == (10, 11, 12)


def test_a_release_that_never_ends_has_no_best_hour():
    stuck = plan(a_release(free_gpus=0), Strategy(0, 1))

    assert best_start(stuck, [0.1] * 24) is None


def test_a_release_longer_than_a_day_meets_the_whole_day():
    release = a_release(replicas=100, cold_start=Seconds(3600.0))

    start = best_start(plan(release, Strategy(1, 0)), [0.1] * 23 + [0.9])

    assert start is not None
    assert start.peak_load == 0.9


def test_a_round_waits_for_its_slowest_start():
    """Four starts of 180 s with a spread of 0.3; against 40,000 draws."""
    draws = random.Random(1)
    sigma = math.sqrt(math.log1p(0.09))
    mu = math.log(180.0) - sigma * sigma / 2
    drawn = [max(draws.lognormvariate(mu, sigma) for _ in range(4)) for _ in range(40_000)]

    expected = slowest_of(4, Seconds(180.0), 0.3)

    assert expected == pytest.approx(sum(drawn) / len(drawn), rel=0.01)
    assert slowest_of(1, Seconds(180.0), 0.3) == 180.0
    assert plan(a_release(spread=0.3), Strategy(4, 0)).seconds == pytest.approx(
        4 * (expected + 120)
    )


@given(
    replicas=st.integers(1, 60),
    load=st.floats(0.01, 1.5),
    gone=st.integers(0, 60),
    extra=st.integers(0, 60),
    free=st.none() | st.integers(0, 60),
)
def test_every_plan_is_whole_or_says_that_it_never_ends(replicas, load, gone, extra, free):
    if gone == extra == 0:
        return
    release = a_release(replicas=replicas, load=load, free_gpus=free)

    made = plan(release, Strategy(gone, extra))

    assert 0.0 <= made.minimum_capacity <= 1.0
    assert 0.0 <= made.extra_gpus <= 1.0
    assert (made.rounds is None) == (made.verdict is Verdict.DEADLOCK)
    assert made.rounds is None or 1 <= made.rounds <= replicas
    assert free is None or made.peak_gpus <= replicas + free


@given(replicas=st.integers(2, 12), load=st.floats(0.1, 1.0), free=st.integers(0, 12))
def test_no_strategy_without_overload_takes_fewer_gpus_than_the_best(replicas, load, free):
    release = a_release(replicas=replicas, load=load, free_gpus=free)
    found = best(release)
    all_plans = [
        plan(release, Strategy(gone, extra))
        for gone in range(replicas + 1)
        for extra in range(replicas + 1)
        if gone or extra
    ]

    good = [one for one in all_plans if one.verdict is Verdict.OK]

    assert (found is None) == (not good)
    assert found is None or found.extra_gpus == min(one.extra_gpus for one in good)
