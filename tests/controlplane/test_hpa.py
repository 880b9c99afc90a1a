"""The real HPA controller behind the real aggregator, scaling by the number that we publish."""
# ruff: noqa: T201 - the figures are what a run is read for

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes import client, config

from adapter.scaling.hpa import dead_zone
from tests.cli.adapters import Adapter, Engine, adapter, an_engine, policy_of
from tests.controlplane.cluster import METRIC, Cluster
from tests.controlplane.pki import kubeconfig
from tests.controlplane.plane import ControlPlane, raw
from tests.serving.wire import Pki

pytestmark = [pytest.mark.e2e, pytest.mark.cluster]

PER_REPLICA = 8
"""Requests in flight that one replica carries, in the policy of these tests."""

DELAY = "3s"
RAW = f"/apis/external.metrics.k8s.io/v1beta1/namespaces/inference/{METRIC}"

_numbers = itertools.count(1)


@pytest.fixture
def cluster(plane: ControlPlane) -> Cluster:
    made = Cluster(plane)
    made.namespace("inference")
    return made


@pytest.fixture
def pki(tmp_path: Path, plane: ControlPlane) -> Pki:
    """Return certificates under which the adapter believes this cluster's front proxy."""
    directory = tmp_path / "pki"
    directory.mkdir()
    made = Pki(directory)
    both = made.proxy.certificate + plane.front_proxy.certificate
    (directory / "ca.crt").write_bytes(both)
    return made


@pytest.fixture
async def engine() -> AsyncIterator[Engine]:
    async with an_engine(running=3 * PER_REPLICA) as made:
        yield made


@pytest.fixture
async def served(
    tmp_path: Path, engine: Engine, pki: Pki, cluster: Cluster
) -> AsyncIterator[Adapter]:
    """Return an adapter with one policy, which the cluster asks."""
    directory = tmp_path / "policies"
    directory.mkdir()
    policy = policy_of(engine, top=40, stale_after="4s")
    (directory / "chat.yaml").write_text(policy + f"  scaleDown: {{delay: {DELAY}}}\n")
    async with adapter(directory, pki=pki) as running:
        port = int(running.base.rpartition(":")[2])
        await asyncio.to_thread(cluster.register, port, pki.serving.certificate)
        await cluster.until(lambda: cluster.available()["status"] == "True", "APIService Available")
        yield running


async def scaled(cluster: Cluster, replicas: int, *, tolerance: str | None = "0") -> str:
    """Return the name of a new Deployment of so many replicas, under an HPA."""
    name = f"llama-{next(_numbers)}"
    await asyncio.to_thread(cluster.deploy, name, namespace="inference", replicas=replicas)
    await asyncio.to_thread(
        cluster.autoscale, name, namespace="inference", policy="chat", tolerance=tolerance
    )
    return name


async def test_the_api_service_is_available_and_a_user_sees_the_number(
    served: Adapter, cluster: Cluster
):
    """``kubectl get --raw``, through aggregator, front proxy and authorization."""
    seen = await asyncio.to_thread(cluster.plane.get, f"{RAW}?labelSelector=policy%3Dchat")
    listed = await asyncio.to_thread(cluster.plane.get, "/apis/external.metrics.k8s.io/v1beta1")

    assert seen["kind"] == "ExternalMetricValueList"
    (item,) = seen["items"]
    assert (item["metricName"], item["value"]) == (METRIC, "3")
    assert listed["resources"]


async def test_an_hpa_follows_up_and_down_exactly(
    served: Adapter, cluster: Cluster, engine: Engine
):
    """3, then 23 at once, then 22: the step that the default tolerance hides; then back to 3."""
    name = await scaled(cluster, 1)
    took = {}
    for count in (3, 23, 22, 3):
        engine.carries(running=count * PER_REPLICA)
        took[count] = await cluster.until(
            lambda wanted=count: cluster.replicas(name, "inference") == wanted, f"{count} replicas"
        )
        await asyncio.sleep(2.0)  # two more syncs of the controller: nothing else may follow
        assert await asyncio.to_thread(cluster.replicas, name, "inference") == count

    print(
        json.dumps({"secondsUntilTheHpaFollowed": {str(k): round(v, 1) for k, v in took.items()}})
    )
    await asyncio.to_thread(cluster.remove, name, "inference")


