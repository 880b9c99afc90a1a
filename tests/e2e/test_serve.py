"""What the adapter publishes while a real engine is loaded, full, frozen and killed."""
# ruff: noqa: T201 - the figures are what a run is read for

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.fleet.metrics import Metric
from tests.cli.adapters import Adapter, adapter
from tests.e2e.engine import AT_ONCE, FITTING, MODEL, OVERFLOWING, Vllm
from tests.e2e.reading import gained, read
from tests.e2e.users import crowd

pytestmark = pytest.mark.e2e

USERS = 3 * AT_ONCE
WANTED = 3
"""The replicas for them, at ``AT_ONCE`` requests in flight each."""

INTERVAL = 1.0
DELAY = 6.0
STALE_AFTER = 8.0
PATIENCE = 30.0
"""After so many seconds without a token a vLLM with work is stalled."""

POLICY = f"""\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {{name: chat, namespace: inference}}
spec:
  engine: vllm
  model: {MODEL}
  source:
    static: {{urls: ["%s"], interval: {INTERVAL:g}s}}
  replicas: {{min: 1, max: 12}}
  signals:
    queue: {{targetInFlight: {AT_ONCE}, headroom: 1.0}}
    kvCache: %s
    ttft: null
  scaleDown: {{delay: {DELAY:g}s}}
  staleAfter: {STALE_AFTER:g}s
"""


@pytest.fixture
def policies(tmp_path: Path, engine: Vllm) -> Path:
    """Return a directory with one policy over the engine, which looks at the queue alone."""
    (tmp_path / "chat.yaml").write_text(POLICY % (engine.metrics, "null"))
    return tmp_path


@asynccontextmanager
async def watched(running: Adapter) -> AsyncIterator[list[int | None]]:
    """Ask five times a second, and keep the answers; None is an error."""
    answers: list[int | None] = []

    async def follow() -> None:
        while True:
            answers.append(await running.replicas())
            await asyncio.sleep(0.2)

    following = asyncio.create_task(follow())
    try:
        yield answers
    finally:
        following.cancel()
        await asyncio.wait({following})
    assert following.cancelled(), following.exception()


async def until(running: Adapter, true: Callable[[], Awaitable[bool]]) -> float:
    """Ask ten times a second, as two cores have better to do; return when it was true."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 2 * PATIENCE
    while not await true():
        said = "\n".join(running.said)
        assert loop.time() < end, f"it did not come true; the adapter said:\n{said}"
        await asyncio.sleep(0.1)
    return loop.time()


async def until_replicas(running: Adapter, count: int | None) -> float:
    """Return when ``count`` was served; None is an error."""

    async def served() -> bool:
        return await running.replicas() == count

    return await until(running, served)


async def until_said(running: Adapter, name: str, **labels: str) -> float:
    """Return when the adapter's own metrics first had a value above 0 for it."""
    wanted = {"namespace": "inference", "policy": "chat", **labels}

    async def said() -> bool:
        _, text = await running.get("/metrics")
        return any(
            sample.name == name and sample.value > 0 and wanted.items() <= sample.labels.items()
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        )

    return await until(running, said)


async def until_held(running: Adapter, reason: str) -> float:
    return await until_said(running, "leadtime_hold_until_timestamp_seconds", reason=reason)


async def test_up_at_once_under_load_then_hold_then_down(engine: Vllm, policies: Path):
    """24 users at 8 a replica: three. Gone: three for the delay, then one."""
    loop = asyncio.get_running_loop()
    async with adapter(policies) as running:
        await until_replicas(running, 1)
        async with crowd(engine, USERS, tokens=FITTING):
            arrived = loop.time()
            up = await until_replicas(running, WANTED)
            async with watched(running) as loaded:
                await asyncio.sleep(3.0)
        left = loop.time()
        await until_held(running, "ScaleDownDelay")
        async with watched(running) as held:
            await asyncio.sleep(left + DELAY - 2 * INTERVAL - loop.time())
        down = await until_replicas(running, 1)

    print(f"up {up - arrived:.2f} s after the users came, down {down - left:.2f} s after they left")
    assert up - arrived < 4 * INTERVAL
    assert set(loaded) == {WANTED}
    assert set(held) == {WANTED}
    assert DELAY - 2 * INTERVAL < down - left < DELAY + 4 * INTERVAL


