"""A simulated engine's ``/metrics`` as SGLang 0.5.23 answers it.

What the product reads is exact at every moment: the real one writes its gauges after a prefill
and every 40 decode steps.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from adapter.fleet.units import Timestamp
from adapter.simulator.engine import SimulatedEngine
from adapter.simulator.exposition_text import ExpositionText, Labels, distributions

Rank = tuple[Labels, SimulatedEngine]
"""A data-parallel rank with the labels of its scheduler."""


def sglang_exposition(
    *engines: SimulatedEngine, model: str, started_at: Timestamp, loaded_at: Timestamp
) -> bytes:
    """Return what SGLang would answer now, with one of ``engines`` for each data-parallel rank.

    As started with ``--bucket-time-to-first-token`` and vLLM's buckets, which the engine counts
    in, and with every request streamed. Its registry has neither ``process_*`` nor ``_created``.
    """
    several = len(engines) > 1
    ranks = [
        (
            {
                **dict.fromkeys(("tp_rank", "pp_rank", "moe_ep_rank"), "0"),
                **({"dp_rank": str(rank)} if several else {}),
                "engine_type": "unified",
                "model_name": model,
            },
            engine,
        )
        for rank, engine in enumerate(engines)
    ]
    text = ExpositionText()
    for name, read in _GAUGES.items():
        text.family(f"sglang:{name}", "gauge", [(own, read(engine)) for own, engine in ranks])
    for name in _UNUSED:
        text.family(f"sglang:{name}", "gauge", [(own, 0.0) for own, _ in ranks])
    text.family(
        "sglang:startup_time_seconds",
        "gauge",
        [({**own, "phase": "scheduler_e2e"}, float(loaded_at - started_at)) for own, _ in ranks],
    )
    _counters(text, ranks)
    _histograms(text, ranks)
    return text.body()


def _counters(text: ExpositionText, ranks: Sequence[Rank]) -> None:
    totals = [(own, engine.totals) for own, engine in ranks]
    text.family(
        "sglang:realtime_tokens_total",
        "counter",
        [
            ({**own, "mode": mode}, float(value))
            for own, done in totals
            for mode, value in (
                ("prefill_compute", done.prompt_tokens - done.cached_prompt_tokens),
                ("prefill_cache", done.cached_prompt_tokens),
                ("decode", done.generation_tokens),
            )
        ],
    )
    passes = [({**own, "mode": "decode_cuda_graph"}, float(done.steps)) for own, done in totals]
    text.family("sglang:cuda_graph_passes_total", "counter", passes)
    served = [({**_endpoint(own), "is_streaming": "true"}, done) for own, done in totals]
    for name, samples in (
        ("prompt_tokens", [(labels, float(done.prompt_tokens)) for labels, done in served]),
        ("generation_tokens", [(labels, float(done.generation_tokens)) for labels, done in served]),
        ("cached_tokens", [(labels, float(done.cached_prompt_tokens)) for labels, done in served]),
        ("num_requests", [(labels, float(done.requests)) for labels, done in served]),
    ):
        text.family(f"sglang:{name}_total", "counter", samples)


def _histograms(text: ExpositionText, ranks: Sequence[Rank]) -> None:
    streamed = [({**_endpoint(own), "is_streaming": "true"}, engine) for own, engine in ranks]
    first = [(labels, engine.ttft) for labels, engine in streamed]
    text.histogram("sglang:time_to_first_token_seconds", first)
    others = [(labels, distributions(engine)) for labels, engine in streamed]
    for name, same in _HISTOGRAMS.items():
        text.histogram(f"sglang:{name}", [(labels, those[same]) for labels, those in others])


def _endpoint(own: Labels) -> Labels:
    """Return the labels of what the tokenizer counts: it knows no rank but the data-parallel."""
    kept = ("engine_type", "model_name", "dp_rank")
    return {name: value for name, value in own.items() if name in kept}


_GAUGES: Final[Mapping[str, Callable[[SimulatedEngine], float]]] = {
    "num_running_reqs": lambda engine: float(engine.running),
    "num_queue_reqs": lambda engine: float(engine.waiting),
    "token_usage": lambda engine: engine.kv_usage,
    "full_token_usage": lambda engine: engine.kv_usage,
    "num_used_tokens": lambda engine: float(round(engine.kv_usage * engine.preset.kv_tokens)),
    "max_total_num_tokens": lambda engine: float(engine.preset.kv_tokens),
}

_UNUSED: Final = (
    "num_grammar_queue_reqs",
    "swa_token_usage",
    "mamba_usage",
    "spec_accept_length",
    "spec_accept_rate",
    "num_retracted_reqs",
    "num_paused_reqs",
    "num_prefill_bootstrap_queue_reqs",
    "num_prefill_inflight_queue_reqs",
    "num_decode_prealloc_queue_reqs",
    "num_decode_transfer_queue_reqs",
    "pending_prealloc_token_usage",
    "utilization",
)
"""What a single engine without speculation has no use for; 0 in the real one as well."""

_HISTOGRAMS: Final = {
    "e2e_request_latency_seconds": "e2e_request_latency_seconds",
    "inter_token_latency_seconds": "inter_token_latency_seconds",
    "queue_time_seconds": "request_queue_time_seconds",
    "prompt_tokens_histogram": "request_prompt_tokens",
    "generation_tokens_histogram": "request_generation_tokens",
}
