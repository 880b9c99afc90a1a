"""Rules with a memory of days: SageServe-like, Crane-like, and the moving percentile."""

import dataclasses

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.crane import CraneForecast
from adapter.simulator.rivals.moving_p95 import MovingP95
from adapter.simulator.rivals.observation import RouterFacts
from adapter.simulator.rivals.pattern import DAY, SLOT, WEEK, Pattern
from adapter.simulator.rivals.port import Calibration, Ordered, Seat
from adapter.simulator.rivals.sageserve import SageServe
from tests.simulator.rivals.build import Play, pods, reached, running, seen, silent

SAGE = SageServe(requests_per_second=5.0)
HOUR = Seconds(3600.0)
CALIBRATION = Calibration(
    kv_tokens=1,
    prefill_tokens_per_second=1.0,
    requests_per_second=6.0,
    batched_tokens=1,
    sequences=1,
)


def a_pattern(*slots: float) -> Pattern:
    """Make a pattern whose past is ``slots``; the next one has just begun, with a 0."""
    pattern = Pattern()
    for slot, value in enumerate((*slots, 0.0)):
        pattern = pattern.plus(Timestamp(slot * SLOT), value)
    return pattern


# --- the pattern


def test_a_pattern_says_nothing_before_one_day():
    assert a_pattern(*[1.0] * (DAY - 1)).highest(HOUR) is None
    assert a_pattern(*[1.0] * DAY).highest(HOUR) == 1.0


def test_a_pattern_shows_yesterdays_next_hour():
    """A peak at slot 10 is within an hour (12 slots) of midnight, and not of half past one."""
    day = [1.0] * DAY
    day[10] = 9.0

    assert a_pattern(*day).highest(HOUR) == 9.0
    assert a_pattern(*day, *[1.0] * 11).highest(HOUR) == 1.0
    assert a_pattern(*day).highest(Seconds(9 * SLOT)) == 1.0


def test_a_horizon_longer_than_the_period_sees_all_of_it():
    day = [1.0] * DAY
    day[200] = 9.0

    assert a_pattern(*day).highest(Seconds(2 * DAY * SLOT)) == 9.0


def test_a_pattern_takes_the_week_when_it_told_the_last_day_better():
    """Sundays are quiet: after a second Sunday, Monday is forecast from Monday."""
    week = [*[9.0] * (6 * DAY), *[1.0] * DAY]

    assert a_pattern(*week, *week).highest(HOUR) == 9.0


def test_a_pattern_takes_the_day_when_weeks_differ():
    first, second = [9.0] * WEEK, [2.0] * WEEK

    assert a_pattern(*first, *second).highest(HOUR) == 2.0


def test_a_slot_is_the_mean_of_its_values_and_a_gap_repeats_it():
    pattern = Pattern()
    for at, value in ((0.0, 1.0), (100.0, 3.0), (3 * SLOT, 7.0)):
        pattern = pattern.plus(Timestamp(at), value)

    assert pattern.past == (2.0, 2.0, 2.0)


def test_a_pattern_keeps_two_weeks():
    assert len(a_pattern(*[1.0] * (3 * WEEK)).past) == 2 * WEEK


# --- SageServe


@pytest.mark.parametrize(("lock_out", "minutes"), [(155.0, 41), (65.0, 17)])
def test_sageserve_orders_four_to_twenty_one_lock_out_at_a_time(lock_out, minutes):
    """peers.md 4: 41 minutes with new machines, 17 from a warm pool."""
    rule = dataclasses.replace(SAGE, lock_out=Seconds(lock_out), interval=Seconds(5.0))

    def world(at, ready, ordered):
        return seen(*pods(*[(0.95, 0.0)] * ready), *silent(ordered - ready, ready=False), at=at)

    changes = Play(rule, world, first=4, load_time=240).until(3000)

    assert (reached(changes, 20) + lock_out) / 60 == pytest.approx(minutes, abs=1)


