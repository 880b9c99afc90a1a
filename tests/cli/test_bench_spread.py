"""Intervals: they hold the mean, shrink with agreement, and are the same every time."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cli.benchmarks.spread import spread


@given(st.lists(st.floats(min_value=0.0, max_value=1e6), min_size=1, max_size=8))
def test_the_interval_lies_within_the_values_and_holds_no_nonsense(values):
    found = spread(values)

    slack = 1e-9 * max(values)
    assert min(values) - slack <= found.low <= found.high <= max(values) + slack
    assert found.mean == pytest.approx(math.fsum(values) / len(values))


def test_values_that_agree_leave_no_doubt():
    found = spread([0.5, 0.5, 0.5])

    assert (found.mean, found.low, found.high) == (0.5, 0.5, 0.5)


def test_one_value_has_no_interval_but_itself():
    found = spread([1.25])

    assert (found.low, found.high) == (1.25, 1.25)


def test_it_is_as_wide_as_the_law_of_large_numbers_says():
    """Half zeros and half ones, a hundred of them: 0.5 give or take 1.96 x 0.05."""
    found = spread([0.0, 1.0] * 50)

    assert found.low == pytest.approx(0.402, abs=0.02)
    assert found.high == pytest.approx(0.598, abs=0.02)


def test_it_is_the_same_every_time():
    assert spread([1.0, 2.0, 4.0]) == spread([1.0, 2.0, 4.0])
