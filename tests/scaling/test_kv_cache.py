"""The KV-cache signal: it confirms a shortage and never makes one."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds
from adapter.scaling.demand import Demand
from adapter.scaling.progress import judge
from adapter.scaling.signals.kv_cache import KvCacheSection
from adapter.scaling.state import ScalingState
from adapter.scaling.view import look
from tests.build import T0, a_fleet, a_reading, a_replica, serving, silent


def asked(fleet: FleetSnapshot) -> Demand:
    """Return what the signal asks for with a target of 0.5."""
    view = look(judge(fleet, {}), ScalingState(), lead=Seconds(240.0), target=10)
    return KvCacheSection(target=0.5).demand(view)


def test_a_full_cache_with_an_empty_queue_says_nothing() -> None:
    demand = asked(a_fleet(*serving(2, running=4, kv=0.97)))

    assert demand.replicas is None
    assert not demand.blocks_down
    assert demand.because == "usage 0.97, but nothing waits and nothing is preempted"


@pytest.mark.parametrize(("waiting", "replicas"), [(1, 2.2), (5, 3.0), (400, 3.0)])
def test_what_waits_takes_its_share_of_a_full_batch_and_at_most_half_as_much_again(
    waiting: float, replicas: float
) -> None:
    """Ten in flight fill a batch: five that wait take half as much again."""
    demand = asked(a_fleet(*serving(2, running=4, waiting=waiting, kv=0.5)))

    assert demand.replicas == pytest.approx(replicas)


@pytest.mark.parametrize(("before", "replicas"), [(2.0, 2.0), (5.0, None), (None, None)])
def test_preemptions_that_rise_confirm_without_a_queue(
    before: float | None, replicas: float | None
) -> None:
    """Preempted requests do not always wait: running flat, preemptions +50 a minute (vllm#5051)."""
    now = a_reading(running=4, kv=0.5, more={Metric.PREEMPTIONS: 5})
    earlier = None
    if before is not None:
        earlier = a_reading(at=T0 - 5, running=4, kv=0.5, more={Metric.PREEMPTIONS: before})
    fleet = a_fleet(a_replica("a", sample=now, previous=earlier), *serving(1, kv=0.5), *silent(1))

    demand = asked(fleet)

    assert demand.replicas == (None if replicas is None else pytest.approx(3.0))


def test_silent_replicas_count_as_the_mean_of_the_others() -> None:
    demand = asked(a_fleet(*serving(2, running=4, waiting=10, kv=0.5), *silent(2)))

    assert demand.replicas == pytest.approx(6.0)


def test_an_engine_without_the_gauge_is_told_from_one_that_does_not_answer() -> None:
    never = asked(a_fleet(*serving(2, kv=None, unserved=(Metric.KV_CACHE_USAGE,))))
    lost = asked(a_fleet(*serving(2, kv=None), *silent(1)))

    assert (never.replicas, never.unserved) == (None, True)
    assert (lost.replicas, lost.unserved, lost.blocks_down) == (None, False, False)
    assert asked(a_fleet(*silent(1))).unserved is False
