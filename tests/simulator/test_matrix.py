"""A cell of the scaling benchmark: fair, repeatable, and never below the bound."""

from dataclasses import replace

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator import rivals
from adapter.simulator.ablations import ABLATIONS, OURS
from adapter.simulator.matrix import (
    GRID,
    TUNED,
    Cell,
    Course,
    Outcome,
    _track,
    before,
    cheapest_good,
    policies,
    run,
    tuned_target,
)
from adapter.simulator.presets import preset
from adapter.simulator.saturation import calibrate
from adapter.simulator.stretches import QUICK, Hours
from adapter.simulator.synthetic import LLMD_DECK
from adapter.simulator.traces import TraceError

RAMP = Course(
    trace="llmd-ramp",
    engine="llama-3.1-70b-4xh100",
    load_time=Seconds(60.0),
    fleet=1,
    seed=1,
    hours=QUICK["llmd-ramp"],
)
"""Some 2,000 requests in 40 minutes: a fraction of a second."""

MORNING = replace(
    RAMP, trace="office-week", fleet=2, hours=Hours(since=33.0, warm_up=0.05, judged=0.25)
)


def an_outcome(**more: object) -> Outcome:
    given = {
        "attainment": 1.0,
        "paid_hours": 12.0,
        "bound_hours": 10.0,
        "worst_window": 0.95,
        "starts": 3,
        "ttft_p99": Seconds(0.8),
    }
    return Outcome(**{**given, **more})


def test_every_policy_has_a_name_of_its_own_and_ours_is_the_first():
    names = policies()

    assert names[0] == OURS == "leadtime"
    assert len(names) == len(set(names))
    assert {"static-best", "static-p100", "hpa-in-flight", "keda-waiting", "wva-v2"} < set(names)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [name for name in policies() if name != TUNED])
def test_every_policy_can_be_played_and_none_beats_the_bound(policy):
    outcome = run(Cell(MORNING, policy))

    assert 0 <= outcome.attainment <= 1
    assert outcome.paid_hours > 0
    assert not outcome.impossible


def test_the_same_cell_is_the_same_to_the_last_bit_whatever_was_played_between():
    first = run(Cell(RAMP, "leadtime"))

    run(Cell(replace(RAMP, seed=2), "static-p100"))

    assert run(Cell(RAMP, "leadtime")) == first


def test_another_seed_is_another_run_with_another_bound():
    one, two = (run(Cell(replace(MORNING, seed=seed), "static-p100")) for seed in (1, 2))

    assert one.bound_hours != two.bound_hours
    assert one.ttft_p99 != two.ttft_p99


def test_all_policies_of_a_course_share_its_bound():
    bounds = {run(Cell(RAMP, name)).bound_hours for name in ("leadtime", "static-p100", "kthena")}

    assert len(bounds) == 1


def test_the_best_constant_meets_the_objective_and_costs_no_more_than_the_largest():
    best, most = (run(Cell(RAMP, f"static-{which}")) for which in ("best", "p100"))

    assert best.good
    assert best.paid_hours <= most.paid_hours
    assert best.starts == most.starts == 0


def test_the_best_constant_is_sought_upwards_from_the_fluid_answer():
    """A 4x crowd of chat at fleet 1: one replica is enough in fluid terms and not in time."""
    crowd = replace(RAMP, trace="flash-crowd", hours=Hours(since=33.95, warm_up=0.02, judged=0.12))

    best = run(Cell(crowd, "static-best"))

    assert best.good
    assert best.paid_hours == pytest.approx(2 * 0.12)


def test_constants_pay_for_the_judged_hours_only():
    """0.25 h of 0.30 h are judged."""
    paid = run(Cell(MORNING, "static-p100")).paid_hours

    assert (paid / 0.25) == pytest.approx(round(paid / 0.25))


def test_a_longer_load_costs_the_clairvoyant_no_less():
    quick, slow = (
        run(Cell(replace(RAMP, load_time=Seconds(load)), "static-p100")).bound_hours
        for load in (20.0, 600.0)
    )

    assert quick <= slow


def test_a_larger_fleet_gets_more_load():
    small, large = (run(Cell(replace(RAMP, fleet=n), "static-p100")).bound_hours for n in (1, 9))

    assert large > 4 * small


def test_prompts_that_double_double_the_bound():
    """The hour before the release against the hour after it, at the same scale."""
    earlier = Hours(since=58.0, warm_up=0.05, judged=0.2)
    later = Hours(since=59.0, warm_up=0.05, judged=0.2)
    course = replace(RAMP, trace="longer-prompts", fleet=3)

    hours = [
        run(Cell(replace(course, hours=part), "static-p100")).bound_hours
        for part in (earlier, replace(later, since=58.94))
    ]

    assert hours[1] > 1.5 * hours[0]


