"""Axes: every value has a place, ticks are round, and none lies outside."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.simulator.report.scale import Axis, Kind, Scale, number

MONDAY = 1_715_558_400.0
"""2024-05-13 00:00 UTC."""

finite = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)


def texts(scale: Scale) -> list[str]:
    return [tick.text for tick in scale.ticks]


class TestNumbers:
    def test_ticks_are_round_and_reach_the_ends(self):
        scale = Scale.of(Axis("replicas", least=0), [1.0, 7.3])

        assert texts(scale) == ["0", "1", "2", "3", "4", "5", "6", "7", "8"]
        assert (scale.ticks[0].place, scale.ticks[-1].place) == (0.0, 1.0)

    def test_a_unit_follows_each_number(self):
        assert texts(Scale.of(Axis("in time", unit="%", most=100), [99.0, 100.0]))[-1] == "100%"

    @pytest.mark.parametrize("values", [[], [3.0], [math.nan, math.inf]])
    def test_without_a_span_there_is_an_axis_all_the_same(self, values):
        scale = Scale.of(Axis("anything"), values)

        assert scale.most > scale.least
        assert len(scale.ticks) >= 2

    def test_what_lies_beyond_a_given_end_is_put_at_it(self):
        scale = Scale.of(Axis("in time", least=90, most=100), [50.0, 99.0])

        assert (scale.place(50.0), scale.place(95.0), scale.place(101.0)) == (0.0, 0.5, 1.0)

    @given(st.lists(finite, min_size=1))
    def test_every_value_is_inside_and_ticks_are_few_and_rise(self, values):
        scale = Scale.of(Axis("x"), values)

        places = [tick.place for tick in scale.ticks]
        assert scale.least <= min(values)
        assert max(values) <= scale.most
        assert 1 <= len(places) <= 12
        assert places == sorted(places)


class TestPowers:
    def test_a_narrow_span_has_ticks_between_the_powers(self):
        assert texts(Scale.of(Axis("ratio", Kind.LOG), [1.3, 4.2])) == [
            "1.2",
            "1.5",
            "2",
            "2.5",
            "3",
            "4",
            "5",
        ]

    def test_a_wide_span_has_the_powers_alone(self):
        assert texts(Scale.of(Axis("s", Kind.LOG), [1e-3, 1e6])) == [
            "0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000", "100,000", "1,000,000",
        ]  # fmt: skip

    def test_twice_as_much_is_always_as_far(self):
        scale = Scale.of(Axis("s", Kind.LOG), [1.0, 8.0])

        assert scale.place(4.0) - scale.place(2.0) == pytest.approx(
            scale.place(2.0) - scale.place(1.0)
        )

    def test_what_has_no_logarithm_is_left_out_and_put_at_the_begin(self):
        scale = Scale.of(Axis("s", Kind.LOG), [0.0, -2.0, 2.0, 4.0])

        assert scale.least == 2.0
        assert scale.place(0.0) == 0.0

    @given(st.lists(st.floats(min_value=1e-6, max_value=1e9), min_size=1))
    def test_every_value_is_inside(self, values):
        scale = Scale.of(Axis("s", Kind.LOG), values)

        assert scale.least <= min(values) * (1 + 1e-6)
        assert max(values) <= scale.most * (1 + 1e-6)
        assert all(0 <= tick.place <= 1 for tick in scale.ticks)


class TestTimes:
    def test_a_week_is_written_in_days(self):
        scale = Scale.of(Axis("time", Kind.TIME), [MONDAY, MONDAY + 7 * 86_400])

        assert texts(scale)[0] == "Mon 13 May"
        assert len(scale.ticks) == 8

    def test_a_day_is_written_in_hours_and_its_midnights_by_name(self):
        scale = Scale.of(Axis("time", Kind.TIME), [MONDAY, MONDAY + 86_400])

        assert texts(scale)[:3] == ["Mon 13 May", "03:00", "06:00"][: len(texts(scale))]
        assert texts(scale)[-1] == "Tue 14 May"

    def test_every_other_one_may_be_left_out_where_it_is_narrow(self):
        scale = Scale.of(Axis("time", Kind.TIME), [MONDAY, MONDAY + 3600])

        assert [tick.minor for tick in scale.ticks[:4]] == [False, True, False, True]

    def test_a_value_is_told_with_its_day(self):
        assert Axis("time", Kind.TIME).text(MONDAY + 3660) == "Mon 13 May 01:01"

    @given(st.floats(min_value=1.0, max_value=3e7))
    def test_there_are_never_more_labels_than_find_room(self, span):
        scale = Scale.of(Axis("time", Kind.TIME), [MONDAY, MONDAY + span])

        assert len(scale.ticks) <= 9


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1.5, "1.5"), (99.41234, "99.41"), (12345.6, "12,346"), (math.nan, "-")],
)
def test_numbers_are_written_for_people(value, text):
    assert number(value) == text
