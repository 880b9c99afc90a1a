"""Engines whose step law is known, and load times: the numbers, and where each comes from."""

import math
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds

_ADMISSION_SHARE: Final = 0.99

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

    def __post_init__(self) -> None:
        """Refuse what no engine starts with, or what would never end.

        Raises:
            ValueError: says which field, and what it may be.
        """
        if not 0 < self.max_num_seqs <= self.max_num_batched_tokens:
            raise ValueError(
                f"preset {self.name}: max_num_seqs is {self.max_num_seqs}, expected 1 to "
                f"max_num_batched_tokens ({self.max_num_batched_tokens})"
            )
        if self.kv_tokens < 1:
            raise ValueError(f"preset {self.name}: kv_tokens is {self.kv_tokens}, expected 1 up")
        for field in ("a", "b", "c", "e", "alpha", "beta", "kappa", "api_seconds", "token_seconds"):
            value = getattr(self, field)
            least = "above 0" if field in ("a", "kappa") else "0 or more"
            if not math.isfinite(value) or value < 0 or (value == 0 and least == "above 0"):
                raise ValueError(f"preset {self.name}: {field} is {value}, expected {least}")

    @property
    def admissible_tokens(self) -> int:
        """Return how much of the KV cache new requests may fill, so that others can grow."""
        return math.floor(_ADMISSION_SHARE * self.kv_tokens)

    def step_seconds(self, n: int, context: int, prompt: int, quadratic: float) -> float:
        """Return how long a step takes with ``n`` decoding sequences and ``prompt`` tokens."""
        base = max(self.a, self.e + self.alpha * prompt)
        return self.kappa * (self.b * n + self.c * context + base + self.beta * quadratic)

    def isolated_prefill_seconds(self, prompt_tokens: int) -> Seconds:
        """Return the time to compute a prompt that has the engine to itself."""
        seconds, done = 0.0, 0
        while done < prompt_tokens:
            size = min(self.max_num_batched_tokens, prompt_tokens - done)
            seconds += self.step_seconds(0, 0, size, float((done + size) ** 2 - done**2))
            done += size
        return Seconds(seconds)


@dataclass(frozen=True, slots=True)
class StepLaw:
    """The parameters of a step with the overhead multiplied in: what an engine computes with."""

    least: float
    """The longer of reading the weights and beginning a prefill."""

    sequence: float
    context: float
    prefill: float
    token: float
    square: float

    @classmethod
    def of(cls, preset: EnginePreset) -> "StepLaw":
        """Return the law of ``preset``."""
        least = max(preset.a, preset.e)
        parts = (least, preset.b, preset.c, preset.e, preset.alpha, preset.beta)
        return cls(*(preset.kappa * part for part in parts))


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
        name="llama-3.1-70b-8xh100", a=9.9e-3, b=23.2e-6, c=14.0e-9, e=7.0e-3, alpha=37.9e-6,
        beta=0.41e-9, kv_tokens=1_300_000,
        source=f"{_KERNELS}; KV calculated: 8 GPUs x 72 GB - 141 GB of weights, 320 KiB a token",
    ),
    EnginePreset(
        name="qwen3-32b-fp8-h100", a=23.2e-3, b=58e-6, c=53.4e-9, e=10.6e-3, alpha=57.7e-6,
        beta=1.44e-9, kv_tokens=140_000,
        source=f"{_KERNELS}; KV calculated: 72 GB - 34 GB of weights, 256 KiB a token",
    ),
    EnginePreset(
        name="llama-3.1-8b-rtx4090", a=18.0e-3, b=19.4e-6, c=160e-9, e=4.1e-3, alpha=96e-6,
        beta=0.0, kv_tokens=41_408, max_num_seqs=128, max_num_batched_tokens=2048, kappa=1.0,
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
"""What was measured, not what is recommended; ``leadtime fit-engine`` makes one from a log."""

LOAD_SECONDS: Final = {
    "warm": Seconds(20.0),
    "fast": Seconds(60.0),
    "typical": Seconds(240.0),
    "slow": Seconds(600.0),
}
"""Mean load times: weights in host memory; local disk and compile cache; pulled and compiled; new
node, image and object store. From public measurements (evaluation.md section 5)."""


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