@pytest.mark.parametrize(
    ("attainment", "paid", "impossible"),
    [(0.99, 9.99, True), (0.9899, 9.99, False), (0.99, 10.0, False), (1.0, 11.0, False)],
)
def test_only_who_meets_the_objective_below_the_bound_is_impossible(attainment, paid, impossible):
    outcome = an_outcome(attainment=attainment, paid_hours=paid, bound_hours=10.0)

    assert outcome.impossible is impossible


def test_the_ratio_is_what_was_paid_of_the_bound():
    assert an_outcome(paid_hours=14.0, bound_hours=10.0).ratio == pytest.approx(1.4)


class TestTuned:
    @pytest.mark.parametrize(
        ("trials", "chosen"),
        [
            ({5.0: (1.0, 9.0), 12.0: (0.995, 7.0), 20.0: (0.98, 5.0)}, 12.0),
            ({5.0: (1.0, 9.0), 12.0: (0.99, 9.5)}, 5.0),
            ({5.0: (1.0, 9.0), 12.0: (1.0, 9.0)}, 5.0),
            ({12.0: (0.9, 5.0), 5.0: (0.98, 9.0), 20.0: (0.985, 4.0)}, 5.0),
        ],
        ids=["cheap but late", "higher and dearer", "as cheap", "none met it"],
    )
    def test_the_target_is_the_cheapest_that_met_the_objective(self, trials, chosen):
        whole = _track(RAMP).rehearse(5.0)

        scores = {
            target: replace(whole, requests=1000, in_time=round(1000 * share), paid_hours=paid)
            for target, (share, paid) in trials.items()
        }

        assert cheapest_good(scores) == chosen

    def test_it_is_chosen_by_playing_the_time_before(self):
        """The ramp's first three minutes: 20 in flight need no more replicas than 30."""
        slow = replace(RAMP, fleet=3)

        scores = [_track(slow).rehearse(target) for target in GRID]

        assert {score.seconds for score in scores} == {0.05 * 3600.0}
        assert scores[0].paid_hours > scores[-2].paid_hours == scores[-1].paid_hours
        assert tuned_target(slow) == 20.0

    @pytest.mark.parametrize(
        ("hours", "tuned_on"),
        [
            (Hours(since=18.0, warm_up=6.0, judged=24.0), Hours(18.0, 0.0, 6.0)),
            (Hours(since=31.75, warm_up=0.25, judged=1.0), Hours(31.0, 0.0, 1.0)),
            (Hours(since=0.0, warm_up=0.05, judged=0.6), Hours(0.0, 0.0, 0.05)),
        ],
    )
    def test_nothing_that_is_judged_is_seen(self, hours, tuned_on):
        """The warm-up; an hour where it is shorter; what there is where the load begins."""
        assert before(hours) == tuned_on

    def test_it_plays_as_the_untuned_one_with_that_target(self):
        tuned = run(Cell(RAMP, TUNED))

        plain = run(Cell(RAMP, "hpa-in-flight"))

        assert tuned.tuned_to in GRID
        assert (tuned.tuned_to == 20.0) == (replace(tuned, tuned_to=None) == plain)


def test_ablations_are_known_and_not_played_unasked():
    assert not set(ABLATIONS) & set(policies())
    assert run(Cell(RAMP, "leadtime-delay-300s")) != run(Cell(RAMP, "leadtime"))


@pytest.mark.parametrize("policy", ["leadtime", "static-best", "static-p100"])
def test_a_fault_changes_the_run_and_not_the_bound(policy):
    whole, hurt = (run(Cell(RAMP, policy, fault)) for fault in (None, "replica-dies"))

    assert hurt.attainment < whole.attainment
    assert hurt.bound_hours == whole.bound_hours


def test_a_constant_in_hindsight_knows_of_no_fault():
    """With prompts that double it would have to be larger; it pays what it paid without."""
    whole, hurt = (run(Cell(RAMP, "static-best", fault)) for fault in (None, "prompts-double"))

    assert hurt.paid_hours == whole.paid_hours
    assert not hurt.good


def test_unknown_names_are_refused_with_those_that_there_are():
    with pytest.raises(KeyError, match=r"no policy 'magic'.*leadtime"):
        run(Cell(RAMP, "magic"))
    with pytest.raises(KeyError, match="gremlins"):
        run(Cell(RAMP, "leadtime", "gremlins"))
    with pytest.raises(KeyError, match="no engine preset 'abacus'"):
        run(Cell(replace(RAMP, engine="abacus"), "leadtime"))
    with pytest.raises(TraceError, match="no trace 'dreams'"):
        run(Cell(replace(RAMP, trace="dreams"), "leadtime"))


def test_every_deployable_rival_is_in_the_matrix():
    """Those of hindsight are there as constants; the oracle needs no rank."""
    calibration = calibrate(preset(RAMP.engine), LLMD_DECK)

    assert {rule.name for rule in rivals.rivals(calibration)} < set(policies())
