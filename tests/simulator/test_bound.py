import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Seconds
from adapter.simulator.bound import (
    Task,
    UnservableError,
    bound,
    cheapest,
    closed_form,
    needed,
)

TINY = settings(max_examples=80, deadline=None)


def a_task(
    *work: float,
    capacity: tuple[float, ...] = (0.0, 1.0, 2.0, 3.0),
    slot: float = 60.0,
    load_time: float = 240.0,
    slack: float = 0.0,
    low: int = 0,
    running: int = 0,
) -> Task:
    return Task(
        work=work,
        capacity=capacity,
        slot=Seconds(slot),
        load_time=Seconds(load_time),
        slack=Seconds(slack),
        min_replicas=low,
        running=running,
    )


@st.composite
def tasks(draw, *, slots: int = 6, most: int = 3) -> Task:
    gains = draw(st.lists(st.floats(0.1, 2.0), min_size=most, max_size=most))
    capacity = (0.0, *itertools.accumulate(sorted(gains, reverse=True)))
    rates = st.floats(0.0, capacity[-1])
    return Task(
        work=tuple(draw(st.lists(rates, min_size=1, max_size=slots))),
        capacity=capacity,
        slot=Seconds(60.0),
        load_time=Seconds(draw(st.sampled_from([0.0, 45.0, 60.0, 150.0, 600.0]))),
        slack=Seconds(draw(st.sampled_from([0.0, 2.0, 30.0]))),
        min_replicas=draw(st.integers(0, 2)),
        running=draw(st.integers(0, 3)),
    )


def every_plan(task: Task):
    counts = range(task.min_replicas, task.max_replicas + 1)
    return itertools.product(counts, repeat=len(task.work))


# --- the closed form


def test_one_busy_slot_costs_the_slot_and_a_start():
    assert closed_form(a_task(0.0, 1.0, 0.0)) == 60 + 240


def test_a_gap_shorter_than_a_start_is_paid_and_a_longer_one_is_left():
    """Gaps of 3 and 5 slots at 60 s against a start of 240 s: 180, then 240."""
    short = a_task(1.0, 0.0, 0.0, 0.0, 1.0)
    long = a_task(1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)

    assert closed_form(short) == 240 + 2 * 60 + 180
    assert closed_form(long) == 240 + 2 * 60 + 240


def test_replicas_that_serve_already_start_for_nothing_but_are_paid_until_they_are_needed():
    """Kept for two idle slots (120 s), or for ten: then a new start is cheaper."""
    soon = a_task(0.0, 0.0, 1.0, running=1)
    late = a_task(*[0.0] * 10, 1.0, running=1)

    assert closed_form(soon) == 120 + 60
    assert closed_form(late) == 240 + 60


def test_levels_are_stacked():
    """Two replicas through, a third for one slot."""
    task = a_task(2.0, 3.0, 2.0)

    assert closed_form(task) == 2 * (240 + 180) + (240 + 60)


def test_the_minimum_is_paid_through_the_night():
    assert closed_form(a_task(0.0, 0.0, 0.0, low=2)) == 2 * (240 + 180)


def test_slack_lets_the_end_of_a_slot_wait():
    """2 s of 60 s: 1.03 units/s need one replica and not two."""
    assert needed(a_task(1.03)) == (2,)
    assert needed(a_task(1.03, slack=2.0)) == (1,)


def test_no_load_costs_nothing():
    assert closed_form(a_task(0.0, 0.0)) == 0
    assert closed_form(a_task()) == 0


def test_more_work_than_the_largest_fleet_does_is_refused_with_the_figures():
    with pytest.raises(UnservableError, match="3 replicas miss 60 units of work"):
        closed_form(a_task(4.0))


# --- the programme


@TINY
@given(tasks(slots=12))
def test_without_misses_the_programme_equals_the_closed_form(task):
    """To float precision, on random loads, tables, load times, bounds and beginnings."""
    plan = cheapest(task, price=math.inf)

    assert task.missed(plan) == 0
    assert task.paid(plan) == pytest.approx(closed_form(task), rel=1e-12, abs=1e-9)


@TINY
@given(tasks(slots=5), st.floats(0.0, 500.0))
def test_no_plan_of_all_is_cheaper_at_any_price(task, price):
    """Every one of up to 4^5 plans, by brute force."""
    best = min(task.paid(plan) + price * task.missed(plan) for plan in every_plan(task))

    plan = cheapest(task, price=price)

    assert task.paid(plan) + price * task.missed(plan) == pytest.approx(best, rel=1e-9, abs=1e-6)


@TINY
@given(tasks(slots=5), st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]))
def test_no_plan_within_the_budget_pays_less_than_the_bound(task, share):
    """Weak duality, by brute force over every plan; and the plan that comes with it is one."""
    budget = share * task.slot * sum(task.work)
    within = [task.paid(plan) for plan in every_plan(task) if task.missed(plan) <= budget]

    found = bound(task, missed_share=share)

    assert found.paid <= min(within) * (1 + 1e-9) + 1e-6
    assert found.plan_missed <= budget + 1e-6
    assert found.plan_paid == pytest.approx(task.paid(found.plan))
    assert found.plan_paid >= min(within) - 1e-6


@TINY
@given(tasks(slots=5), st.sampled_from([0.01, 0.1, 0.5]))
def test_the_bound_is_the_best_that_any_price_gives(task, share):
    """Against a fine grid of prices: the search ends at the top of the dual function."""
    budget = share * task.slot * sum(task.work)
    duals = []
    for price in [0.0, *(1.15**step for step in range(-40, 60))]:
        plan = cheapest(task, price=price)
        duals.append(task.paid(plan) + price * (task.missed(plan) - budget))

    found = bound(task, missed_share=share)

    assert found.paid >= max(duals) - 1e-5 * max(1.0, *duals)


