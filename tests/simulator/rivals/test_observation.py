"""What a rival sees is made of the snapshot that the product decides on."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Timestamp
from adapter.simulator.rivals.observation import Gauge, PodFacts, RouterFacts, observe
from tests.simulator.rivals.build import pods, running, seen, silent

LOST = Gap(Timestamp(100.0), Cause.TIMEOUT, "http://replica: no answer in 2 s")


def a_reading(at: float, **values: float) -> Reading:
    named = {Metric[name.upper()]: value for name, value in values.items()}
    return Reading(Timestamp(at), "vllm", "llama", named, ranks={"": Rank(named)})


def a_replica(uid: str, phase: Phase, sample=LOST, previous=None) -> Replica:
    return Replica(uid=uid, name=uid, phase=phase, sample=sample, previous=previous)


def observed(*replicas: Replica):
    fleet = FleetSnapshot.of(Timestamp(100.0), replicas)
    return observe(fleet, RouterFacts(in_flight_requests=9.0), spec_replicas=6, max_replicas=8)


def test_readiness_is_what_kubernetes_sees():
    """A stalled engine answers its probe; a draining pod is gone; a loading one is not Ready."""
    phases = [Phase.PENDING, Phase.LOADING, Phase.WARMING, Phase.SERVING, Phase.STALLED]
    replicas = [a_replica(phase.value, phase) for phase in [*phases, Phase.DRAINING]]

    observation = observed(*replicas)

    assert {pod.name: pod.ready for pod in observation.pods} == {
        "pending": False,
        "loading": False,
        "warming": True,
        "serving": True,
        "stalled": True,
    }
    assert observation.ready_replicas == 3
    assert observation.pending_replicas == 3


def test_readings_become_facts_and_counters_rates():
    now = a_reading(
        100.0,
        requests_running=4.0,
        requests_waiting=2.0,
        kv_cache_usage=0.4,
        generation_tokens=1500.0,
    )
    before = a_reading(90.0, generation_tokens=500.0)

    (pod,) = observed(a_replica("a", Phase.SERVING, now, before)).pods

    assert pod == PodFacts(
        name="a",
        ready=True,
        waiting=2.0,
        running=4.0,
        kv_usage_ratio=0.4,
        generated_tokens_per_second=100.0,
    )


def test_a_gap_is_unknown_and_never_zero():
    (pod,) = observed(a_replica("a", Phase.SERVING)).pods

    assert pod.silent
    assert pod.generated_tokens_per_second is None


@pytest.mark.parametrize("before", [None, 100.0, 200.0])
def test_a_rate_needs_an_earlier_reading(before):
    now = a_reading(100.0, generation_tokens=1500.0)
    previous = None if before is None else a_reading(before, generation_tokens=500.0)

    (pod,) = observed(a_replica("a", Phase.SERVING, now, previous)).pods

    assert pod.generated_tokens_per_second is None


def test_a_rate_of_an_absent_counter_is_unknown():
    now, before = a_reading(100.0, requests_running=1.0), a_reading(90.0, requests_running=1.0)

    (pod,) = observed(a_replica("a", Phase.SERVING, now, before)).pods

    assert pod.generated_tokens_per_second is None


def test_router_and_bounds_come_with_it():
    observation = observed()

    assert observation.router.in_flight_requests == 9.0
    assert (observation.at, observation.spec_replicas) == (100.0, 6)
    assert (observation.min_replicas, observation.max_replicas) == (1, 8)


@pytest.mark.parametrize(
    ("gauge", "value"),
    [
        (Gauge.WAITING, 3.0),
        (Gauge.RUNNING, 4.0),
        (Gauge.IN_FLIGHT, 7.0),
        (Gauge.KV_USAGE, 0.5),
    ],
)
def test_every_gauge_of_a_pod(gauge, value):
    pod = PodFacts(name="a", ready=True, waiting=3.0, running=4.0, kv_usage_ratio=0.5)

    assert pod.value(gauge) == value
    assert silent(1)[0].value(gauge) is None


def test_half_of_what_is_in_flight_is_unknown():
    assert PodFacts(name="a", ready=True, running=4.0).value(Gauge.IN_FLIGHT) is None
    assert PodFacts(name="a", ready=True, waiting=4.0).value(Gauge.IN_FLIGHT) is None


def test_a_sum_leaves_out_who_is_silent_and_is_unknown_only_when_the_store_fails():
    assert seen(*running(3.0, 4.0), *silent(2)).summed(Gauge.RUNNING) == 7.0
    assert seen(*silent(2)).summed(Gauge.RUNNING) == 0
    assert seen(*silent(2), error="401").summed(Gauge.RUNNING) is None
    assert seen(*pods((0.5, 1.0))).known(Gauge.KV_USAGE) == (0.5,)
