"""The fleet out of a real Prometheus is the one that a scrape of its targets gives."""

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds
from adapter.sources.clock import SystemClock
from adapter.sources.prometheus import PrometheusFleet, Question
from adapter.sources.prometheus_api import Access, PrometheusApi
from tests.fleet.expositions import FIXTURES, a_vllm_body
from tests.sources.prometheus_server import Exporters, Prometheus, a_prometheus

pytestmark = pytest.mark.slow

INTERVAL = Seconds(4.0)
"""Twice what this Prometheus scrapes at, so that a busy machine loses nothing."""

TOKENS = "vllm:generation_tokens_total 7"

DUMPS = sorted(FIXTURES.glob("*.prom"))
FLEETS = {
    "dumps": [dump.stem for dump in DUMPS],
    "three": [f"pod-{number}" for number in range(3)],
    "forty": [f"pod-{number}" for number in range(40)],
    "down": ["a", "b"],
    "stops": ["a"],
    "inference": ["a"],
}


@pytest.fixture(scope="module")
def exporters() -> Iterator[Exporters]:
    exporters = Exporters()
    for namespace, pods in FLEETS.items():
        exporters.bodies |= {f"{namespace}/{pod}": a_vllm_body(TOKENS, running=3) for pod in pods}
    exporters.bodies |= {f"dumps/{dump.stem}": dump.read_bytes() for dump in DUMPS}
    yield exporters
    exporters.close()


@pytest.fixture(scope="module")
def store(exporters: Exporters, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    path = tmp_path_factory.mktemp("prometheus")
    with a_prometheus(path, exporters, FLEETS) as running:
        pods = sum(map(len, FLEETS.values()))
        running.until(lambda one: one.value("count(count_over_time(up[1m]) > 1)") == pods)
        yield running


def a_fleet(store: Prometheus, **labels: str) -> PrometheusFleet:
    return PrometheusFleet(
        PrometheusApi(Access(store.url, Seconds(5.0))),
        Question("auto", INTERVAL, labels),
        partial(read_exposition, engine="auto", model=None),
        clock=SystemClock(),
    )


def healthy(store: Prometheus, namespace: str) -> None:
    """Wait until the last scrape of each pod succeeded: a busy machine may miss one."""
    store.until(lambda one: one.value(f'min(up{{namespace="{namespace}"}})') == 1)


async def seen(fleet: PrometheusFleet) -> FleetSnapshot:
    return await fleet.snapshot(SystemClock().now())


def samples(fleet: FleetSnapshot) -> dict[str, Reading | Gap]:
    return {one.name: one.sample for one in fleet.replicas}


async def test_every_recorded_engine_reads_as_a_direct_scrape_of_it_does(
    store: Prometheus, exporters: Exporters
):
    """All dumps that Prometheus itself accepts: names, labels, models, ranks, histograms."""
    if not DUMPS:
        pytest.skip(f"no recorded dumps: {FIXTURES} is not there, see LEADTIME_SHARED")
    fleet = a_fleet(store, namespace="dumps")

    through = samples(await seen(fleet))
    await fleet.close()

    equal = 0
    for pod, sample in through.items():
        body = exporters.bodies[f"dumps/{pod}"]
        assert body is not None
        direct = read_exposition(body, engine="auto", model=None, at=sample.at, target=pod)
        if isinstance(sample, Gap) and sample.cause is Cause.UNREACHABLE:
            continue  # Prometheus refuses the text as a whole
        if isinstance(direct, Gap):
            assert isinstance(sample, Gap), pod
            assert sample.cause in (direct.cause, Cause.STALE), pod
            continue
        assert sample == direct, pod
        equal += 1
    assert equal > len(DUMPS) // 2


async def test_the_number_of_questions_does_not_grow_with_the_pods(store: Prometheus):
    """Three pods or forty: two questions a tick."""
    asked = []
    for namespace in ("three", "forty"):
        api = PrometheusApi(Access(store.url))
        question = Question("vllm", INTERVAL, {"namespace": namespace})
        read = partial(read_exposition, engine="vllm", model=None)
        fleet = PrometheusFleet(api, question, read, clock=SystemClock())
        found = await seen(fleet)
        await fleet.close()
        asked.append((len(found.replicas), api.questions))

    assert asked == [(3, 2), (40, 2)]


async def test_two_scrapes_come_with_the_first_question(store: Prometheus):
    """Rates need no second tick, and times are those of the scrapes."""
    healthy(store, "three")
    fleet = a_fleet(store, namespace="three", pod="pod-1")

    (replica,) = (await seen(fleet)).replicas
    await fleet.close()

    assert replica.value(Metric.REQUESTS_RUNNING) == 3
    assert isinstance(replica.sample, Reading)
    assert replica.previous is not None
    assert 0 < replica.sample.at - replica.previous.at <= INTERVAL
    assert replica.sample.at == pytest.approx(time.time(), abs=2 * INTERVAL)
    assert replace(replica.previous, at=replica.sample.at) == replica.sample


async def test_what_is_down_is_a_gap_and_what_is_gone_leaves(
    store: Prometheus, exporters: Exporters
):
    healthy(store, "down")
    fleet = a_fleet(store, namespace="down")
    before = samples(await seen(fleet))

    exporters.bodies["down/b"] = None
    store.until(lambda one: one.value('up{namespace="down",pod="b"}') == 0)
    store.until(lambda one: one.value('up{namespace="down",pod="a"}') == 1)
    down = samples(await seen(fleet))
    store.loses(exporters, "down", "b")
    store.until(lambda one: one.value('count(up{namespace="down"})') == 1)
    gone = samples(await seen(fleet))
    await fleet.close()

    assert {type(sample) for sample in before.values()} == {Reading}
    assert isinstance(down["a"], Reading)
    assert isinstance(down["b"], Gap)
    assert down["b"].cause is Cause.UNREACHABLE
    assert "up is 0" in down["b"].detail
    assert set(gone) == {"a"}


async def test_a_series_that_stops_is_missing_at_once(store: Prometheus, exporters: Exporters):
    """The marker of a series that ended takes it out; its last value is not flat for minutes."""
    healthy(store, "stops")
    fleet = a_fleet(store, namespace="stops")
    (before,) = (await seen(fleet)).replicas
    exporters.bodies["stops/a"] = a_vllm_body(running=3)
    store.until(lambda one: one.value('vllm:generation_tokens_total{namespace="stops"}') is None)
    healthy(store, "stops")

    (after,) = (await seen(fleet)).replicas
    await fleet.close()

    assert before.value(Metric.GENERATION_TOKENS) == 7
    assert isinstance(after.sample, Reading)
    assert Metric.GENERATION_TOKENS not in after.sample.values
    assert after.value(Metric.REQUESTS_RUNNING) == 3


async def test_a_label_that_is_wrong_is_named_with_what_there_is(store: Prometheus):
    details = []
    for labels in ({"namespace": "inferense"}, {"namespce": "inference"}, {"pod": "a", "job": "x"}):
        fleet = a_fleet(store, **labels)
        (replica,) = (await seen(fleet)).replicas
        await fleet.close()
        assert isinstance(replica.sample, Gap)
        details.append(replica.sample.detail)

    assert "never 'inferense'; found 'd" in details[0]
    assert "did you mean 'inference'?" in details[0]
    assert "label namespce does not exist; found" in details[1]
    assert "did you mean 'namespace'?" in details[1]
    assert "label job is never 'x'; found 'engines'" in details[2]
