"""What simulated engines say is what the product reads: every number, to the last bit."""

import math
import os
from pathlib import Path

import pytest

from adapter.fleet.exposition import parse
from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Reading
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.exposition import vllm_exposition
from adapter.simulator.exposition_sglang import sglang_exposition
from adapter.simulator.exposition_triton import BLOCK, triton_exposition
from adapter.simulator.presets import EnginePreset, preset

STARTED, LOADED = 1_800_000_000.0, 1_800_000_075.5
LAW = preset("llama-3.1-70b-4xh100")


def an_engine(*, load: float = 12.0, until: float = 90.0) -> SimulatedEngine:
    """Return an engine in the middle of an overload, with cache hits and a queue."""
    engine = SimulatedEngine(LAW)
    for index in range(int(load * until)):
        engine.submit(Request(index / load, 1200 + index % 700, 150 + index % 99, index % 400))
    engine.advance(until)
    return engine


def a_thrashing_engine() -> SimulatedEngine:
    """Return an engine that has preempted."""
    law = EnginePreset(
        name="small", a=0.01, b=0.0, c=0.0, e=0.0, alpha=1e-5, beta=0.0, kv_tokens=3000, source=""
    )
    engine = SimulatedEngine(law)
    for _ in range(10):
        engine.submit(Request(0.0, 270, 200))
    engine.advance(1.9)
    assert engine.totals.preemptions > 0
    return engine


def read(body: bytes, engine: str) -> Reading:
    found = read_exposition(body, engine=engine, model="m", at=0.0, target="test")
    assert isinstance(found, Reading), found
    return found


def vllm(*engines: SimulatedEngine, model: str = "m") -> bytes:
    return vllm_exposition(*engines, model=model, started_at=STARTED, loaded_at=LOADED)


def sglang(*engines: SimulatedEngine) -> bytes:
    return sglang_exposition(*engines, model="m", started_at=STARTED, loaded_at=LOADED)


def common(engine: SimulatedEngine) -> dict[Metric, float]:
    """Return what vLLM and SGLang both tell."""
    totals = engine.totals
    return {
        Metric.REQUESTS_RUNNING: engine.running,
        Metric.REQUESTS_WAITING: engine.waiting,
        Metric.REQUESTS_DEFERRED: 0,
        Metric.KV_CACHE_USAGE: engine.kv_usage,
        Metric.KV_CACHE_USAGE_PEAK: engine.kv_usage,
        Metric.PROMPT_TOKENS: totals.prompt_tokens,
        Metric.CACHED_PROMPT_TOKENS: totals.cached_prompt_tokens,
        Metric.GENERATION_TOKENS: totals.generation_tokens,
        Metric.REQUESTS_FINISHED: totals.requests,
        Metric.REQUEST_SECONDS: totals.request_seconds,
        Metric.QUEUE_SECONDS: totals.queue_seconds,
        Metric.ENGINE_STEPS: totals.steps,
        Metric.MODEL_LOAD_SECONDS: 75.5,
    }


@pytest.mark.parametrize("engine", [an_engine(), a_thrashing_engine(), SimulatedEngine(LAW)])
def test_vllm_is_read_exactly(engine):
    reading = read(vllm(engine), "vllm")

    assert dict(reading.values) == {
        **common(engine),
        Metric.REQUESTS_REJECTED: 0,
        Metric.PREEMPTIONS: engine.totals.preemptions,
        Metric.PROCESS_START: STARTED,
    }
    assert reading.ttft == engine.ttft
    assert reading.missing.keys() == reading.unserved
    assert reading.warnings == ()


@pytest.mark.parametrize("engine", [an_engine(), SimulatedEngine(LAW)])
def test_sglang_is_read_exactly(engine):
    reading = read(sglang(engine), "sglang")

    assert dict(reading.values) == common(engine)
    assert reading.ttft == engine.ttft
    assert reading.missing.keys() == reading.unserved
    assert reading.warnings == ()


