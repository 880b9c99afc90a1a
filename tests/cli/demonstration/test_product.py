"""The demo's adapter over real sockets: scrape, decision, TLS, front proxy, metric."""

import asyncio
import contextlib
import ssl
from contextlib import aclosing

import pytest

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.aggregator import AggregatedMetric
from adapter.cli.demonstration.deployment import Deployment
from adapter.cli.demonstration.product import Product, product
from adapter.cli.demonstration.wire import SERVER_NAME
from adapter.controller.errors import SourceError
from adapter.fleet.units import Timestamp
from adapter.policy.finding import Severity
from adapter.policy.lint import lint
from adapter.policy.load import read_policies
from adapter.simulator.clock import SharedClock
from adapter.simulator.starts import LoadTimes


@pytest.fixture
def clock():
    return SharedClock(scene.DAYBREAK, speed=1000.0)


@pytest.fixture
async def adapter(clock):
    """Serve over two idle pods; the loop runs only in ``ticking``."""
    deployment = Deployment(
        scene.NAME,
        model=scene.MODEL,
        preset=scene.PRESET,
        load_times=LoadTimes(scene.LOAD_TIME, seed=1),
        clock=clock,
    )
    async with aclosing(deployment), product(deployment, clock=clock, port=0) as adapter:
        await deployment.open(2)
        yield adapter


def asked(adapter: Product) -> AggregatedMetric:
    return AggregatedMetric(adapter.metric_url, trust=adapter.aggregator, server_name=SERVER_NAME)


@contextlib.asynccontextmanager
async def ticking(adapter: Product, clock: SharedClock, seconds: float):
    """Let the adapter tick for ``seconds`` of fleet time."""
    tasks = [asyncio.create_task(job) for job in (clock.run(), adapter.supervisor.run())]
    try:
        await clock.sleep_until(Timestamp(clock.now() + seconds))
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_the_policy_that_is_shown_lints_without_a_warning():
    placed, findings = read_policies(scene.POLICY, "demo.yaml")

    assert len(placed) == 1
    assert {found.severity for found in (*findings, *lint(placed))} <= {Severity.INFO}


def test_the_hpa_has_the_bounds_of_the_policy():
    (placed,), _ = read_policies(scene.POLICY, "demo.yaml")
    replicas = placed.policy.spec.replicas

    assert (scene.HPA.min_replicas, scene.HPA.max_replicas) == (replicas.min, replicas.max)


async def test_the_front_proxy_reads_the_count_over_tls(adapter, clock):
    """Two idle pods: 2 replicas, as 2,000 milli, in exactly one item."""
    async with ticking(adapter, clock, 12), asked(adapter) as metric:
        assert await metric.read() == (2000,)

    assert (metric.reads, metric.failed_reads) == (1, 0)


async def test_before_the_first_decision_the_error_says_so(adapter):
    async with asked(adapter) as metric:
        with pytest.raises(SourceError, match="has no decision yet"):
            await metric.read()

    assert (metric.reads, metric.failed_reads) == (1, 1)


async def test_headers_without_the_front_proxys_certificate_are_worth_nothing(adapter, clock):
    """The same request, the adapter's CA trusted, but no client certificate: 403."""
    stranger = ssl.create_default_context(cadata=adapter.serving_ca.decode("ascii"))
    url = adapter.metric_url
    async with (
        ticking(adapter, clock, 12),
        AggregatedMetric(url, trust=stranger, server_name=SERVER_NAME) as metric,
    ):
        with pytest.raises(SourceError, match="Forbidden"):
            await metric.read()


async def test_a_certificate_under_another_name_is_not_believed(adapter):
    url = adapter.metric_url
    async with AggregatedMetric(url, trust=adapter.aggregator, server_name="other.svc") as metric:
        with pytest.raises(SourceError, match="certificate"):
            await metric.read()


async def test_an_adapter_that_is_gone_is_an_error_with_its_address(adapter):
    async with AggregatedMetric(
        "https://127.0.0.1:1/apis", trust=adapter.aggregator, server_name=SERVER_NAME
    ) as metric:
        with pytest.raises(SourceError, match=r"GET https://127.0.0.1:1/apis"):
            await metric.read()
