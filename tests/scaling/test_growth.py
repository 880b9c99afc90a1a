"""Growth over one load time: causal, from the daily curve where it helps, bounded always."""

import math
import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from adapter.fleet.units import Seconds
from adapter.scaling.conformal import Lane, fresh, pinball, quantile_of, scored
from adapter.scaling.growth import (
    MOST_GROWTH,
    UNKNOWN_GROWTH,
    Learned,
    Pool,
    Series,
    forecast,
    rehearsed,
    steps_ahead,
)

WIDE = Seconds(1800.0)
"""Half an hour: 48 steps a day keep the tests quick."""

DAY = 48
FIRST = 48 * 20_000
"""Midnight of a Friday."""


def curve(days: int, *, surge: float = 2.0, noise: float = 0.02, seed: int = 1) -> list[float]:
    """Return days that double at eight in the morning and fall at eight in the evening."""
    chance = random.Random(seed)
    return [
        100.0 * (surge if 16 <= step % DAY < 40 else 1.0) * (1 + noise * chance.random())
        for step in range(days * DAY)
    ]


def series(values: list[float] | list[float | None], *, first: int = FIRST) -> Series:
    return Series(first, WIDE, values)


def told(
    values: list[float] | list[float | None],
    *,
    coverage: float = 0.99,
    ahead: int = 1,
    over: int = 3 * DAY,
) -> Learned:
    return rehearsed(series(values), ahead=ahead, coverage=coverage, over=over)


def test_growth_is_the_largest_of_what_comes_over_the_mean_of_the_last_ten_minutes() -> None:
    fine = Series(10, Seconds(300.0), [8.0, 12.0, 15.0, 30.0, 20.0])

    assert fine.ratio(11, 1) == 1.5
    assert fine.ratio(11, 3) == 3.0
    assert fine.ratio(12, 9) is None
    assert fine.base(10) is None
    assert fine.base(7) is None


def test_a_masked_step_makes_no_ratio() -> None:
    fine = Series(0, Seconds(300.0), [8.0, 12.0, None, 30.0, 0.0, 0.0, 1.0])

    assert fine.ratio(1, 1) is None
    assert fine.ratio(2, 1) is None
    assert fine.ratio(3, 1) is None
    assert fine.ratio(5, 1) is None


@pytest.mark.parametrize(
    ("lead", "steps"), [(0.0, 1), (240.0, 1), (300.0, 1), (301.0, 2), (600.0, 2)]
)
def test_a_lead_time_is_at_least_one_step(lead: float, steps: int) -> None:
    assert steps_ahead(Seconds(lead), Seconds(300.0)) == steps


def test_before_a_day_is_over_a_fixed_factor_is_said() -> None:
    learned = told(curve(1)[:-1])

    assert (learned.factor, learned.pool, learned.pending) == (UNKNOWN_GROWTH, None, ())


def test_on_the_first_days_any_time_speaks() -> None:
    assert told(curve(2)).pool is Pool.ANY_TIME


def test_the_morning_is_known_from_mornings_and_the_night_from_nights() -> None:
    """At eight the load doubles, at nine it stands."""
    whole = curve(9)

    before_eight = told(whole[: 8 * DAY + 16])
    at_nine = told(whole[: 8 * DAY + 20])

    assert before_eight.pool is Pool.TIME_OF_DAY
    assert 1.95 <= before_eight.factor <= 2.3
    assert at_nine.factor < 1.05
    assert at_nine.days == 8


def test_a_load_without_a_curve_is_left_to_any_time() -> None:
    chance = random.Random(3)
    walk = [100.0 * math.exp(chance.gauss(0, 0.2)) for _ in range(12 * DAY)]

    learned = told(walk, over=8 * DAY)

    flat = learned.lanes[Pool.ANY_TIME]
    assert learned.pool is Pool.ANY_TIME
    assert flat.missed <= 0.03


