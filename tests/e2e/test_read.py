"""What the adapter reads from a real engine, against what the engine's users counted."""
# ruff: noqa: T201 - the figures are what a run is read for

import asyncio
import json
import sys

import pytest

from adapter.fleet.metrics import Metric
from tests.e2e.engine import AT_ONCE, BLOCK_TOKENS, BLOCKS, FITTING, MODEL, READY_WITHIN, Vllm
from tests.e2e.reading import gained, read, read_at
from tests.e2e.users import Crowd, Request, crowd

pytestmark = pytest.mark.e2e

USERS = 3 * AT_ONCE
TOKENS = 90


def waited(people: Crowd) -> float:
    """Return how long all users together waited for their first token, in seconds."""
    return sum(request.first_after or 0.0 for request in people.requests)


def blocks(requests: list[Request], *, ahead: int = 0) -> int:
    """Return the KV blocks of those who got a token, and of ``ahead`` tokens still on the way."""
    return sum(
        -(-(len(request.prompt) + request.tokens + ahead) // BLOCK_TOKENS) for request in requests
    )


async def test_the_numbers_are_those_that_the_users_counted(engine: Vllm):
    """24 users, 8 at once: gauges while they are served, counters and TTFT when they were."""
    before = await read_at(engine, in_flight=0)

    async with crowd(engine, USERS, tokens=TOKENS) as people:
        during = await read_at(engine, in_flight=USERS)
        await people.served()
    after = await read_at(engine, in_flight=0)

    assert all(request.whole for request in people.requests)
    assert during.values[Metric.REQUESTS_RUNNING] == AT_ONCE
    assert during.values[Metric.REQUESTS_WAITING] == USERS - AT_ONCE
    asked = sum(len(request.prompt) for request in people.requests)
    assert gained(Metric.PROMPT_TOKENS, before, after) == asked
    assert gained(Metric.GENERATION_TOKENS, before, after) == USERS * TOKENS
    assert gained(Metric.REQUESTS_FINISHED, before, after) == USERS
    assert before.ttft is not None
    assert after.ttft is not None
    assert after.ttft.count - before.ttft.count == USERS
    engines_view = after.ttft.sum_seconds - before.ttft.sum_seconds
    print(f"TTFT sum: engine {engines_view:.3f} s, users {waited(people):.3f} s")
    assert engines_view <= waited(people)
    assert engines_view == pytest.approx(waited(people), rel=0.25)


async def test_kv_usage_is_the_share_of_blocks_that_the_tokens_fill(engine: Vllm):
    """Between what users had before the scrape and after it, one block more per request."""
    before = await read_at(engine, in_flight=0)

    async with crowd(engine, AT_ONCE, tokens=FITTING) as people:
        await people.reached(FITTING // 3)
        least = blocks(people.requests)
        during = await read(engine)
        most = blocks(people.requests, ahead=BLOCK_TOKENS)

    used = during.values[Metric.KV_CACHE_USAGE] * BLOCKS
    print(f"KV blocks: {least} <= {used:.3f} <= {most}")
    assert before.values[Metric.KV_CACHE_USAGE] == 0.0
    assert used == pytest.approx(round(used))
    assert least <= used <= most


async def test_users_who_hang_up_are_not_counted_any_more(engine: Vllm):
    """What vllm#29928 got wrong: a mass abort left its requests in the gauges."""
    async with crowd(engine, USERS, tokens=TOKENS):
        await read_at(engine, in_flight=USERS)

    reading = await read_at(engine, in_flight=0)

    assert reading.values[Metric.KV_CACHE_USAGE] == 0.0


async def test_the_doctor_finds_nothing_missing(engine: Vllm):
    """Every canonical metric but the response cache, which vLLM does not have."""
    doctor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "adapter", "doctor", "-o", "json"),
        *("--engine-metrics", engine.metrics),
        stdout=asyncio.subprocess.PIPE,
    )
    said, _ = await doctor.communicate()

    facts = json.loads(said)
    assert doctor.returncode == 0, facts
    assert (facts["engine"], facts["model"]) == ("vllm", MODEL)
    assert facts["missing"] == {}
    assert facts["warnings"] == []
    assert set(facts["notExported"]) == {Metric.CACHE_HITS}
    assert 1.0 < facts["values"][Metric.MODEL_LOAD_SECONDS] < READY_WITHIN