@TINY
@given(tasks(slots=10))
def test_a_larger_budget_never_costs_more(task):
    paid = [bound(task, missed_share=share).paid for share in (0.0, 0.01, 0.05, 0.3, 1.0)]

    assert all(more <= less * (1 + 1e-5) + 1e-6 for less, more in itertools.pairwise(paid))


@TINY
@given(tasks(slots=10), st.sampled_from([0.0, 0.02]))
def test_a_longer_load_never_costs_less(task, share):
    paid = [
        bound(_with(task, load_time=Seconds(load)), missed_share=share).paid
        for load in (0.0, 20.0, 60.0, 240.0, 600.0)
    ]

    assert all(
        longer >= shorter * (1 - 1e-5) - 1e-6 for shorter, longer in itertools.pairwise(paid)
    )


@TINY
@given(tasks(slots=10), st.sampled_from([0.0, 0.02]))
def test_more_capacity_or_slack_never_costs_more(task, share):
    plain = bound(task, missed_share=share).paid
    stronger = _with(task, capacity=tuple(1.2 * able for able in task.capacity))
    later = _with(task, slack=Seconds(45.0))

    assert bound(stronger, missed_share=share).paid <= plain * (1 + 1e-5) + 1e-6
    assert bound(later, missed_share=share).paid <= plain * (1 + 1e-5) + 1e-6


def test_a_budget_that_covers_a_burst_saves_its_replica():
    """One slot in a hundred needs a second replica; 1 % may be missed: 60.3 units, 30 are.

    The rest of the budget is what the bound stays below the plan for.
    """
    task = a_task(*[1.0] * 99, 1.5)

    assert bound(task, missed_share=0.0).paid == 240 + 6000 + 300
    assert bound(task, missed_share=0.01).plan == (1,) * 100
    assert 6200 < bound(task, missed_share=0.01).paid < 240 + 6000


def test_a_fleet_that_the_minimum_alone_serves_costs_the_minimum():
    found = bound(a_task(0.5, 0.5, low=2, running=2), missed_share=0.01)

    assert found.paid == found.plan_paid == 2 * 120
    assert found.plan == (2, 2)


def test_a_budget_too_small_for_the_largest_fleet_is_refused_with_the_figures():
    with pytest.raises(UnservableError, match=r"3 replicas miss 60 units of work and 2\.4 may be"):
        bound(a_task(4.0), missed_share=0.01)


def test_what_must_be_missed_may_be_missed():
    """4 units/s against 3: a quarter is lost in any case, a half may be."""
    found = bound(a_task(4.0), missed_share=0.5)

    assert found.plan_missed <= 0.5 * 240
    assert found.paid == 2 * (240 + 60)


def test_more_replicas_at_the_beginning_than_are_ever_needed_change_nothing():
    task = a_task(1.0, 1.0, running=3)

    assert bound(task, missed_share=0.0).plan == (1, 1)
    assert bound(task, missed_share=0.0).paid == 120


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"capacity": (1.0, 2.0)}, "must begin with 0"),
        ({"capacity": ()}, "must begin with 0"),
        ({"capacity": (0.0, 2.0, 1.0)}, "never fall"),
        ({"slot": 0.0}, "slot 0.0 s must be above 0"),
        ({"load_time": -1.0}, "load_time -1.0 s"),
        ({"slack": 60.0}, "take longer slots"),
        ({"low": 4}, r"must be within 0\.\.3"),
        ({"low": -1}, r"must be within 0\.\.3"),
    ],
)
def test_a_task_without_a_bound_is_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        a_task(1.0, **changes)


@pytest.mark.parametrize("rate", [-1.0, math.nan, math.inf])
def test_work_that_is_no_number_is_refused(rate):
    with pytest.raises(ValueError, match="finite and not negative"):
        a_task(1.0, rate)


# --- figures of others


def test_llmds_ramp_needs_4_2_to_4_5_replicas_in_hindsight():
    """Published: 5.93 on average.

    2→4→6→8→10→4→1 rps, 1.4 to 1.5 rps a replica, start 100 s and paid, at most 8 replicas, three
    there at the beginning; at least 1 of them, or 3 as in the guide.
    """
    stages = [(2, 330), (4, 360), (6, 360), (8, 360), (10, 360), (4, 360), (1, 300)]
    work = [float(rate) for rate, seconds in stages for _ in range(seconds // 30)]

    def average(each: float, low: int) -> float:
        capacity = tuple(each * count for count in range(9))
        task = a_task(*work, capacity=capacity, slot=30.0, load_time=100.0, low=low, running=3)
        return closed_form(task) / (30 * len(work))

    assert average(1.45, 1) == pytest.approx(4.16, abs=0.01)
    assert average(1.45, 3) == pytest.approx(4.50, abs=0.01)
    assert average(1.4, 3) < 5.93


@pytest.mark.slow
def test_a_week_of_minutes_takes_seconds():
    """10,080 slots, 36 replicas; 2.6 CPU seconds when it was written."""
    rng = random.Random(1)
    work = [
        max(0.0, 60 + 40 * math.sin(minute / 1440 * 2 * math.pi) + rng.gauss(0, 5))
        for minute in range(10_080)
    ]
    task = a_task(*work, capacity=tuple(3.0 * count for count in range(41)), slack=2.0, low=1)

    found = bound(task, missed_share=0.01)

    assert found.plan_paid <= found.paid * 1.001
    assert closed_form(task) == pytest.approx(task.paid(cheapest(task, price=math.inf)), rel=1e-12)


def _with(task: Task, **changes: object) -> Task:
    fields = {name: getattr(task, name) for name in Task.__slots__}
    return Task(**{**fields, **changes})
