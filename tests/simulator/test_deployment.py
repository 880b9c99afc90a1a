"""The stand-in cluster: phases, who goes first, drains, deaths, nodes and the bill."""

import pytest

from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda
from adapter.simulator.deployment import Deployment
from adapter.simulator.engine import Request
from tests.build import T0
from tests.simulator.worlds import a_deployment


def at(seconds: float) -> Timestamp:
    return Timestamp(T0 + seconds)


def phases(deployment: Deployment) -> list[str]:
    return [str(pod.phase) for pod in deployment.pods]


def a_request(seconds: float, *, prompt: int = 1000, output: int = 1000) -> Request:
    return Request(at(seconds), prompt, output)


def test_the_first_pods_serve_and_are_no_starts():
    deployment, _ = a_deployment(Agenda(T0), first=3)

    assert phases(deployment) == ["serving"] * 3
    assert len(deployment.serving) == 3
    assert deployment.started == 0
    assert deployment.roster().load_time is None
    assert all(target.since == T0 - 3600 for target in deployment.roster().targets)


def test_a_pod_serves_one_load_time_after_it_was_asked_for():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=1, load=60)

    deployment.set_replicas(2)
    agenda.pass_until(at(59.9))
    assert phases(deployment) == ["serving", "loading"]
    agenda.pass_until(at(60))

    assert phases(deployment) == ["serving", "serving"]
    assert deployment.serving[-1].since == at(60)
    load_time = deployment.roster().load_time
    assert load_time is not None
    assert (load_time.seconds, load_time.starts) == (60.0, 1)


def test_a_ready_engine_warms_up_before_its_first_step():
    """Ready at 60 s, 2 s of warm-up: a request of 60 s has its first token after 62 s."""
    agenda = Agenda(T0)
    deployment, ledger = a_deployment(agenda, first=0, load=60, warm_up=Seconds(2.0))
    deployment.set_replicas(1)
    agenda.pass_until(at(60))

    deployment.serving[0].send(a_request(60, output=1))
    deployment.advance(at(70))

    (finished,) = ledger.finished
    assert finished.first_token_at is not None
    assert 62.0 < finished.first_token_at - T0 < 62.2


def test_slow_loads_take_longer():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=0, load=60)
    deployment.load_factor = 2.0

    deployment.set_replicas(1)
    agenda.pass_until(at(119))

    assert phases(deployment) == ["loading"]


def test_what_is_not_ready_goes_first_then_the_newest():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=2, load=60)
    deployment.set_replicas(3)
    agenda.pass_until(at(61))
    deployment.set_replicas(4)

    deployment.set_replicas(3)
    assert [pod.name for pod in deployment.pods] == ["r-0", "r-1", "r-2"]
    deployment.set_replicas(2)

    assert [pod.name for pod in deployment.serving] == ["r-0", "r-1"]


def test_a_start_that_was_called_off_never_serves():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=1, load=60)
    deployment.set_replicas(2)
    agenda.pass_until(at(30))
    deployment.set_replicas(1)

    agenda.pass_until(at(100))

    assert phases(deployment) == ["serving"]
    assert deployment.roster().load_time is None


def test_a_stopped_pod_gets_nothing_more_and_goes_when_it_is_empty():
    """1000 tokens at some 17 ms: gone after about 20 s, to the second."""
    agenda = Agenda(T0)
    deployment, ledger = a_deployment(agenda, first=2)
    stopped = deployment.serving[1]
    stopped.send(a_request(0))

    deployment.set_replicas(1)
    assert [pod.name for pod in deployment.serving] == ["r-0"]
    assert phases(deployment) == ["serving", "draining"]
    assert (deployment.scale.spec_replicas, deployment.scale.status_replicas) == (1, 1)
    agenda.pass_until(at(60))

    (finished,) = ledger.finished
    assert finished.finished_at is not None
    assert phases(deployment) == ["serving"]
    assert ledger.lost == []
    assert deployment.paid_seconds == pytest.approx(60 + finished.finished_at - T0, abs=1.1)


