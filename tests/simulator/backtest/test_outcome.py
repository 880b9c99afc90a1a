"""What is made of a run: turns, maxima, hours, ten minutes, and what must be said of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.units import Seconds
from adapter.scaling.decision import Census, Decision
from adapter.scaling.demand import Demand
from adapter.scaling.spec import Mode
from adapter.simulator.backtest.load import COUNTERFACTUAL, THINNED, of_bins
from adapter.simulator.backtest.outcome import demand_of
from adapter.simulator.score import TTFT
from tests.build import T0
from tests.simulator.backtest.outcomes import (
    a_backtest,
    a_bound,
    a_moment,
    a_score,
    a_window,
    asked,
)
from tests.simulator.backtest.plans import a_bin, a_load, a_plan
from tests.simulator.worlds import a_policy


class TestPlan:
    @pytest.mark.parametrize("mode", ["active", "advisory", "off"])
    def test_whatever_its_mode_it_is_played_as_active(self, mode):
        plan = a_plan(policy=a_policy(mode=mode))

        assert plan.active.spec.mode is Mode.ACTIVE
        assert plan.policy.spec.mode == mode, "the plan itself keeps what the file says"
        assert plan.active.spec.replicas == plan.policy.spec.replicas

    def test_the_promise_is_the_policys_own(self):
        strict = a_policy(signals={"ttft": {"objective": "750ms"}})

        assert a_plan(policy=strict).objective.ttft == 0.75

    def test_without_one_it_is_the_usual(self):
        assert a_plan(policy=a_policy(signals={"ttft": None})).objective.ttft == TTFT

    def test_judging_begins_after_the_warm_up(self):
        plan = a_plan(a_load(length=3600.0), warm_up=Seconds(600.0))

        assert plan.judged_from == T0 + 600
        assert plan.end == T0 + 3600


class TestTurns:
    def test_a_count_that_only_rises_never_turns(self):
        assert a_backtest(asked=asked(1, 2, 5, 9)).flips == 0

    def test_each_turn_counts_once(self):
        found = a_backtest(asked=asked(3, 5, 4, 3, 6, 2))

        assert found.changes == (2, -1, -1, 3, -4)
        assert found.flips == 3

    def test_what_was_before_judging_does_not_count(self):
        plan = a_plan(a_load(length=3600.0), warm_up=Seconds(1000.0))

        found = a_backtest(plan=plan, asked=asked(1, 9, 1, 9, 2, 3, 4))

        assert found.changes == (-7, 1, 1)
        assert found.flips == 1

    def test_a_count_that_never_changed_has_no_turns(self):
        assert a_backtest(asked=asked(4)).flips == 0

    @given(st.lists(st.integers(1, 20), min_size=1, max_size=30))
    def test_there_are_never_more_turns_than_changes(self, counts):
        distinct = [counts[0], *(b for a, b in pairwise(counts) if a != b)]

        found = a_backtest(asked=asked(*distinct))

        assert 0 <= found.flips <= max(0, len(found.changes) - 1)
        assert sum(found.changes) == distinct[-1] - distinct[0]


class TestMost:
    def test_it_is_the_most_that_was_asked_for(self):
        assert a_backtest(asked=asked(2, 7, 3)).most == 7

    def test_what_stood_when_judging_began_counts(self):
        plan = a_plan(a_load(length=3600.0), warm_up=Seconds(900.0))

        assert a_backtest(plan=plan, asked=asked(2, 8, 6, 4, every=400.0)).most == 6
        assert a_backtest(plan=plan, asked=asked(2, 8, every=400.0)).most == 8

    def test_the_time_at_the_maximum_is_told(self):
        moments = [a_moment(60 * n, desired=10 if n < 15 else 3) for n in range(60)]

        assert a_backtest(moments=tuple(moments)).at_most == 0.25

    def test_without_a_moment_it_was_never_there(self):
        assert a_backtest(moments=()).at_most == 0


class TestBound:
    def test_the_ratio_is_what_was_paid_over_it(self):
        found = a_backtest(bound=a_bound(hours=8.0))

        assert (found.bound_hours, found.ratio) == (8.0, 1.5)

    @pytest.mark.parametrize("bound", [None, a_bound(hours=0.0)])
    def test_without_one_there_is_no_ratio_and_no_zero(self, bound):
        assert a_backtest(bound=bound).ratio is None


class TestHours:
    def test_windows_are_summed_by_hours_of_the_clock(self):
        """T0 is on the hour; the second hour has two windows."""
        assert T0 % 3600 == 0
        windows = [a_window(0, 100, 90), a_window(3000, 50, 50), a_window(3600, 10, 9),
                   a_window(6600, 20, 0)]  # fmt: skip

        hours = a_backtest(score=a_score(windows)).hours

        assert [(h.begin - T0, h.requests, h.missed) for h in hours] == [
            (0, 150, 10),
            (3600, 30, 21),
        ]

    @given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), max_size=40))
    def test_no_request_is_lost_between_windows_and_hours(self, told):
        windows = [
            a_window(600 * n, count, int(count * good)) for n, (count, good) in enumerate(told)
        ]

        hours = a_backtest(score=a_score(windows)).hours

        assert sum(hour.requests for hour in hours) == sum(w.requests for w in windows)
        assert sum(hour.missed for hour in hours) == sum(w.requests - w.in_time for w in windows)


class TestTenMinutes:
    def test_counts_are_the_most_and_those_that_serve_the_fewest(self):
        moments = (
            a_moment(0),
            a_moment(60, desired=5, serving=1, loading=4, demand=4.2, in_flight=90.0),
            a_moment(600, desired=3, serving=3, demand=None),
            a_moment(660, desired=9, serving=8, demand=None),
        )

        first, second = a_backtest(moments=moments).stretches

        assert (first.desired, first.serving, first.loading) == (5, 1, 4)
        assert (first.demand, first.in_flight) == (4.2, 90.0)
        assert (second.desired, second.serving, second.demand) == (9, 8, None)

    def test_what_stands_at_an_end_belongs_to_what_came_before(self):
        stretches = a_backtest().stretches

        assert [s.begin - T0 for s in stretches] == [600 * n for n in range(6)]

    def test_the_bills_add_up(self):
        found = a_backtest()

        assert sum(s.paid_hours for s in found.stretches) == pytest.approx(
            found.moments[-1].paid_hours
        )

    def test_requests_are_those_of_the_window_or_none(self):
        found = a_backtest(score=a_score([a_window(600, 70, 60)]))

        assert [(s.requests, s.missed) for s in found.stretches[:3]] == [(0, 0), (70, 10), (0, 0)]

    def test_the_plan_behind_the_bound_is_told_in_its_own_slots(self):
        plan = tuple(range(1, 61))
        narrow = a_backtest(bound=a_bound(*plan), slot=Seconds(60.0))
        wide = a_backtest(bound=a_bound(3, 5, 7, 2, 4, 6), slot=Seconds(900.0))

        assert [s.planned for s in narrow.stretches] == [10, 20, 30, 40, 50, 60]
        assert [s.planned for s in wide.stretches] == [3, 3, 5, 7, 7, 2]

    def test_beyond_the_plan_or_without_one_nothing_is_told(self):
        assert a_backtest(bound=None).stretches[0].planned is None
        assert a_backtest(bound=a_bound(4)).stretches[-1].planned is None

    def test_a_gap_marks_every_ten_minutes_that_it_touches(self):
        load = of_bins("h", [a_bin(0), a_bin(300), a_bin(900), a_bin(1200, seconds=2400)])

        found = a_backtest(plan=a_plan(load))

        assert [s.gap for s in found.stretches] == [False, True, False, False, False, False]


class TestNotes:
    def test_the_first_is_always_that_queues_are_counterfactual(self):
        assert a_backtest().notes == (COUNTERFACTUAL,)

    def test_what_a_load_says_of_itself_follows(self):
        plan = a_plan(a_load(length=3600.0, remarks=("Digitised.",)))

        assert a_backtest(plan=plan).notes[1] == "Digitised."

    @pytest.mark.parametrize(("scale", "said"), [(0.5, True), (1.0, False), (2.0, False)])
    def test_only_a_thinned_load_is_told_as_one(self, scale, said):
        found = a_backtest(plan=a_plan(a_load(length=3600.0), scale=scale))

        assert (THINNED in found.notes) is said

    @pytest.mark.parametrize("mode", ["advisory", "off"])
    def test_a_policy_that_would_move_nothing_is_told(self, mode):
        found = a_backtest(plan=a_plan(policy=a_policy(mode=mode)))

        assert f"The policy's mode is {mode}: played as if active." in found.notes

    def test_gaps_are_counted(self):
        one = of_bins("h", [a_bin(0), a_bin(900)])
        two = of_bins("h", [a_bin(0), a_bin(900), a_bin(2400)])

        said = [" ".join(a_backtest(plan=a_plan(load)).notes) for load in (one, two)]

        assert "A gap in the history, 0.2 h in all" in said[0]
        assert "2 gaps in the history, 0.5 h in all" in said[1]

    def test_a_fluid_says_that_it_is_one(self):
        assert any("approximated" in note for note in a_backtest(mode="fluid").notes)
        assert not any("approximated" in note for note in a_backtest().notes)


class TestDemand:
    def test_the_largest_one_counts(self):
        demands = (Demand("queue", 2.5, "x"), Demand("ttft", 3.5, "y"), Demand("kvCache", None, ""))

        assert demand_of(a_decision(demands)) == 3.5

    def test_where_nobody_can_tell_there_is_none_and_no_zero(self):
        assert demand_of(a_decision((Demand("queue", None, "silent"),))) is None
        assert demand_of(a_decision(())) is None


def a_decision(demands: tuple[Demand, ...]) -> Decision:
    return Decision(
        at=T0,
        desired=2,
        published=2,
        refusal=None,
        valid_until=T0,
        demands=demands,
        steps=(),
        holds=(),
        conditions=(),
        census=Census(),
        standby=0,
        lead_time=Seconds(60.0),
    )
