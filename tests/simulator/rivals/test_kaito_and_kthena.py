"""KAITO's scaler and kthena's autoscaler, by peers.md sections 1.5, 1.6 and 5.8."""

import itertools

import pytest

from adapter.simulator.rivals.kaito import KaitoScaler, Threshold
from adapter.simulator.rivals.kthena import Kthena
from adapter.simulator.rivals.observation import Gauge
from adapter.simulator.rivals.port import Ordered, Seat
from tests.simulator.rivals.build import (
    Play,
    ordered_once,
    pods,
    reached,
    seen,
    silent,
    values_once,
)

TWO = KaitoScaler(
    thresholds=(
        Threshold(Gauge.WAITING, up=10.0, down=1.0),
        Threshold(Gauge.RUNNING, up=30.0, down=1.0),
    )
)


# --- KAITO


@pytest.mark.parametrize(
    ("values", "ready", "factor"),
    [
        ((200.0, 0.5), 4, 1.0),
        ((200.0, 90.0), 3, 1.0),
        ((200.0, 90.0), 4, 2.0),
        ((0.5, 0.5), 3, 0.5),
        ((5.0, 5.0), 4, 1.0),
    ],
)
def test_kaito_vectors_of_and_and_of_the_readiness_gate(values, ready, factor):
    """A queue of 200 waits for the other measure; one replica that never gets Ready blocks all."""
    assert TWO.factor(values, ready=ready, ordered=4) == factor


def test_kaito_orders_four_to_twenty_in_80_minutes():
    def world(at, ready, ordered):
        waiting = 90.0 if ready < 20 else 5.0
        return seen(*pods(*[(0.9, waiting)] * ready), *silent(ordered - ready, ready=False), at=at)

    changes = Play(KaitoScaler(), world, first=4, load_time=240).until(7000)

    assert (reached(changes, 20) + 240) / 60 == pytest.approx(80, abs=3)
    assert all(after - before == 1 for (_, before), (_, after) in itertools.pairwise(changes))


def test_kaito_never_grows_again_behind_a_replica_that_stays_unready():
    def world(at, ready, ordered):
        return seen(*pods(*[(0.9, 90.0)] * ready), *silent(ordered - ready, ready=False), at=at)

    changes = Play(KaitoScaler(), world, first=4, load_time=1e9).until(7200)

    assert [count for _, count in changes] == [5]


def test_kaito_reads_a_silent_pod_as_zero_while_another_answers():
    """12 waiting on one of two is a mean of 6, between the thresholds."""
    assert values_once(KaitoScaler(), seen(*pods((0.5, 12.0)), *silent(1))) == [1.0]


def test_kaito_keeps_what_it_saw_for_45_seconds_and_then_answers_an_error():
    busy = seen(*pods((0.9, 90.0)))
    seat = Seat(KaitoScaler(), busy)
    seat.wish(busy)

    later = [seat.wish(seen(*silent(1), at=at)).metrics[0].value for at in (15.0, 45.0, 60.0)]

    assert later == [2.0, 2.0, None]
    assert values_once(KaitoScaler(), seen(*silent(1))) == [None]


# --- kthena


@pytest.mark.parametrize(("each", "count"), [(2.5, 4), (2.0, 1), (6.5, 3), (2.7, 4), (3.0, 2)])
def test_kthena_vectors_of_a_sum_against_the_target_of_one(each, count):
    """Target 10 and four pods: a sum of 10 or 10.8 is "near" and stays 4, a sum of 8 is 1."""
    assert Kthena().count([each] * 4, 10.0, current=4) == count


@pytest.mark.parametrize(
    ("load", "current", "unready", "count"),
    [
        ([60.0, 60.0], 4, 2, 12),
        ([15.0, 15.0], 4, 2, 4),
        ([10.0, 10.0], 4, 2, 4),
        ([20.0, 13.0], 6, 2, 6),
        ([1.0, 1.0], 4, 2, 1),
        ([18.0, 18.0], 4, 2, 4),
        ([20.0, 20.0], 9, 2, 9),
    ],
)
def test_kthena_takes_unready_pods_for_idle_on_the_way_up(load, current, unready, count):
    """As the HPA does with a pod metric; up is never turned into down by it."""
    assert Kthena().count(load, 10.0, current=current, unready=unready) == count


def test_kthena_takes_the_larger_of_its_metrics():
    assert ordered_once(Kthena(), seen(*pods((0.1, 20.0), (0.1, 15.0)))) == 7


def test_kthena_skips_the_turn_while_one_pod_does_not_answer():
    assert ordered_once(Kthena(), seen(*pods((0.9, 400.0)), *silent(1))) == 2
    assert ordered_once(Kthena(), seen(*silent(2, ready=False))) == 2


def test_kthena_starts_from_the_present_count():
    """In PR#916 a history seeded with the minimum blocked growth.

    Six replicas and load for six stay six, and a lower load waits for the window.
    """
    six, none = pods(*[(0.5, 5.0)] * 6), pods(*[(0.0, 0.0)] * 6)
    seat = Seat(Kthena(), seen(*six))

    wishes = [seat.wish(seen(*facts, at=at)) for facts, at in ((six, 0.0), (none, 15.0))]

    assert wishes == [Ordered(6), Ordered(6)]
    assert seat.wish(seen(*none, at=400.0)) == Ordered(1)