def test_grace_has_an_end_and_what_is_left_then_is_lost():
    agenda = Agenda(T0)
    deployment, ledger = a_deployment(agenda, first=2, grace=Seconds(5.5))
    deployment.serving[1].send(a_request(0))

    deployment.set_replicas(1)
    agenda.pass_until(at(30))

    assert ledger.lost == [(at(5.5), 1)]
    assert ledger.finished == []
    assert phases(deployment) == ["serving"]


def test_a_dead_pod_is_replaced_and_its_requests_are_lost():
    agenda = Agenda(T0)
    deployment, ledger = a_deployment(agenda, first=2, load=60)
    dead = deployment.serving[0]
    dead.send(a_request(0))
    dead.send(a_request(0))
    agenda.pass_until(at(1))

    deployment.lose(dead)

    assert ledger.lost == [(at(1), 2)]
    assert phases(deployment) == ["serving", "loading"]
    assert deployment.scale.spec_replicas == 2
    assert deployment.started == 1


def test_a_pod_that_dies_while_it_drains_is_gone_once():
    agenda = Agenda(T0)
    deployment, ledger = a_deployment(agenda, first=2)
    draining = deployment.serving[1]
    draining.send(a_request(0))
    deployment.set_replicas(1)

    deployment.lose(draining)
    agenda.pass_until(at(200))

    assert ledger.lost == [(T0, 1)]
    assert phases(deployment) == ["serving"]


def test_without_a_node_a_pod_is_pending_and_costs_nothing():
    """2 nodes, 3 replicas: the third waits until one is given back, and loads from then on."""
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=2, load=60, nodes=2)
    deployment.set_replicas(3)
    agenda.pass_until(at(100))
    assert phases(deployment) == ["serving", "serving", "pending"]
    assert deployment.paid_seconds == pytest.approx(200)

    deployment.lose(deployment.serving[0])
    agenda.pass_until(at(159))
    assert phases(deployment) == ["serving", "loading", "pending"]
    agenda.pass_until(at(161))

    assert phases(deployment) == ["serving", "serving", "pending"]
    assert deployment.paid_seconds == pytest.approx(100 + 161 + 61)


def test_pending_pods_are_the_first_to_be_taken_back():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=1, load=60, nodes=2)
    deployment.set_replicas(3)

    deployment.set_replicas(2)

    assert [pod.phase for pod in deployment.pods] == [Phase.SERVING, Phase.LOADING]


def test_the_bill_runs_from_the_node_on_while_the_model_loads():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=1, load=60)
    agenda.pass_until(at(100))
    deployment.set_replicas(2)

    agenda.pass_until(at(130))

    assert deployment.paid_seconds == pytest.approx(130 + 30)


def test_the_load_time_is_the_quantile_of_the_latest_starts():
    """60 starts of 60 s are forgotten behind 50 of 120 s: the load time follows."""
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=0, load=60)
    deployment.set_replicas(60)
    agenda.pass_until(at(70))
    deployment.load_factor = 2.0
    deployment.set_replicas(110)

    agenda.pass_until(at(200))

    load_time = deployment.roster().load_time
    assert load_time is not None
    assert (load_time.seconds, load_time.starts) == (120.0, 50)


def test_the_router_knows_what_it_sent_at_once_and_what_was_done_when_it_looks():
    """Two requests of 1000 + 1000 tokens: 4,000 to do, and fewer after the next look."""
    deployment, _ = a_deployment(Agenda(T0), first=1)
    pod = deployment.serving[0]

    pod.send(a_request(0))
    pod.send(a_request(0))
    assert (pod.load, pod.prompt_tokens) == (4000, 2000)
    deployment.advance(at(5))

    assert pod.engine is not None
    assert pod.load == pod.engine.outstanding_tokens < 2000
    assert pod.prompt_tokens == 2000
    deployment.advance(at(60))
    assert (pod.load, pod.prompt_tokens) == (0, 0)


def test_a_pod_without_an_engine_takes_no_request():
    agenda = Agenda(T0)
    deployment, _ = a_deployment(agenda, first=0)
    deployment.set_replicas(1)
    (loading,) = deployment.pods

    with pytest.raises(AssertionError, match="only serving pods"):
        loading.send(a_request(0))
