import itertools
from statistics import fmean

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.workload import MORNING, Workload

AN_HOUR = Seconds(3600.0)


def test_the_same_seed_gives_the_same_arrivals():
    once, again = (list(Workload(AN_HOUR, seed=7).arrivals()) for _ in range(2))
    other = list(Workload(AN_HOUR, seed=8).arrivals())

    assert once == again
    assert once != other


def test_arrivals_come_in_order_and_inside_the_length():
    arrivals = list(Workload(Seconds(430.0), seed=1).arrivals())

    assert all(a.after < b.after for a, b in itertools.pairwise(arrivals))
    assert arrivals[0].after >= 0
    assert arrivals[-1].after < 430.0


@pytest.mark.parametrize(("share", "rate"), [(0.0, 6.0), (0.25, 18.0), (0.60, 40.0), (1.0, 8.0)])
def test_the_curve_is_linear_between_its_points(share, rate):
    """At a quarter the ramp from 6/s (at 8 %) to 30/s (at 42 %) is half done: 18/s."""
    assert Workload(AN_HOUR, seed=1).rate(share * AN_HOUR) == pytest.approx(rate)


def test_after_the_end_the_last_rate_stays():
    assert Workload(AN_HOUR, seed=1).rate(2 * AN_HOUR) == MORNING[-1][1]


def test_the_arrivals_follow_the_curve():
    """Flat at 20/s over an hour: 72,000 requests within 3 % (noise 7 % a minute, 60 minutes)."""
    flat = Workload(AN_HOUR, seed=3, curve=((0.0, 20.0), (1.0, 20.0)))

    assert len(list(flat.arrivals())) == pytest.approx(72_000, rel=0.03)


def test_a_peak_inside_a_minute_is_not_cut_off():
    """0/s, 100/s, 0/s within one minute: half of 100/s times 60 s arrive, not nearly none."""
    spike = Workload(Seconds(60.0), seed=5, curve=((0.0, 0.0), (0.5, 100.0), (1.0, 0.0)))

    assert len(list(spike.arrivals())) == pytest.approx(3000, rel=0.15)


def test_a_silent_minute_is_silent():
    silent = Workload(Seconds(120.0), seed=5, curve=((0.0, 0.0), (1.0, 0.0)))

    assert list(silent.arrivals()) == []


def test_token_counts_stay_inside_their_limits():
    arrivals = list(Workload(AN_HOUR, seed=2).arrivals())

    assert all(1 <= arrival.prompt_tokens <= 8000 for arrival in arrivals)
    assert all(1 <= arrival.output_tokens <= 1500 for arrival in arrivals)
    assert fmean(arrival.prompt_tokens for arrival in arrivals) == pytest.approx(1235, rel=0.03)
    assert fmean(arrival.output_tokens for arrival in arrivals) == pytest.approx(354, rel=0.03)
