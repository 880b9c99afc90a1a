"""Cumulative buckets: adding, subtracting, quantiles."""

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.histogram import Histogram, together

INF = math.inf


def test_equal_layouts_add_up_bucket_by_bucket():
    both = Histogram((1.0, INF), (1, 2), 3.0).plus(Histogram((1.0, INF), (4, 5), 6.0))

    assert both == Histogram((1.0, INF), (5, 7), 9.0)


def test_different_layouts_add_up_exactly_in_the_bounds_they_share():
    """Two releases of vLLM end at 10 s and at 2560 s: within 10 s, 3 + 4 of 9."""
    older = Histogram((7.5, 10.0, INF), (2, 3, 4), 0.0)
    newer = Histogram((5.0, 10.0, 2560.0, INF), (1, 4, 5, 5), 0.0)

    assert older.plus(newer) == newer.plus(older) == Histogram((10.0, INF), (7, 9), 0.0)


def test_together_is_the_sum_and_nothing_of_nothing():
    one = Histogram((1.0, INF), (1, 2), 3.0)

    assert together([]) is None
    assert together([one]) == one
    assert together([one, one]) == Histogram((1.0, INF), (2, 4), 6.0)


def test_the_difference_is_what_was_observed_in_between():
    later, earlier = Histogram((1.0, INF), (5, 9), 8.0), Histogram((1.0, INF), (2, 3), 5.0)

    assert later.minus(earlier) == Histogram((1.0, INF), (3, 6), 3.0)


def test_a_fallen_bucket_or_another_layout_has_no_difference():
    one = Histogram((1.0, INF), (2, 3), 5.0)

    assert Histogram((1.0, INF), (1, 9), 5.0).minus(one) is None
    assert Histogram((2.0, INF), (5, 9), 8.0).minus(one) is None


def test_a_sum_that_falls_while_the_counts_rise_is_held_at_nothing():
    """vllm#8115: with 8192 clients the sum drops to 8.29 s while the count goes on."""
    later, earlier = Histogram((1.0, INF), (5, 9), 8.29), Histogram((1.0, INF), (2, 3), 900.0)

    window = later.minus(earlier)

    assert window is not None
    assert (window.count, window.sum_seconds) == (6, 0.0)


@pytest.mark.parametrize(
    ("q", "seconds"), [(0.0, 0.0), (0.25, 0.5), (0.5, 1.0), (0.75, 2.0), (0.8, INF), (1.0, INF)]
)
def test_quantiles_are_linear_inside_a_bucket_and_infinite_beyond_the_last(
    q: float, seconds: float
):
    """8 observations: 4 within 1 s, 2 within 2 s, 2 somewhere above."""
    histogram = Histogram((1.0, 2.0, INF), (4, 6, 8), 0.0)

    assert histogram.quantile(q) == seconds


def test_nothing_observed_has_no_quantile():
    assert Histogram((1.0, INF), (0, 0), 0.0).quantile(0.5) is None
    assert Histogram((), (), 0.0).quantile(0.5) is None


def test_everything_in_the_smallest_bucket_stays_in_it():
    """vllm#6337: 208 observations, all within 1 ms."""
    histogram = Histogram((0.001, 0.005, INF), (208, 208, 208), 0.0)

    assert histogram.quantile(0.95) == pytest.approx(0.00095)


def test_a_rank_between_counts_that_rounding_lost_is_still_found():
    """A count that never reaches the rank by a rounding error reads as beyond, not as small."""
    histogram = Histogram((1.0, INF), (0.1 + 0.2, 0.1 + 0.2), 0.0)

    assert histogram.quantile(1.0000001) == INF


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    bounds = sorted(draw(st.sets(st.floats(0.001, 100.0), min_size=1, max_size=6)))
    steps = draw(st.lists(st.integers(0, 9), min_size=len(bounds) + 1, max_size=len(bounds) + 1))
    return Histogram((*bounds, INF), tuple(map(float, itertools.accumulate(steps))), 0.0)


@given(histograms(), histograms())
@settings(max_examples=200, deadline=None)
def test_adding_loses_no_observation_and_subtracting_gives_it_back(
    one: Histogram, other: Histogram
):
    both = one.plus(other)

    assert both.count == one.count + other.count
    assert list(both.counts) == sorted(both.counts)
    if one.bounds == other.bounds:
        assert both.minus(other) == one


@given(histograms(), st.floats(0, 1), st.floats(0, 1))
@settings(max_examples=200, deadline=None)
def test_a_higher_quantile_is_never_a_shorter_time(histogram: Histogram, a: float, b: float):
    low, high = histogram.quantile(min(a, b)), histogram.quantile(max(a, b))

    assert (low is None) == (high is None) == (histogram.count == 0)
    assert low is None or high is None or low <= high