def test_triton_is_read_exactly_but_for_whole_blocks():
    """KV usage in blocks of 64 tokens; no token counters: its C++ backend has none."""
    engine = an_engine()

    reading = read(triton_exposition(engine, model="m", load_time=75.5), "triton")

    blocks = LAW.kv_tokens // BLOCK
    used = math.ceil(round(engine.kv_usage * LAW.kv_tokens) / BLOCK)
    assert dict(reading.values) == {
        Metric.REQUESTS_RUNNING: engine.running,
        Metric.REQUESTS_WAITING: engine.waiting,
        Metric.KV_CACHE_USAGE: used / blocks,
        Metric.KV_CACHE_USAGE_PEAK: used / blocks,
        Metric.REQUESTS_FINISHED: engine.totals.requests,
        Metric.ENGINE_STEPS: engine.totals.steps,
        Metric.MODEL_LOAD_SECONDS: 75.5,
    }
    assert reading.ttft.counts == engine.ttft.counts
    assert reading.ttft.bounds == pytest.approx(engine.ttft.bounds)
    assert reading.ttft.sum_seconds == pytest.approx(engine.ttft.sum_seconds)
    assert reading.warnings == ()


def test_prompt_tokens_by_source_add_up():
    """Computed and cached are the whole prompt, as in vLLM."""
    engine = an_engine()

    sources = [
        sample.value
        for sample in parse(vllm(engine))
        if sample.series.name == "vllm:prompt_tokens_by_source_total"
    ]

    cached = engine.totals.cached_prompt_tokens
    assert sources == [engine.totals.prompt_tokens - cached, cached, 0]


@pytest.mark.parametrize(("render", "engine"), [(vllm, "vllm"), (sglang, "sglang")])
def test_data_parallel_ranks_add_up_and_stay_apart(render, engine):
    """A busy and an idle rank: counts add up, usage is the mean, and its peak the busy one's."""
    busy, idle = an_engine(), SimulatedEngine(LAW)

    reading = read(render(busy, idle), engine)

    assert reading.ranks.keys() >= {"0", "1"}
    assert reading.values[Metric.REQUESTS_RUNNING] == busy.running
    assert reading.values[Metric.KV_CACHE_USAGE] == busy.kv_usage / 2
    assert reading.values[Metric.KV_CACHE_USAGE_PEAK] == busy.kv_usage
    assert reading.ranks["0"].values[Metric.ENGINE_STEPS] == busy.totals.steps
    assert reading.ranks["1"].values[Metric.ENGINE_STEPS] == 0
    assert reading.ttft == busy.ttft


def test_a_models_name_may_hold_anything():
    """Quotes, backslashes and line feeds are escaped, and read back."""
    name = 'a "b" \\n c\nd'

    found = read_exposition(
        vllm(SimulatedEngine(LAW), model=name), engine="auto", model=name, at=0.0, target="test"
    )

    assert found.model == name


def test_a_vllm_body_is_as_long_as_a_real_one():
    """48 kB: reading simulated engines costs what reading real ones costs."""
    body = vllm(an_engine(), model="meta-llama/Llama-3.3-70B-Instruct")

    assert 45_000 < len(body) < 56_000


@pytest.mark.parametrize(
    "body",
    [
        vllm(an_engine(), an_engine(load=3.0)),
        sglang(an_engine()),
        triton_exposition(an_engine(), model="m", load_time=3.0),
    ],
    ids=["vllm", "sglang", "triton"],
)
def test_the_library_reads_every_line(body):
    """No family twice, no series twice, buckets that rise and end with the count."""
    samples = parse(body)

    keys = [(sample.series.name, *sorted(sample.series.labels.items())) for sample in samples]
    heads = [line for line in body.decode().splitlines() if line.startswith("# TYPE ")]
    assert len(set(keys)) == len(keys) > 50
    assert len(set(heads)) == len(heads)


def test_vllm_families_are_those_of_a_real_body():
    """Nothing invented: every ``vllm:`` name is in a dump of 0.32."""
    dump = _fixture("vllm-0.32.0-real_cpu-under_load_3.prom")

    real, ours = (
        {
            line.split()[2:4].__str__()
            for line in text.splitlines()
            if line.startswith("# TYPE vllm")
        }
        for text in (dump, vllm(an_engine()).decode())
    )

    assert ours <= real
    assert len(ours) > 0.9 * len(real)


def _fixture(name: str) -> str:
    default = Path(__file__).parents[2].parent / "shared"
    path = Path(os.environ.get("LEADTIME_SHARED", default)) / "fixtures" / name
    if not path.exists():
        pytest.skip(f"NO FIXTURES: {path} is absent; set LEADTIME_SHARED to where they are")
    return path.read_text()