async def test_a_full_kv_cache_is_seen_and_asks_for_more_than_the_requests_do(
    engine: Vllm, policies: Path
):
    """8 users are one replica; what they write is more than its KV cache, so two.

    All 8 may run, so those that wait were thrown out; in the end all have their whole answer.
    """
    (policies / "chat.yaml").write_text(POLICY % (engine.metrics, "{target: 0.8}"))
    before, seen = await read(engine), []
    async with adapter(policies) as running:
        await until_replicas(running, 1)
        async with crowd(engine, AT_ONCE, tokens=OVERFLOWING) as people, watched(running) as counts:
            while not people.all_served:
                seen.append((await read(engine)).values)
                await asyncio.sleep(INTERVAL / 2)
    after = await read(engine)

    fullest = max(values[Metric.KV_CACHE_USAGE] for values in seen)
    waiting = max(values[Metric.REQUESTS_WAITING] for values in seen)
    preempted = gained(Metric.PREEMPTIONS, before, after)
    reasons = [line.partition("because=")[2] for line in running.said if "published=2" in line]
    print(f"KV usage to {fullest:.3f}, {waiting:g} waiting, {preempted:g} thrown out; {reasons}")
    assert all(request.whole for request in people.requests)
    assert gained(Metric.GENERATION_TOKENS, before, after) == AT_ONCE * OVERFLOWING
    assert preempted >= 1
    assert waiting >= 1
    assert 0.8 < fullest <= 1.0
    assert set(counts) == {1, 2}
    assert reasons[0].startswith("'kvCache: 1 x usage ")


async def test_a_frozen_engine_is_replaced_and_never_given_up(engine: Vllm, policies: Path):
    """Its numbers stand still and /health is 200: after 30 s it is stalled, and one more is asked.

    Once it goes on, all users get all of their tokens, and the replacement is taken back.
    """
    loop = asyncio.get_running_loop()
    async with adapter(policies) as running, crowd(engine, USERS, tokens=FITTING) as people:
        await until_replicas(running, WANTED)
        async with watched(running) as answers:
            with engine.frozen():
                frozen = loop.time()
                await until_said(
                    running,
                    "leadtime_condition",
                    type="ReplicasStalled",
                    reason="NoProgress",
                )
                replaced = await until_replicas(running, WANTED + 1)
                healthy = engine.healthy
                said = (await read(engine)).values
            thawed = loop.time()
            serving = await until_said(running, "leadtime_serving_replicas")
        await people.served()
        await until_replicas(running, 1)

    print(f"replaced {replaced - frozen:.1f} s after it froze, serving {serving - thawed:.1f} s")
    assert healthy
    assert said[Metric.REQUESTS_RUNNING] + said[Metric.REQUESTS_WAITING] == USERS
    assert PATIENCE - 2 * INTERVAL < replaced - frozen < PATIENCE + 8 * INTERVAL
    assert serving - thawed < 8 * INTERVAL
    assert set(answers) == {WANTED, WANTED + 1}
    assert all(request.whole for request in people.requests)


async def test_a_killed_engine_holds_the_count_then_answers_an_error(engine: Vllm, policies: Path):
    """Metrics stale for some seconds, then gone: hold, then an error that says so; never less."""
    loop = asyncio.get_running_loop()
    async with adapter(policies) as running, crowd(engine, USERS, tokens=FITTING) as people:
        await until_replicas(running, WANTED)
        async with watched(running) as answers:
            engine.kill_core()
            killed = loop.time()
            gone = await until_held(running, "MetricsGap")
            refused = await until_replicas(running, None)
            status, answer = await running.metric()
            await asyncio.sleep(2 * INTERVAL)
        await people.served()

    print(f"gone {gone - killed:.1f} s after the kill, refused {refused - killed:.1f} s")
    print(answer["message"])
    held = [count for count in answers if count is not None]
    assert set(held) == {WANTED}
    assert answers == [*held, *[None] * (len(answers) - len(held))]
    assert STALE_AFTER - INTERVAL < refused - gone < STALE_AFTER + 3 * INTERVAL
    assert (status, answer["kind"]) == (503, "Status")
    assert "stale: last sample" in answer["message"]
    assert engine.metrics in answer["message"]
    assert not any(request.whole for request in people.requests)
