"""Plain HPA and KEDA rules, and those that know the future."""

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.bound import Task, UnservableError, bound
from adapter.simulator.rivals.in_flight import InFlightHpa
from adapter.simulator.rivals.kv_and_waiting import KvAndWaitingKeda
from adapter.simulator.rivals.oracle import Oracle
from adapter.simulator.rivals.static import Static, best_static, static_p100
from adapter.simulator.rivals.waiting import WaitingKeda
from tests.simulator.rivals.build import (
    Play,
    ordered_once,
    pods,
    reached,
    running,
    seen,
    silent,
    synced_once,
    values_once,
)


def a_task(*work: float, most: int = 10) -> Task:
    return Task(
        work=work,
        capacity=tuple(float(count) for count in range(most + 1)),
        slot=Seconds(60.0),
        load_time=Seconds(120.0),
        slack=Seconds(0.0),
        min_replicas=1,
    )


def test_in_flight_counts_running_and_waiting():
    observation = seen(*running(20.0, 24.0), *pods((0.9, 16.0)))

    assert values_once(InFlightHpa(), observation) == [60.0]
    assert synced_once(InFlightHpa(target=10.0), observation) == 6


def test_in_flight_reads_silent_pods_as_idle_and_a_broken_store_as_an_error():
    assert values_once(InFlightHpa(), seen(*running(20.0), *silent(3))) == [20.0]
    assert values_once(InFlightHpa(), seen(*silent(3), error="timeout")) == [None]


def test_in_flight_orders_four_to_twenty_within_45_seconds():
    """peers.md 4: the HPA's default behavior doubles at every sync."""

    def world(at, ready, ordered):
        load = 400.0 / ready
        facts = (*running(*[load] * ready), *silent(ordered - ready, ready=False))
        return seen(*facts, at=at)

    changes = Play(InFlightHpa(), world, first=4, load_time=240).until(600, begin=15)

    assert reached(changes, 20) <= 45
    assert max(count for _, count in changes) == 20


def test_waiting_takes_one_replica_per_five_that_wait():
    assert synced_once(WaitingKeda(), seen(*pods((0.9, 40.0), (0.9, 60.0)))) == 20


@pytest.mark.parametrize(("load_time", "peak"), [(60, 640), (240, 4600)])
def test_waiting_overshoots_as_far_as_the_load_time_lets_it(load_time, peak):
    """peers.md 4: 100 rps, 10 rps a replica, target 5, no maximum; ten replicas are needed."""
    queue, last, served = 0.0, 0.0, 1

    def world(at, ready, ordered):
        nonlocal queue, last, served
        queue = max(0.0, queue + (100.0 - 10.0 * served) * (at - last))
        last, served = at, ready
        facts = (*pods((0.9, queue)), *silent(ready - 1), *silent(ordered - ready, ready=False))
        return seen(*facts, at=at, high=1_000_000)

    changes = Play(WaitingKeda(), world, first=1, load_time=load_time).until(1200)

    assert max(count for _, count in changes) == pytest.approx(peak, rel=0.05)


def test_kv_and_waiting_publishes_both_sums():
    observation = seen(*pods((0.9, 40.0), (0.9, 60.0)))

    assert values_once(KvAndWaitingKeda(), observation) == [1.8, 100.0]
    assert synced_once(KvAndWaitingKeda(), observation) == 4


def test_a_constant_count_never_changes():
    assert ordered_once(Static(7), seen(*silent(3))) == 7


def test_static_p100_serves_the_busiest_slot():
    assert static_p100(a_task(1.0, 7.2, 3.0)) == Static(8, name="static-p100")


def test_best_static_misses_no_more_than_the_budget():
    """Half a unit of 100 may be missed: 2 of 3 is enough, 1 is not."""
    task = a_task(*[1.0] * 98, 1.5, 2.5)

    assert best_static(task, missed_share=0.01).replicas == 2
    assert best_static(task, missed_share=0.0).replicas == 3
    assert best_static(task, missed_share=0.5).replicas == 1


def test_best_static_says_so_when_no_count_is_enough():
    with pytest.raises(UnservableError, match="2 constant replicas miss more than 1"):
        best_static(a_task(5.0, most=2), missed_share=0.01)


def test_the_oracle_orders_one_lead_ahead_and_pays_what_the_plan_pays():
    """A burst in slots 5 to 7 of 12, load 120 s: ordered at 180 s, released at 480 s."""
    task = a_task(*[1.0] * 5, *[4.0] * 3, *[1.0] * 4)
    found = bound(task, missed_share=0.0)
    oracle = Oracle(serving=found.plan, first=Timestamp(0.0), slot=task.slot, lead=task.load_time)

    changes = Play(
        oracle, lambda at, ready, ordered: seen(at=at, spec=ordered), first=1, load_time=120
    ).until(719)

    assert found.plan == (1,) * 5 + (4,) * 3 + (1,) * 4
    assert changes == [(180, 4), (480, 1)]
    paid = 720 + 3 * (480 - 180) + 120
    assert paid == found.paid


def test_the_oracle_keeps_the_plans_ends_outside_of_it():
    oracle = Oracle(serving=(2, 5), first=Timestamp(600.0), slot=Seconds(60.0), lead=Seconds(30.0))

    assert ordered_once(oracle, seen(at=0.0, spec=1)) == 2
    assert ordered_once(oracle, seen(at=9000.0, spec=1)) == 5
