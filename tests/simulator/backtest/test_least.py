"""The bound of a load: the work in its minutes, the engine at its best, and wider slots."""

import math

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.backtest.least import (
    Tally,
    UnplayableError,
    first_replicas,
    full,
    least,
    mean_work,
)
from adapter.simulator.saturation import saturated, work_of
from adapter.simulator.synthetic import Curve, Shift, Steady
from adapter.simulator.workload import Arrival
from tests.simulator.backtest.plans import CARDS, a_load, a_plan
from tests.simulator.worlds import ENGINE, a_policy

WORK = work_of(ENGINE)(*CARDS[0])


def arrivals(*afters: float, prompt: int = 1200, output: int = 120):
    return (Arrival(Seconds(after), prompt, output) for after in afters)


class TestTally:
    def test_work_is_counted_in_the_minute_in_which_it_came(self):
        tally = Tally(arrivals(0.0, 59.9, 60.0, 250.0), ENGINE)

        taken = list(tally)

        assert len(taken) == 4
        assert tally.minutes == pytest.approx([2 * WORK, WORK, 0.0, 0.0, WORK])

    def test_what_no_engine_could_hold_is_handed_on_and_no_work(self):
        tally = Tally(arrivals(0.0, prompt=ENGINE.kv_tokens), ENGINE)

        assert len(list(tally)) == 1
        assert tally.minutes == [0.0]

    def test_nothing_is_counted_before_it_is_taken(self):
        tally = Tally(arrivals(0.0, 1.0), ENGINE)

        next(iter(tally))

        assert tally.minutes == pytest.approx([WORK])


class TestFull:
    def test_of_several_mixes_the_best_counts(self):
        """The bound must hold for all of the time, so it may only be too low."""
        shifting = a_load(decks=Shift([(1000, 400)], at=Seconds(300.0), factor=4.0), length=1200.0)

        best = full(a_plan(shifting))

        assert best == max(saturated(ENGINE, [(1000, 400)]), saturated(ENGINE, [(4000, 400)]))

    def test_a_mix_that_does_not_fit_does_not_count(self):
        outgrown = a_load(decks=Shift(CARDS, at=Seconds(300.0), factor=9999.0), length=1200.0)

        assert full(a_plan(outgrown)) == saturated(ENGINE, CARDS)

    @pytest.mark.parametrize("cards", [[], [(ENGINE.kv_tokens, 1)]])
    def test_nothing_that_fits_is_told(self, cards):
        with pytest.raises(UnplayableError, match="no request in this part"):
            full(a_plan(a_load(decks=Steady(cards))))


class TestFirst:
    def test_the_fleet_begins_70_percent_busy(self):
        plan = a_plan(a_load(rate=20.0))

        count = first_replicas(plan, capacity=1.0)

        assert count == pytest.approx(math.ceil(20 * WORK / 0.7), abs=1)

    def test_within_the_policys_bounds(self):
        busy, idle = a_load(rate=500.0), a_load(rates=Curve(((0.0, 0.0),)))

        assert first_replicas(a_plan(busy), capacity=1.0) == 10
        assert first_replicas(a_plan(idle, policy=a_policy(least=3)), capacity=1.0) == 3

    def test_the_scale_counts(self):
        once, twice = (a_plan(a_load(rate=10.0), scale=scale) for scale in (1.0, 3.0))

        assert first_replicas(once, capacity=0.5) < first_replicas(twice, capacity=0.5)

    def test_the_mean_work_is_that_of_the_deck(self):
        assert mean_work(ENGINE, [(100, 10), (300, 30)]) == pytest.approx(
            (work_of(ENGINE)(100, 10) + work_of(ENGINE)(300, 30)) / 2
        )


class TestLeast:
    def test_a_steady_load_needs_what_it_needs(self):
        """2.5 replicas' worth of work for an hour: three of them, nobody pays less than that."""
        found, slot = least(a_plan(), [2.5 * 60] * 60, capacity=1.0)

        assert slot == 60
        assert found is not None
        assert 2.4 * 3600 <= found.paid <= 3 * 3600 + 1
        assert set(found.plan) <= {2, 3}

    def test_the_warm_up_is_not_part_of_it(self):
        plan = a_plan(a_load(length=7200.0), warm_up=Seconds(3600.0))

        found, _ = least(plan, [50.0 * 60] * 60 + [0.5 * 60] * 60, capacity=1.0)

        assert found is not None
        assert found.paid == pytest.approx(3600)
        assert len(found.plan) == 60

    def test_a_promise_longer_than_a_minute_takes_longer_slots(self):
        patient = a_plan(policy=a_policy(signals={"ttft": {"objective": "150s"}}))

        found, slot = least(patient, [60.0] * 60, capacity=1.0)

        assert slot == 180
        assert found is not None
        assert len(found.plan) == 20

    def test_beyond_two_days_slots_are_five_minutes_and_the_bound_about_the_same(self):
        minutes = [(1.2 + 0.8 * (n % 7 == 0)) * 60 for n in range(3 * 1440)]

        wide, slot = least(a_plan(), minutes, capacity=1.0)
        narrow, _ = least(a_plan(), minutes[:2880], capacity=1.0)

        assert slot == 300
        assert wide is not None
        assert narrow is not None
        assert wide.paid / 3 == pytest.approx(narrow.paid / 2, rel=0.02)

    def test_the_policys_own_bounds_do_not_count(self):
        held = a_plan(policy=a_policy(least=8, most=9))

        found, _ = least(held, [0.5 * 60] * 60, capacity=1.0)

        assert found is not None
        assert found.paid == pytest.approx(3600)

    def test_nothing_that_came_costs_the_one_that_must_stand(self):
        found, _ = least(a_plan(), [0.0] * 60, capacity=1.0)

        assert found is not None
        assert found.paid == pytest.approx(3600)