async def test_the_default_tolerance_hides_the_steps_that_we_say_it_hides(
    served: Adapter, cluster: Cluster, engine: Engine
):
    """At 20 replicas 21 and 22 are published in vain, and 23 is followed."""
    name = await scaled(cluster, 20, tolerance=None)
    smallest = dead_zone(20).step_up
    for count in range(21, 20 + smallest):
        engine.carries(running=count * PER_REPLICA)
        await served.until_replicas(count)
        await asyncio.sleep(3.0)
        assert await asyncio.to_thread(cluster.replicas, name, "inference") == 20

    engine.carries(running=(20 + smallest) * PER_REPLICA)
    await cluster.until(
        lambda: cluster.replicas(name, "inference") == 20 + smallest, "the first step it follows"
    )
    await asyncio.to_thread(cluster.remove, name, "inference")


async def test_an_engine_that_is_gone_freezes_the_count_and_the_hpa_says_why(
    served: Adapter, cluster: Cluster, engine: Engine
):
    """Held, then an error: the count never moves, and describe shows our words."""
    name = await scaled(cluster, 3)
    await cluster.until(lambda: cluster.replicas(name, "inference") == 3, "3 replicas")

    await engine.stop()
    await cluster.until(
        lambda: cluster.conditions(name, "inference")["ScalingActive"]["status"] == "False",
        "ScalingActive False",
    )

    said = cluster.conditions(name, "inference")["ScalingActive"]
    assert said["reason"] == "FailedGetExternalMetric"
    assert "nothing listens there" in said["message"]
    assert await asyncio.to_thread(cluster.replicas, name, "inference") == 3
    await asyncio.to_thread(cluster.remove, name, "inference")


async def test_a_user_without_the_right_is_refused_with_the_shape_of_kubernetes(
    served: Adapter, cluster: Cluster, tmp_path: Path
):
    plane = cluster.plane
    eve = plane.ca.sign("eve")
    kubeconfig(tmp_path / "eve.conf", plane.server, plane.ca.certificate, eve)
    api = config.new_client_from_config(str(tmp_path / "eve.conf"))

    with pytest.raises(client.ApiException) as refused:
        await asyncio.to_thread(raw, api, plane.server + RAW)

    answer = json.loads(refused.value.body)
    assert (refused.value.status, answer["kind"], answer["reason"]) == (403, "Status", "Forbidden")
    assert 'User "eve" cannot' in answer["message"]


async def test_policies_of_two_namespaces_never_mix(
    tmp_path: Path, engine: Engine, pki: Pki, cluster: Cluster
):
    """The same policy name in two namespaces, with 3 and 7 replicas wanted."""
    directory = tmp_path / "policies"
    directory.mkdir()
    async with an_engine(running=7 * PER_REPLICA) as other:
        (directory / "a.yaml").write_text(policy_of(engine, top=40))
        second = policy_of(other, top=40).replace("namespace: inference", "namespace: other")
        (directory / "b.yaml").write_text(second)
        await asyncio.to_thread(cluster.namespace, "other")
        async with adapter(directory, pki=pki) as running:
            port = int(running.base.rpartition(":")[2])
            await asyncio.to_thread(cluster.register, port, pki.serving.certificate)
            names = {}
            for space in ("inference", "other"):
                names[space] = f"llama-{next(_numbers)}"
                await asyncio.to_thread(cluster.deploy, names[space], namespace=space, replicas=1)
                await asyncio.to_thread(
                    cluster.autoscale, names[space], namespace=space, policy="chat"
                )
            for space, count in (("inference", 3), ("other", 7)):
                await cluster.until(
                    lambda s=space, c=count: cluster.replicas(names[s], s) == c, f"{count} replicas"
                )
            for space, name in names.items():
                await asyncio.to_thread(cluster.remove, name, space)


async def test_a_restarted_api_server_makes_no_step_down(
    served: Adapter, cluster: Cluster, engine: Engine
):
    name = await scaled(cluster, 1)
    engine.carries(running=9 * PER_REPLICA)
    await cluster.until(lambda: cluster.replicas(name, "inference") == 9, "9 replicas")

    await asyncio.to_thread(cluster.plane.stop_one, "kube-apiserver")
    await asyncio.sleep(3.0)
    await asyncio.to_thread(cluster.plane.start_api_server)

    ends = asyncio.get_running_loop().time() + 6.0
    while asyncio.get_running_loop().time() < ends:
        assert await asyncio.to_thread(cluster.replicas, name, "inference") == 9
        await asyncio.sleep(0.2)
    engine.carries(running=11 * PER_REPLICA)
    await cluster.until(lambda: cluster.replicas(name, "inference") == 11, "11 replicas")
    await asyncio.to_thread(cluster.remove, name, "inference")