@pytest.mark.parametrize(("day", "grows"), [(15, False), (17, True)])
def test_a_saturday_is_like_weekends_and_a_monday_like_weekdays(day: int, *, grows: bool) -> None:
    """Weekends stand still: of 14 mornings before, 10 rise."""
    values = [
        100.0 * (2.0 if 16 <= step % DAY < 40 and (4 + step // DAY) % 7 < 5 else 1.0) + step % 3
        for step in range(day * DAY + 16)
    ]

    said = forecast(Learned(), series(values), ahead=1, coverage=0.9).pending[-1].said

    assert said[Pool.TIME_OF_DAY] == pytest.approx(2.0, rel=0.03)
    assert said[Pool.KIND_OF_DAY] == pytest.approx(2.0 if grows else 1.02, rel=0.03)


def test_a_day_of_23_hours_does_not_move_the_morning() -> None:
    """Clocks go forward in the night to 2026-03-29; people rise at eight by the wall clock."""
    zone = ZoneInfo("Europe/Berlin")
    first = int(datetime(2026, 3, 20, tzinfo=UTC).timestamp() // WIDE)
    values = [
        100.0 * (2.0 if 8 <= datetime.fromtimestamp(n * WIDE, zone).hour < 20 else 1.0)
        + 0.01 * (n % 5)
        for n in range(first, first + 11 * DAY)
    ]
    eight = int(datetime(2026, 3, 30, 8, 0, tzinfo=zone).timestamp() // WIDE) - first
    nine = eight + 2

    def said(at: int, where: object) -> float:
        return forecast(
            Learned(
                lanes={
                    Pool.ANY_TIME: Lane(0.9, loss=2.0, weight=1.0, judged=99),
                    Pool.TIME_OF_DAY: Lane(0.9, loss=1.0, weight=1.0, judged=99),
                },
                ahead=1,
                coverage=0.9,
            ),
            Series(first, WIDE, values[:at]),
            ahead=1,
            coverage=0.9,
            zone=where,  # type: ignore[arg-type]
        ).factor

    assert said(eight, zone) == pytest.approx(2.0, rel=0.01)
    assert said(nine, zone) < 1.01
    assert said(nine, UTC) == pytest.approx(2.0, rel=0.01)


def test_what_is_said_does_not_depend_on_what_comes_later() -> None:
    values = curve(9)
    part = told(values[: 8 * DAY])

    assert told([*values[: 8 * DAY]]) == part
    assert all(made.number + 1 > FIRST + 8 * DAY - 1 for made in part.pending)


def test_another_lead_time_begins_the_judgement_anew() -> None:
    learned = told(curve(9))

    again = forecast(learned, series(curve(9)), ahead=2, coverage=0.99)

    assert again.lanes == {}
    assert again.pool is Pool.ANY_TIME


def test_a_forecast_over_a_gap_is_not_judged() -> None:
    values = curve(3)
    learned = told(values)
    judged = learned.lanes[Pool.ANY_TIME].judged

    after = forecast(learned, series([*values, None]), ahead=1, coverage=0.99)

    assert after.lanes[Pool.ANY_TIME].judged == judged
    assert len(after.pending) == 1


def test_a_fleet_that_had_no_load_for_a_day_says_nothing_of_growth() -> None:
    learned = told([0.0] * (2 * DAY))

    assert (learned.pool, learned.factor) == (None, UNKNOWN_GROWTH)


def test_a_pool_that_has_not_proved_itself_is_not_asked() -> None:
    learned = told(curve(9), over=2)

    assert learned.pool is Pool.ANY_TIME


# --- what holds for every load

loads = st.lists(st.none() | st.integers(0, 500).map(float), min_size=2 * DAY, max_size=5 * DAY)
QUICK = settings(max_examples=25, deadline=None)


@QUICK
@given(loads, st.floats(0.5, 0.999), st.integers(1, 4))
def test_the_factor_is_never_below_one_nor_above_the_most(
    values: list[float | None], coverage: float, ahead: int
) -> None:
    learned = forecast(Learned(), series(values), ahead=ahead, coverage=coverage)

    assert 1.0 <= learned.factor <= MOST_GROWTH


@QUICK
@given(loads, st.floats(0.5, 0.99), st.floats(0.0, 0.009))
def test_more_coverage_never_asks_for_less(
    values: list[float | None], coverage: float, more: float
) -> None:
    less, much = (
        forecast(Learned(), series(values), ahead=1, coverage=asked).factor
        for asked in (coverage, coverage + more)
    )

    assert much >= less


@QUICK
@given(loads, st.sampled_from([0.25, 2.0, 1024.0]))
def test_growth_does_not_know_how_large_the_load_is(
    values: list[float | None], scale: float
) -> None:
    scaled = [None if value is None else scale * value for value in values]

    assert told(scaled, over=3) == told(values, over=3)


@QUICK
@given(st.integers(1, 8), st.lists(st.floats(1.0, 1e6), min_size=DAY, max_size=DAY))
def test_one_odd_day_moves_the_curve_by_no_more_than_ordinary_days_ever_grew(
    which: int, odd: list[float]
) -> None:
    values = curve(9)
    values[which * DAY : (which + 1) * DAY] = odd
    ordinary = curve(9)
    largest = max(series(ordinary).ratio(FIRST + n, 1) or 1.0 for n in range(1, 9 * DAY - 1))
    # The last steps are as ever: only the past is odd.
    learned = forecast(Learned(), series([*values, *curve(1)[:24]]), ahead=1, coverage=0.99)

    said = learned.pending[-1].said[Pool.TIME_OF_DAY]
    assert said <= max(largest, 1.05) * 1.05


# --- the quantile that learns


def test_a_miss_raises_the_quantile_and_a_hit_lowers_it_a_little() -> None:
    lane = Lane(0.98)

    missed = scored(lane, said=1.0, was=1.2, coverage=0.99, per_day=288)
    held = scored(lane, said=1.3, was=1.2, coverage=0.99, per_day=288)

    assert missed.quantile == pytest.approx(0.9998)
    assert held.quantile == pytest.approx(0.98 - 0.0002)
    assert (missed.misses, held.misses) == (1.0, 0.0)
    assert (missed.missed, held.missed) == (1.0, 0.0)


def test_a_long_calm_lowers_the_quantile_to_its_limit_only() -> None:
    lane = fresh(0.99)
    for _ in range(1000):
        lane = scored(lane, said=2.0, was=1.0, coverage=0.99, per_day=288)

    assert lane.quantile == pytest.approx(0.97)
    assert lane.mean_loss == pytest.approx(0.01)


def test_what_is_short_costs_more_than_what_is_spare() -> None:
    assert pinball(1.0, 1.5, coverage=0.99) == pytest.approx(0.495)
    assert pinball(1.5, 1.0, coverage=0.99) == pytest.approx(0.005)
    assert math.isinf(fresh(0.99).mean_loss)
    assert fresh(0.99).missed == 1.0


@pytest.mark.parametrize(
    ("quantile", "value"),
    [(0.0, 1.0), (0.5, 2.0), (0.75, 3.0), (0.76, 3.0), (1.0, 3.0), (1.05, 4.0), (1.1, 5.0)],
)
def test_the_rank_is_that_of_one_more_than_there_are(quantile: float, value: float) -> None:
    assert quantile_of([3.0, 1.0, 2.0], quantile) == pytest.approx(value)


def test_a_forecast_waits_until_all_of_its_future_has_come() -> None:
    learned = told(curve(3), ahead=3, over=DAY)

    assert [made.number - series(curve(3)).last for made in learned.pending] == [-2, -1, 0]
    assert learned.lanes[Pool.ANY_TIME].judged == DAY - 3


def asked(lane: Lane, *, coverage: float = 0.99) -> Pool | None:
    """Return who is asked when the curve has done as ``lane``, and any time somewhat worse."""
    flat = Lane(0.99, loss=2.0, weight=1.0, judged=99)
    before = Learned(
        lanes={Pool.ANY_TIME: flat, Pool.TIME_OF_DAY: lane}, ahead=1, coverage=coverage
    )
    return forecast(before, series(curve(9)), ahead=1, coverage=coverage).pool


@pytest.mark.parametrize(
    ("loss", "misses", "judged", "pool"),
    [
        (1.0, 0.02, DAY, Pool.TIME_OF_DAY),
        (2.5, 0.02, DAY, Pool.ANY_TIME),
        (1.0, 0.02, DAY - 1, Pool.ANY_TIME),
        (1.0, 0.03, DAY, Pool.ANY_TIME),
    ],
)
def test_the_curve_is_asked_only_while_it_is_cheaper_tried_and_seldom_short(
    loss: float, misses: float, judged: int, pool: Pool
) -> None:
    lane = Lane(0.99, loss=loss, weight=1.0, misses=misses, judged=judged)

    assert asked(lane) is pool


def test_what_was_learned_survives_json() -> None:
    adapter = TypeAdapter(Learned)
    learned = told(curve(5))

    assert adapter.validate_json(adapter.dump_json(learned)) == learned
