"""Request logs for tests: written by an engine whose preset is known, or by real ones."""

import math
import os
import random
from pathlib import Path

import pytest

from adapter.simulator.engine import Request
from adapter.simulator.presets import EnginePreset
from tests.simulator.stepper import Held, Stepper

REAL = ("llama31-8b_rtx4090", "llama31-8b_rtxpro6000", "qwen3-32b_2xrtxpro6000")

KNOWN = EnginePreset(
    name="known", a=0.02, b=4e-5, c=2e-7, e=0.01, alpha=1e-4, beta=0.0, kappa=1.0,
    kv_tokens=10**6, max_num_seqs=256, max_num_batched_tokens=2048, source="invented",
)  # fmt: skip


def real_log(name: str) -> Path:
    """Return the path of one of the real vLLM logs, or skip the test that wants it."""
    default = Path(__file__).parents[2].parent / "shared" / "traces"
    path = Path(os.environ.get("LEADTIME_TRACES", default)) / f"vllm_real_{name}.csv"
    if not path.exists():
        pytest.skip(f"NO TRACES: {path} is absent; set LEADTIME_TRACES to where they are")
    return path


def a_log(preset: EnginePreset = KNOWN, *, count: int = 120, rate: float = 8.0) -> bytes:
    """Return what ``preset`` would have logged of a Poisson stream of ``count`` requests."""
    chance, moment = random.Random(7), 1000.0
    requests = []
    for _ in range(count):
        moment += chance.expovariate(rate)
        prompt = 1 + round(chance.lognormvariate(6.0, 0.8))
        requests.append(Request(moment, prompt, chance.randint(2, 300)))
    stepper = Stepper(preset)
    for request in requests:
        stepper.submit(request)
    held = list(stepper.coming)
    stepper.advance(math.inf)
    lines = ["timestamp_s,input_tokens,output_tokens,queue_s,ttft_s,e2e_s", *map(_row, held)]
    return "\n".join(lines).encode()


def _row(held: Held) -> str:
    request = held.request
    queue, ttft, e2e = (
        moment - request.arrived_at
        for moment in (held.taken_at, request.first_token_at, request.finished_at)
    )
    tokens = f"{request.prompt_tokens},{request.output_tokens}"
    return f"{request.arrived_at!r},{tokens},{queue!r},{ttft!r},{e2e!r}"
