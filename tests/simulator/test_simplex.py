"""The search finds the bottom of valleys with and without a slope."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.simulator.simplex import minimize


def test_it_follows_a_bent_valley():
    """Rosenbrock's banana from (-1.2, 1): the bottom is (1, 1)."""
    best = minimize(
        lambda p: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2,
        (-1.2, 1.0),
        step=0.5,
        evaluations=400,
    )

    assert best == pytest.approx((1.0, 1.0), abs=1e-3)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=5))
def test_it_finds_a_corner(bottom):
    """A sum of absolute values has no slope at its bottom."""
    best = minimize(
        lambda p: sum(abs(x - y) for x, y in zip(p, bottom, strict=True)),
        [0.0] * len(bottom),
        step=1.0,
        evaluations=600,
    )

    distance = sum(abs(x - y) for x, y in zip(best, bottom, strict=True))
    assert distance < max(0.5, 0.3 * sum(map(abs, bottom)))


def test_it_backs_out_of_where_nothing_works():
    """Infinite beyond 0: the bottom at -1 is found from 0.5 steps."""
    best = minimize(
        lambda p: math.inf if p[0] > 0 else abs(p[0] + 1.0), (0.0,), step=0.5, evaluations=80
    )

    assert best[0] == pytest.approx(-1.0, abs=1e-3)


def test_it_never_returns_worse_than_the_start_and_keeps_its_budget():
    asked = []

    def cost(point):
        asked.append(point)
        return math.cos(7 * point[0]) + point[1] ** 2

    best = minimize(cost, (0.4, 3.0), step=0.4, evaluations=50)

    assert 50 <= len(asked) <= 50 + 4
    assert cost(best) <= cost((0.4, 3.0))


def test_where_nothing_differs_it_stays():
    """A flat cost must not make it wander off, as far as floating point goes."""
    best = minimize(lambda _: 1.0, (3.0, 4.0), step=0.4, evaluations=500)

    assert best == pytest.approx((3.0, 4.0), abs=0.5)
