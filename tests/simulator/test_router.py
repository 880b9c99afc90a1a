"""Routers: whom each chooses, and what all of them guarantee."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.simulator.router import ROUTERS, LeastWork, PowerOfTwo, RoundRobin, router


@dataclass(eq=False)
class Backend:
    load: float = 0.0


def backends(*loads: float) -> list[Backend]:
    return [Backend(load) for load in loads]


def test_round_robin_gives_each_the_same_number():
    pool, turn = backends(9, 0, 0), RoundRobin()

    given_to = Counter(id(turn.choose(pool)) for _ in range(300))

    assert sorted(given_to.values()) == [100, 100, 100]


def test_round_robin_survives_a_pool_that_shrinks():
    turn = RoundRobin()
    for _ in range(5):
        turn.choose(backends(0, 0, 0))

    assert turn.choose([only := Backend()]) is only


def test_least_work_takes_the_least_loaded_and_the_oldest_of_equals():
    pool = backends(5, 2, 7, 2)

    assert LeastWork().choose(pool) is pool[1]


def test_power_of_two_never_takes_the_most_loaded():
    """It always has another choice: of two different ones the less loaded."""
    pool, draw = backends(1, 2, 3, 99), PowerOfTwo(seed=3)

    assert all(draw.choose(pool).load < 99 for _ in range(500))


@pytest.mark.parametrize("loads", [(1, 2, 3, 4), (4, 3, 2, 1)])
def test_power_of_two_prefers_by_rank(loads):
    """Of four, the ranks are chosen in 1/2, 1/3, 1/6 and 0 of the draws, wherever they stand."""
    pool, draw = backends(*loads), PowerOfTwo(seed=5)

    chosen = Counter(draw.choose(pool).load for _ in range(6000))

    assert chosen[1] == pytest.approx(3000, rel=0.05)
    assert chosen[2] == pytest.approx(2000, rel=0.07)
    assert chosen[3] == pytest.approx(1000, rel=0.1)
    assert chosen[4] == 0


def test_power_of_two_spreads_over_equals():
    """Nobody is favored when all are idle."""
    pool, draw = backends(0, 0, 0), PowerOfTwo(seed=1)

    chosen = Counter(id(draw.choose(pool)) for _ in range(3000))

    assert all(count == pytest.approx(1000, rel=0.12) for count in chosen.values())


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(ROUTERS),
    loads=st.lists(st.floats(0, 1e6), min_size=1, max_size=9),
    seed=st.integers(0, 99),
)
def test_every_router_chooses_from_the_pool_and_alike_for_the_same_seed(name, loads, seed):
    pool = [Backend(load) for load in loads]
    one, two = router(name, seed=seed), router(name, seed=seed)

    chosen = [one.choose(pool) for _ in range(20)]

    assert all(any(backend is member for member in pool) for backend in chosen)
    assert [pool.index(b) for b in chosen] == [pool.index(two.choose(pool)) for _ in range(20)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_least_work_has_no_better_choice(loads):
    assert LeastWork().choose([Backend(load) for load in loads]).load == min(loads)


def test_an_unknown_router_is_named_with_the_known_ones():
    with pytest.raises(KeyError, match="no router 'random'; there are round-robin, power-of-two"):
        router("random", seed=0)
