from contextlib import aclosing

import aiohttp
import pytest

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.deployment import GRACE, Deployment
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.hpa import Scale
from adapter.simulator.starts import LoadTimes
from tests.build import T0
from tests.fakes import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def deployment(clock):
    deployment = Deployment(
        "llama",
        model=scene.MODEL,
        preset=scene.PRESET,
        load_times=LoadTimes(Seconds(75.0), seed=1),
        clock=clock,
    )
    async with aclosing(deployment):
        await deployment.open(2)
        yield deployment


def names(deployment: Deployment, phase: Phase) -> list[str]:
    return [pod.name for pod in deployment.phase(phase)]


def a_request(at: float, *, output: int = 500) -> Request:
    return Request(Timestamp(at), 100, output)


async def test_it_begins_with_pods_that_have_served_for_an_hour(deployment):
    """So that the adapter does not take them for new ones that still warm up."""
    roster = await deployment.roster(T0)

    assert [target.phase for target in roster.targets] == [Phase.SERVING, Phase.SERVING]
    assert [target.since for target in roster.targets] == [T0 - 3600, T0 - 3600]
    assert deployment.scale == Scale(2, 2)
    assert roster.load_time is None
    assert (deployment.started, deployment.stopped) == (0, 0)


async def test_a_new_pod_loads_first_and_serves_one_load_time_later(deployment, clock):
    """Asked for at once, refusing connections, and not a second early."""
    deployment.set_replicas(3)
    (pod,) = deployment.phase(Phase.LOADING)
    assert deployment.scale == Scale(3, 3)
    assert 40 < pod.until - T0 < 160

    clock.pass_by(pod.until - T0 - 1)
    await deployment.step()
    assert names(deployment, Phase.LOADING) == ["llama-2"]

    clock.pass_by(1)
    await deployment.step()
    assert names(deployment, Phase.SERVING) == ["llama-0", "llama-1", "llama-2"]
    assert pod.since == clock.now()


async def test_only_a_serving_pod_answers_and_its_exposition_tells_the_load_time(deployment, clock):
    deployment.set_replicas(3)
    (pod,) = deployment.phase(Phase.LOADING)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientConnectorError):
            await session.get(pod.face.url)

        clock.pass_by(pod.until - T0)
        await deployment.step()
        async with session.get(pod.face.url) as answer:
            text = await answer.text()

    assert f"process_start_time_seconds {T0}" in text
    assert f'vllm:prompt_tokens_created{{engine="0",model_name="{scene.MODEL}"}}' in text


async def test_the_measured_load_time_is_the_high_quantile_of_the_starts(deployment, clock):
    """The 95 % quantile of fewer than twenty starts is the longest one."""
    deployment.set_replicas(6)
    times = [pod.until - T0 for pod in deployment.phase(Phase.LOADING)]
    for _ in range(200):
        clock.pass_by(1)
        await deployment.step()

    measured = (await deployment.roster(clock.now())).load_time

    assert measured is not None
    assert measured.starts == 4
    assert max(times) <= measured.seconds < max(times) + 1


async def test_loading_pods_go_before_serving_ones_and_the_newest_first(deployment, clock):
    deployment.set_replicas(3)
    clock.pass_by(200)
    await deployment.step()
    deployment.set_replicas(5)
    clock.pass_by(5)
    deployment.set_replicas(6)

    deployment.set_replicas(4)
    assert names(deployment, Phase.DRAINING) == ["llama-4", "llama-5"]

    deployment.set_replicas(2)
    assert names(deployment, Phase.SERVING) == ["llama-0", "llama-1"]
    assert deployment.scale == Scale(2, 2)
    assert (deployment.started, deployment.stopped) == (4, 4)


async def test_a_stopped_pod_finishes_what_it_holds(deployment, clock):
    """It stays in the roster as draining, answers, and goes when it is empty."""
    last = deployment.phase(Phase.SERVING)[1]
    last.engine.submit(a_request(T0))
    last.engine.advance(T0 + 0.5)
    deployment.set_replicas(1)
    victim = deployment.phase(Phase.DRAINING)[0]
    survivor = deployment.phase(Phase.SERVING)[0]
    busy = victim if victim.engine.in_flight else survivor

    await deployment.step()
    assert (busy in deployment.pods) is True

    busy.engine.advance(T0 + 60)
    await deployment.step()
    assert names(deployment, Phase.DRAINING) == []


async def test_the_grace_of_a_stopped_pod_ends(deployment, clock):
    """A stream longer than 120 s is cut."""
    for pod in deployment.phase(Phase.SERVING):
        pod.engine.submit(a_request(T0, output=100_000))
        pod.engine.advance(T0 + 1)
    deployment.set_replicas(1)

    clock.pass_by(GRACE - 1)
    await deployment.step()
    assert len(deployment.phase(Phase.DRAINING)) == 1

    clock.pass_by(1)
    await deployment.step()
    assert len(deployment.pods) == 1


async def test_the_same_count_changes_nothing(deployment):
    before = deployment.pods

    deployment.set_replicas(2)

    assert deployment.pods == before
    assert (deployment.started, deployment.stopped) == (0, 0)
