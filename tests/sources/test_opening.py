import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapter.controller.errors import SourceError
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.sources.opening import LocalSources
from adapter.sources.scrape import Scraper
from tests.build import T0
from tests.fakes import FakeClock, FakeTargets, a_target
from tests.sources.servers import EXPOSITION, hanging, request, saying, serving

BOTH = EXPOSITION + b'vllm:num_requests_waiting{model_name="m"} 5\n'


def a_policy(source: dict[str, object], **spec: object) -> Policy:
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": "chat", "namespace": "inference"},
            "spec": {"source": source, "replicas": {"min": 1, "max": 9}, **spec},
        }
    )


@pytest.fixture
async def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def sources(clock: FakeClock) -> AsyncIterator[LocalSources]:
    async with Scraper(clock) as scraper:
        yield LocalSources(scraper, clock)


async def test_addresses_are_scraped_and_read_as_the_policy_says(sources: LocalSources):
    async with serving(saying(EXPOSITION)) as url:
        fleet = sources.open(a_policy({"static": {"urls": [url]}}, engine="vllm"))
        (replica,) = (await fleet.snapshot(T0)).replicas
        await fleet.close()

    assert replica.name == url
    assert replica.value(Metric.REQUESTS_RUNNING) == 3


async def test_the_engine_and_model_of_the_policy_reach_the_reader(sources: LocalSources):
    body = b'vllm:num_requests_running{model_name="m"} 3\n'
    async with serving(saying(body)) as url:
        source = {"static": {"urls": [url]}}
        gaps = []
        for asked in ({"engine": "sglang"}, {"engine": "vllm", "model": "other"}):
            fleet = sources.open(a_policy(source, **asked))
            gaps.append((await fleet.snapshot(T0)).replicas[0].sample)
            await fleet.close()

    assert [gap.cause for gap in gaps if isinstance(gap, Gap)] == [
        Cause.NO_ENGINE,
        Cause.WRONG_MODEL,
    ]


@pytest.mark.parametrize(
    ("static", "limit"),
    [({"timeout": "100ms", "interval": "1s"}, "0.1 s"), ({"interval": "200ms"}, "0.2 s")],
)
async def test_a_scrape_has_the_policys_timeout_or_else_one_interval(
    sources: LocalSources, static: dict[str, object], limit: str
):
    async with serving(hanging) as url:
        fleet = sources.open(a_policy({"static": {"urls": [url], **static}}))
        samples = [(await fleet.snapshot(T0)).replicas[0].sample]
        while "not answered its first scrape" in samples[-1].detail:  # type: ignore[union-attr]
            await asyncio.sleep(0.01)
            samples.append((await fleet.snapshot(T0)).replicas[0].sample)
        await fleet.close()

    assert isinstance(samples[-1], Gap)
    assert samples[-1].cause is Cause.TIMEOUT
    assert f"within {limit}" in samples[-1].detail


async def test_two_policies_over_one_engine_share_its_scrapes(sources: LocalSources):
    """One plans for chat, one is a trial of other limits: the engine is asked once."""
    asked = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request(reader):
            asked.append(1)
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(EXPOSITION)}\r\n\r\n"
            writer.write(head.encode() + EXPOSITION)

    async with serving(answer) as url:
        fleets = [sources.open(a_policy({"static": {"urls": [url]}})) for _ in range(2)]
        snapshots = await asyncio.gather(*(fleet.snapshot(T0) for fleet in fleets))
        for fleet in fleets:
            await fleet.close()

    read = [fleet.replicas[0].value(Metric.REQUESTS_RUNNING) for fleet in snapshots]
    assert (read, len(asked)) == ([3, 3], 1)


@pytest.mark.parametrize(("interval", "limit"), [("1s", 5.0), ("15s", 30.0)])
async def test_an_answer_is_stale_after_two_intervals_and_five_seconds_at_least(
    sources: LocalSources, interval: str, limit: float
):
    policy = a_policy({"static": {"urls": ["http://unused"], "interval": interval}})
    async with serving(saying(EXPOSITION)) as url, serving(hanging) as silent:
        targets = FakeTargets([a_target("a")])
        targets.targets = (_at(url),)
        fleet = sources.scraped(policy, targets, timeout=Seconds(60))
        await fleet.snapshot(T0)
        targets.targets = (_at(silent),)
        within = (await fleet.snapshot(Timestamp(T0 + limit))).replicas[0]
        beyond = (await fleet.snapshot(Timestamp(T0 + limit + 1))).replicas[0]
        await fleet.close()

    assert within.reading is not None
    assert isinstance(beyond.sample, Gap)
    assert beyond.sample.cause is Cause.STALE


def _at(url: str):
    target = a_target("a")
    return type(target)(uid=target.uid, name=target.name, url=url)


async def test_recorded_dumps_are_read_and_do_not_grow_stale(sources: LocalSources, tmp_path: Path):
    (tmp_path / "a.prom").write_bytes(BOTH)
    fleet = sources.open(a_policy({"static": {"directory": str(tmp_path)}}))

    await fleet.snapshot(T0)
    (replica,) = (await fleet.snapshot(Timestamp(T0 + 86_400))).replicas
    await fleet.close()

    assert replica.value(Metric.REQUESTS_WAITING) == 5


def test_a_source_that_is_not_built_yet_is_refused_by_name():
    with pytest.raises(SourceError, match=r"policy inference/chat: .*pods are not read yet"):
        LocalSources(None, FakeClock()).open(a_policy({"pods": {}}))  # type: ignore[arg-type]


async def test_a_prometheus_is_asked_as_the_policy_says(sources: LocalSources):
    """It is not there, and the fleet says so in place of its replicas."""
    fleet = sources.open(a_policy({"prometheus": {"url": "http://u:secret@127.0.0.1:1/x"}}))

    (replica,) = (await fleet.snapshot(T0)).replicas
    await fleet.close()

    assert isinstance(replica.sample, Gap)
    assert replica.sample.cause is Cause.UNREACHABLE
    assert replica.sample.detail.startswith("prometheus http://127.0.0.1:1/x: no connection")


@pytest.mark.parametrize(
    "wrong", [{"labels": {"app.kubernetes.io/name": "x"}}, {"replicaLabel": "pod-name"}]
)
def test_what_cannot_be_a_label_is_refused(wrong: dict[str, object]):
    """It would change the question."""
    source = {"prometheus": {"url": "http://prometheus", **wrong}}

    with pytest.raises(SourceError, match=r"in source\.prometheus is no label"):
        LocalSources(None, FakeClock()).open(a_policy(source))  # type: ignore[arg-type]