@pytest.mark.parametrize(
    ("usage", "budget", "count"),
    [
        (0.6, None, 5),
        (0.6, 4, 4),
        (0.6, 5, 5),
        (0.95, 4, 5),
        (0.2, None, 3),
        (0.2, 4, 4),
        (0.2, 3, 3),
        (0.4, None, 4),
        (0.4, 9, 5),
        (0.2, 9, 5),
        (0.4, 2, 4),
    ],
)
def test_sageserve_steps_within_its_budget(usage, budget, count):
    """Above the budget only over 0.9; below it up without a cause; never down through it."""
    assert SAGE.step(usage, 4, budget=budget) == count


def test_sageserve_budgets_from_yesterdays_hour():
    """30 requests/s came yesterday at this time, 5 a replica: up from 2 towards 6."""

    def world(at, ready, ordered):
        rate = 30.0 if at < 3600 else 5.0
        return seen(
            *pods(*[(0.4, 0.0)] * ready),
            at=at,
            router=RouterFacts(requests_per_second=rate),
        )

    changes = Play(SAGE, world, first=2, load_time=0).until(90_000, step=15.0)

    assert max(count for _, count in changes) == 6
    assert changes[0][0] >= 82_800


def test_sageserve_locks_itself_out_only_after_a_step():
    seat = Seat(SAGE, seen(*pods((0.4, 0.0))))

    story = [seen(*pods((usage, 0.0)), at=at) for at, usage in ((0.0, 0.4), (15.0, 0.9))]

    assert [seat.wish(one) for one in story] == [Ordered(1), Ordered(2)]


def test_sageserve_waits_without_data():
    observation = seen(*silent(3))

    assert Seat(SAGE, observation).wish(observation) == Ordered(3)


# --- Crane


def test_crane_publishes_the_real_metric_until_it_has_seen_a_day():
    observation = seen(*running(30.0, 30.0))

    wish = Seat(CraneForecast(), observation).wish(observation)

    assert [metric.value for metric in wish.metrics] == [60.0]


def test_crane_orders_yesterdays_next_hour():
    """At midnight, 100.9 in flight at 00:30 yesterday: truncated to 100, beside the real 40."""
    seat = Seat(CraneForecast(), seen(*running(40.0)))
    for slot in range(DAY + 1):
        load = 100.9 if slot == 6 else 40.0
        wish = seat.wish(seen(*running(load), at=slot * SLOT))

    assert [metric.value for metric in wish.metrics] == [40.0, 100.0]


def test_crane_takes_a_forecast_of_nothing_for_outdated():
    seat = Seat(CraneForecast(), seen(*running(0.0)))
    for slot in range(DAY + 1):
        wish = seat.wish(seen(*running(0.0), at=slot * SLOT))

    assert [metric.value for metric in wish.metrics] == [0.0]


def test_crane_in_a_gap_learns_nothing():
    seat = Seat(CraneForecast(), seen(*running(40.0)))
    for slot in range(DAY + 6):
        facts = silent(1) if 2 <= slot < 20 else running(40.0)
        wish = seat.wish(seen(*facts, at=slot * SLOT))

    assert wish.metrics[1].value == 40.0
    broken = seat.wish(seen(error="timeout", at=(DAY + 6) * SLOT))
    assert [metric.value for metric in broken.metrics] == [None, 40.0]


# --- the moving percentile


def test_moving_p95_leaves_out_the_highest_twentieth():
    """19 minutes at 6 requests/s and one at 60: the 19th of 20 counts, with 15 % on top."""
    rule = MovingP95.of(CALIBRATION)
    seat = Seat(rule, seen(*running(1.0)))
    for minute in range(20):
        rate = 60.0 if minute == 3 else 6.0
        router = RouterFacts(requests_per_second=rate)
        wish = seat.wish(seen(*running(1.0), at=60.0 * minute, router=router))

    assert wish == Ordered(2)


def test_moving_p95_stays_up_for_nearly_the_whole_window():
    rule = MovingP95(requests_per_second=6.0)

    def world(at, ready, ordered):
        rate = 60.0 if at < 600 else 6.0
        router = RouterFacts(requests_per_second=rate)
        return seen(*running(*[1.0] * ordered), at=at, router=router)

    changes = Play(rule, world, first=12, load_time=0).until(7200, step=60.0)

    assert changes == [(3960, 2)]


def test_moving_p95_without_data_changes_nothing():
    observation = seen(*running(1.0, 1.0))

    assert Seat(MovingP95(1.0), observation).wish(observation) == Ordered(2)
