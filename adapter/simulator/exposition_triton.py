"""A simulated engine's ``/metrics`` as Triton answers with its TensorRT-LLM backend."""

import math
from typing import Final

from adapter.fleet.histogram import Histogram
from adapter.fleet.units import Seconds
from adapter.simulator.engine import SimulatedEngine
from adapter.simulator.exposition_text import ExpositionText, Labels

BLOCK: Final = 64
"""Tokens in a block of TensorRT-LLM's KV cache: usage is told in whole blocks."""


def triton_exposition(engine: SimulatedEngine, *, model: str, load_time: Seconds) -> bytes:
    """Return what Triton would answer now of one model served by its TensorRT-LLM backend.

    As started with ``histogram_latencies=true`` and vLLM's buckets as the model's own, which the
    engine counts in. The backend takes every request at once, so that none is pending.
    """
    own = {"model": model, "version": "1"}
    text, totals = ExpositionText(), engine.totals
    counters = {
        "nv_inference_request_success": totals.requests,
        "nv_inference_count": totals.requests,
        "nv_inference_exec_count": totals.requests,
        "nv_inference_request_duration_us": round(1e6 * totals.request_seconds),
        "nv_inference_queue_duration_us": 0,
        "nv_inference_compute_input_duration_us": 0,
        "nv_inference_compute_infer_duration_us": round(1e6 * totals.request_seconds),
        "nv_inference_compute_output_duration_us": 0,
    }
    for name, value in counters.items():
        text.family(name, "counter", [(own, value)])
    reasons = ("OTHER", "BACKEND", "CANCELED", "REJECTED")
    failures = [({**own, "reason": reason}, 0) for reason in reasons]
    text.family("nv_inference_request_failure", "counter", failures)
    text.family("nv_inference_pending_request_count", "gauge", [(own, 0)])
    text.family("nv_model_load_duration_secs", "gauge", [(own, float(load_time))])
    ttft = engine.ttft
    milliseconds = Histogram(
        tuple(1000 * bound for bound in ttft.bounds), ttft.counts, 1000 * ttft.sum_seconds
    )
    text.histogram("nv_inference_first_response_histogram_ms", [(own, milliseconds)])
    _trtllm(text, engine, own)
    return text.body()


def _trtllm(text: ExpositionText, engine: SimulatedEngine, own: Labels) -> None:
    blocks = max(1, engine.preset.kv_tokens // BLOCK)
    tokens = round(engine.kv_usage * engine.preset.kv_tokens)
    used = min(blocks, math.ceil(tokens / BLOCK))
    gauges: dict[tuple[str, str], dict[str, float]] = {
        ("request_metrics", "request_type"): {
            "waiting": engine.waiting,
            "context": 0,
            "scheduled": engine.running,
            "max": engine.preset.max_num_seqs,
            "active": engine.running + engine.waiting,
        },
        ("runtime_memory_metrics", "memory_type"): {"pinned": 0, "gpu": 0, "cpu": 0},
        ("kv_cache_block_metrics", "kv_cache_block_type"): {
            "fraction": used / blocks,
            "tokens_per": BLOCK,
            "used": used,
            "free": blocks - used,
            "max": blocks,
        },
        ("inflight_batcher_metrics", "inflight_batcher_specific_metric"): {
            "micro_batch_id": 0,
            "generation_requests": engine.running,
            "total_context_tokens": 0,
            "paused_requests": 0,
        },
        ("general_metrics", "general_type"): {"iteration_counter": engine.totals.steps},
    }
    for (name, label), values in gauges.items():
        samples = [({**own, label: kind}, value) for kind, value in values.items()]
        text.family(f"nv_trt_llm_{name}", "gauge", samples)
