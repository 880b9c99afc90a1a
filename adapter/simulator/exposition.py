"""A simulated engine's ``/metrics``: the families of a real vLLM 0.32, read by the product's own.

Only names, labels and layout are vLLM's; every number is the engine's. Families that the product
does not read are left out: the text is for feeding the adapter, not for measuring its parser.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from adapter.fleet.histogram import Histogram
from adapter.fleet.units import Timestamp
from adapter.simulator.engine import SimulatedEngine

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
"""What vLLM answers, whatever was asked for."""


def vllm_exposition(
    engine: SimulatedEngine, *, model: str, started_at: Timestamp, loaded_at: Timestamp
) -> bytes:
    """Return what vLLM would answer now.

    Its process began at ``started_at`` and made its counters at ``loaded_at``, when the model
    was loaded: the difference is the load time that the product reads.
    """
    lines = [*_gauges(engine, model), *_counters(engine, model, loaded_at)]
    lines += _histogram("time_to_first_token_seconds", engine.ttft, model)
    lines += _family("process_start_time_seconds", "gauge", [("", float(started_at))])
    return ("\n".join(lines) + "\n").encode()


def _gauges(engine: SimulatedEngine, model: str) -> Iterator[str]:
    labels = _labels(model)
    capacity = _labels(model, reason="capacity")
    deferred = _labels(model, reason="deferred")
    waiting = float(engine.waiting)
    yield from _family("vllm:num_requests_running", "gauge", [(labels, float(engine.running))])
    yield from _family("vllm:num_requests_waiting", "gauge", [(labels, waiting)])
    by_reason = [(capacity, waiting), (deferred, 0.0)]
    yield from _family("vllm:num_requests_waiting_by_reason", "gauge", by_reason)
    yield from _family("vllm:kv_cache_usage_perc", "gauge", [(labels, engine.kv_usage)])


def _counters(engine: SimulatedEngine, model: str, made_at: Timestamp) -> Iterator[str]:
    totals, labels = engine.totals, _labels(model)
    counters = {
        "prompt_tokens": totals.prompt_tokens,
        "prompt_tokens_cached": totals.cached_prompt_tokens,
        "generation_tokens": totals.generation_tokens,
        "num_preemptions": totals.preemptions,
    }
    for name, value in counters.items():
        yield from _counter(name, labels, float(value), made_at)
    finished = _labels(model, finished_reason="length")
    yield from _counter("request_success", finished, float(totals.requests), made_at)
    sums = {
        "e2e_request_latency_seconds": (totals.request_seconds, totals.requests),
        "request_queue_time_seconds": (totals.queue_seconds, totals.requests),
        "iteration_tokens_total": (
            float(totals.prompt_tokens + totals.generation_tokens),
            totals.steps,
        ),
    }
    for name, (total, count) in sums.items():
        yield from _head(f"vllm:{name}", "histogram")
        yield f"vllm:{name}_bucket{_labels(model, le='+Inf')} {float(count)}"
        yield f"vllm:{name}_count{labels} {float(count)}"
        yield f"vllm:{name}_sum{labels} {total!r}"


def _counter(name: str, labels: str, value: float, made_at: Timestamp) -> Iterator[str]:
    yield from _family(f"vllm:{name}_total", "counter", [(labels, value)])
    yield from _family(f"vllm:{name}_created", "gauge", [(labels, float(made_at))])


def _histogram(name: str, histogram: Histogram, model: str) -> Iterator[str]:
    yield from _head(f"vllm:{name}", "histogram")
    for bound, count in zip(histogram.bounds, histogram.counts, strict=True):
        le = "+Inf" if bound == float("inf") else repr(bound)
        yield f"vllm:{name}_bucket{_labels(model, le=le)} {count!r}"
    yield f"vllm:{name}_count{_labels(model)} {histogram.count!r}"
    yield f"vllm:{name}_sum{_labels(model)} {histogram.sum_seconds!r}"


def _family(name: str, kind: str, samples: Iterable[tuple[str, float]]) -> Iterator[str]:
    yield from _head(name, kind)
    for labels, value in samples:
        yield f"{name}{labels} {value!r}"


def _head(name: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} As vLLM counts it.", f"# TYPE {name} {kind}"


def _labels(model: str, **more: str) -> str:
    labels = {"engine": "0", **more, "model_name": model}
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}"
