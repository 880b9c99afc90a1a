"""Engines whose step law is known: the parameters, and where each set comes from."""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds

_KERNELS: Final = "aiconfigurator 0.12 grid for vLLM 0.24, fitted"
_LOG: Final = "fitted to a real vLLM 0.19 request log of LLMServingSim 2.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePreset:
    """One model on one machine; times in seconds, per token or sequence where they say so."""

    name: str
    a: float
    """Reading the weights: the least that a step takes."""

    b: float
    """Per decoding sequence."""

    c: float
    """Per token of context of the decoding sequences: reading the KV cache."""

    e: float
    """Of a step that computes prompts."""

    alpha: float
    """Per prompt token computed."""

    beta: float
    """Per square of a prompt token: attention within the prompt."""

    kv_tokens: int
    """Tokens that the KV cache holds."""

    max_num_seqs: int = 1024
    max_num_batched_tokens: int = 8192
    kappa: float = 1.15
    """1 when fitted to a live log; 1.15 for kernel data, which lacks scheduler and sampler."""

    api_seconds: float = 0.015
    """From the step's end to the client's first token (BLIS)."""

    token_seconds: float = 46e-6
    """Per output token, paid when the request ends (BLIS)."""

    source: str

    def step_seconds(self, n: int, context: int, prompt: int, quadratic: float) -> float:
        """Return how long a step takes with ``n`` decoding sequences and ``prompt`` tokens."""
        base = max(self.a, self.e + self.alpha * prompt) if prompt else self.a
        return self.kappa * (self.b * n + self.c * context + base + self.beta * quadratic)

    def isolated_prefill_seconds(self, prompt_tokens: int) -> Seconds:
        """Return the time to compute a prompt that has the engine to itself."""
        seconds, done = 0.0, 0
        while done < prompt_tokens:
            size = min(self.max_num_batched_tokens, prompt_tokens - done)
            seconds += self.step_seconds(0, 0, size, float((done + size) ** 2 - done**2))
            done += size
        return Seconds(seconds)


PRESETS: Final = (
    EnginePreset(
        name="llama-3.1-8b-h100", a=6.3e-3, b=12.8e-6, c=41.0e-9, e=2.1e-3, alpha=18.9e-6,
        beta=0.64e-9, kv_tokens=440_000, source=_KERNELS,
    ),
    EnginePreset(
        name="qwen3-32b-2xh100", a=13.5e-3, b=26.5e-6, c=42.9e-9, e=4.8e-3, alpha=48.2e-6,
        beta=1.16e-9, kv_tokens=318_000, source=_KERNELS,
    ),
    EnginePreset(
        name="llama-3.1-70b-4xh100", a=15.2e-3, b=32.2e-6, c=26.7e-9, e=8.5e-3, alpha=55.9e-6,
        beta=1.64e-9, kv_tokens=484_016, source=f"{_KERNELS}; KV from BLIS (30,251 blocks)",
    ),
    EnginePreset(
        name="llama-3.1-8b-rtx4090", a=18.0e-3, b=19.4e-6, c=160e-9, e=4.1e-3, alpha=96e-6,
        beta=0.0, kv_tokens=41_408, max_num_seqs=256, max_num_batched_tokens=2048, kappa=1.0,
        source=_LOG,
    ),
    EnginePreset(
        name="llama-3.1-8b-rtxpro6000", a=12.4e-3, b=19.4e-6, c=98e-9, e=2.1e-3, alpha=47.9e-6,
        beta=0.0, kv_tokens=600_000, max_num_seqs=128, max_num_batched_tokens=2048, kappa=1.0,
        source=f"{_LOG}; the KV cache was not binding",
    ),
    EnginePreset(
        name="qwen3-32b-2xrtxpro6000", a=25.2e-3, b=5.3e-6, c=251e-9, e=10.0e-3, alpha=169e-6,
        beta=0.0, kv_tokens=400_000, max_num_seqs=128, max_num_batched_tokens=2048, kappa=1.0,
        source=f"{_LOG}; the KV cache was not binding",
    ),
)  # fmt: skip
"""By name; the first that fits an experiment, not a recommendation."""


def preset(name: str) -> EnginePreset:
    """Return the preset called ``name``.

    Raises:
        KeyError: no such preset; names those that there are.
    """
    for known in PRESETS:
        if known.name == name:
            return known
    names = ", ".join(known.name for known in PRESETS)
    raise KeyError(f"no engine preset {name!r}; there are {names}")
