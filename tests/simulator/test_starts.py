from statistics import fmean, median

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.starts import LoadTimes


def test_the_same_seed_gives_the_same_load_times():
    one, other = LoadTimes(Seconds(75.0), seed=4), LoadTimes(Seconds(75.0), seed=4)

    assert [one.draw() for _ in range(20)] == [other.draw() for _ in range(20)]


def test_load_times_scatter_around_their_mean_with_stragglers():
    """10,000 starts of 75 s: mean 75 x (1 + 2 % stragglers at double), some beyond 130 s."""
    times = LoadTimes(Seconds(75.0), seed=4)

    drawn = [times.draw() for _ in range(10_000)]

    assert fmean(drawn) == pytest.approx(75.0 * 1.02, rel=0.01)
    assert median(drawn) == pytest.approx(74.4, rel=0.01)
    assert 0.01 < sum(seconds > 130 for seconds in drawn) / len(drawn) < 0.03
    assert min(drawn) > 30
