"""Knative's KPA and Ray Serve, by peers.md sections 1.7, 1.8, 5.2 and 5.6."""

import dataclasses

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.knative import KnativeKpa, Memory
from adapter.simulator.rivals.observation import RouterFacts
from adapter.simulator.rivals.port import Ordered, Seat
from adapter.simulator.rivals.ray_serve import RayServe
from adapter.simulator.rivals.window import Window
from tests.simulator.rivals.build import Play, ordered_once, running, seen, silent

NO_DELAY = KnativeKpa(delay=Seconds(0.0))
RAY = RayServe()


def flying(total: float | None) -> RouterFacts:
    return RouterFacts(in_flight_requests=total)


def facts(ready: int, ordered: int):
    return (*running(*[1.0] * ready), *silent(ordered - ready, ready=False))


def calm() -> Memory:
    return Memory(Window(), Window(), None, 0)


def judged(rule: KnativeKpa, *, ready: int, stable: float, panic: float, at: float = 100.0):
    return rule.judge(calm(), at=Timestamp(at), ready=ready, stable=stable, panic=panic)


# --- Knative


def test_knative_vector():
    """Ready 2, stable 20, panic 60, 7 a replica: a panic at nine."""
    count, state = judged(NO_DELAY, ready=2, stable=20.0, panic=60.0)

    assert count == 9
    assert state.panic_since == 100.0


def test_knative_without_a_panic_follows_the_stable_window_at_most_halving():
    assert judged(NO_DELAY, ready=4, stable=30.0, panic=30.0)[0] == 5
    assert judged(NO_DELAY, ready=8, stable=0.0, panic=0.0)[0] == 4


def test_knative_starts_in_panic_so_a_restart_cannot_scale_down():
    """Spec 7 with half a window of no load: 7 until 60 s have passed."""

    def world(at, ready, ordered):
        return seen(*facts(ready, ordered), at=at, router=flying(0.0))

    changes = Play(NO_DELAY, world, first=7, load_time=0).until(70)

    assert changes[0] == (62, 3)


def test_knative_of_one_starts_calm():
    assert KnativeKpa().begin(seen(*facts(1, 1))).panic_since is None


def test_knative_never_lowers_within_a_panic():
    _, state = judged(NO_DELAY, ready=2, stable=20.0, panic=60.0)

    count, _ = NO_DELAY.judge(state, at=Timestamp(110.0), ready=2, stable=5.0, panic=5.0)

    assert count == 9


def test_knative_forgets_the_plan_when_the_panic_ends():
    """Knative#9121: nine ordered, two ready; 61 s later the load's mean counts alone."""
    _, state = judged(NO_DELAY, ready=2, stable=20.0, panic=60.0)

    count, after = NO_DELAY.judge(state, at=Timestamp(161.0), ready=2, stable=14.0, panic=14.0)

    assert count == 2
    assert after.panic_since is None

    again, _ = NO_DELAY.judge(after, at=Timestamp(170.0), ready=1, stable=7.0, panic=14.0)
    assert again == 2


def test_knative_scale_down_waits_for_the_delay():
    def world(at, ready, ordered):
        load = 70.0 if at < 100 else 7.0
        return seen(*facts(ready, ordered), at=at, router=flying(load))

    changes = Play(KnativeKpa(), world, first=10, load_time=0).until(1200)

    assert 1000 <= changes[0][0] <= 1064


def test_knative_activation_scale_lifts_what_is_needed_at_all():
    rule = dataclasses.replace(NO_DELAY, activation=3)

    assert judged(rule, ready=1, stable=1.0, panic=1.0)[0] == 3
    assert judged(rule, ready=1, stable=0.0, panic=0.0)[0] == 0


@pytest.mark.parametrize("total", [None, float("nan"), float("inf")])
def test_knative_decides_nothing_without_data(total):
    assert ordered_once(KnativeKpa(), seen(*facts(3, 5), router=flying(total))) == 5


def test_knative_floods_a_slow_start_with_panic_pods():
    """knative#13284: the queue grows while nothing gets Ready: each look orders more."""

    def world(at, ready, ordered):
        return seen(*facts(ready, ordered), at=at, router=flying(100.0 + 10.0 * at), high=500)

    changes = Play(KnativeKpa(), world, first=2, load_time=180).until(170)

    assert changes[-1][1] > 200


# --- Ray Serve


def test_ray_vector_of_a_small_down_factor():
    """10 running, 4 ongoing, factor 0.15 → 9, and it would round to 10 otherwise."""
    rule = RayServe(down_factor=0.15, down_delay=Seconds(0.0))

    assert rule.wanted(4.0, running=10) == 9
    assert rule.wanted(19.0, running=10) == 10
    assert RayServe(down_factor=0.01).wanted(4.0, running=10) == 9


def test_ray_vector_of_an_order_on_its_way():
    """1 running, 10 ordered, 20 ongoing: 10 again, not more."""
    story = [seen(*facts(1, 10), at=10.0 * tick, router=flying(20.0)) for tick in range(10)]
    seat = Seat(RAY, story[0])

    assert [seat.wish(one) for one in story] == [Ordered(10)] * 10


def test_ray_grows_after_30_seconds_and_shrinks_after_600():
    def world(at, ready, ordered):
        load = 20.0 if at < 60 else 2.0
        return seen(*facts(ready, ordered), at=at, router=flying(load))

    changes = Play(RAY, world, first=2, load_time=0).until(800)

    assert changes[0] == (30, 10)
    assert 660 <= changes[1][0] <= 700


def test_ray_starts_its_delay_anew_when_the_direction_changes():
    """Up, a moment of nothing, up: 30 s count from the second."""
    seat = Seat(RAY, seen(*facts(2, 2)))
    loads = [(0.0, 20.0), (20.0, 20.0), (100.0, 4.0), (140.0, 20.0), (160.0, 20.0), (170.0, 20.0)]

    counts = [
        seat.wish(seen(*facts(2, 2), at=at, router=flying(load))).replicas for at, load in loads
    ]

    assert counts == [2, 2, 2, 2, 2, 10]


def test_ray_starts_its_delay_anew_when_it_turns_around():
    """Up at 0 s, down from 40 s: the 30 s of the way down begin at 40 s."""
    rule = RayServe(down_delay=Seconds(30.0), up_delay=Seconds(600.0))
    seat = Seat(rule, seen(*facts(2, 2)))

    counts = [
        seat.wish(seen(*facts(2, 2), at=at, router=flying(load))).replicas
        for at, load in ((0.0, 20.0), (40.0, 1.0), (60.0, 1.0), (70.0, 1.0))
    ]

    assert counts == [2, 2, 2, 1]


def test_ray_looks_back_over_30_seconds():
    """4 and 20 ongoing mean 12: six replicas, and not ten."""
    seat = Seat(RayServe(up_delay=Seconds(0.0)), seen(*facts(2, 2)))
    seat.wish(seen(*facts(2, 2), at=0.0, router=flying(4.0)))

    assert seat.wish(seen(*facts(2, 2), at=10.0, router=flying(20.0))) == Ordered(6)


def test_ray_orders_at_once_when_nothing_runs():
    assert ordered_once(RAY, seen(*facts(0, 1), router=flying(9.0))) == 1
    assert ordered_once(RAY, seen(*facts(0, 3), router=flying(0.0))) == 3


def test_ray_at_one_replica_and_twice_the_target_wants_two():
    """ray#24793: a target of 1 never scaled."""
    assert RayServe(target=1.0).wanted(2.0, running=1) == 2


def test_ray_changes_nothing_without_data():
    assert ordered_once(RAY, seen(*facts(2, 4))) == 4
