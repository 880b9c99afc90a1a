"""A busy vLLM's ``/metrics`` as long as the real one: 50 kB, of which the product reads a tenth.

Names, buckets and layout are vLLM 0.32's, the numbers are made up: the same arguments give the
same text, and what counts only ever grows from one scrape to the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Labels = dict[str, str]


def engine_text(model: str, *, engine: int, scrape: int) -> bytes:
    """Return the text of the ``engine``-th engine at its ``scrape``-th scrape, both from 0."""
    served = 400 * (scrape + 1) + 7 * engine
    lines = [
        *_process(engine, served),
        *_gauges(model, engine, scrape),
        *_counters(model, served),
        *_histograms(model, served),
        *_http(served),
    ]
    return ("\n".join(lines) + "\n").encode()


def _process(engine: int, served: int) -> Iterator[str]:
    for generation in range(3):
        yield from _counter("python_gc_collections", {"generation": str(generation)}, served)
    numbers = {
        "process_virtual_memory_bytes": 2.4e10,
        "process_resident_memory_bytes": 7.1e8 + served,
        "process_start_time_seconds": 1.7960685e9 + engine,
        "process_cpu_seconds_total": 41.0 + served / 10,
        "process_open_fds": 93.0,
        "process_max_fds": 65536.0,
    }
    for name, value in numbers.items():
        yield from _family(name, "gauge", [({}, value)])


def _gauges(model: str, engine: int, scrape: int) -> Iterator[str]:
    own = _own(model)
    running, waiting = 20 + (engine + scrape) % 9, (3 * engine + scrape) % 5
    yield from _family("vllm:num_requests_running", "gauge", [(own, running)])
    yield from _family("vllm:num_requests_waiting", "gauge", [(own, waiting)])
    reasons = [({**own, "reason": "capacity"}, waiting), ({**own, "reason": "deferred"}, 0)]
    yield from _family("vllm:num_requests_waiting_by_reason", "gauge", reasons)
    yield from _family("vllm:engine_sleep_state", "gauge", [({**own, "sleep_state": "awake"}, 1)])
    yield from _family("vllm:kv_cache_usage_perc", "gauge", [(own, (running + waiting) / 48)])
    facts = dict.fromkeys(_CACHE_FACTS, "None")
    yield from _family("vllm:cache_config_info", "gauge", [({**facts, "engine": "0"}, 1)])


def _counters(model: str, served: int) -> Iterator[str]:
    own = _own(model)
    for name, per_request in _COUNTERS.items():
        yield from _counter(f"vllm:{name}", own, round(served * per_request))
    for label, names in _BY_LABEL.items():
        for name, values in names.items():
            for value in values:
                yield from _counter(f"vllm:{name}", {**own, label: value}, served)


def _histograms(model: str, served: int) -> Iterator[str]:
    for name, bounds in _HISTOGRAMS.items():
        yield from _histogram(f"vllm:{name}", _own(model), bounds, served)


def _http(served: int) -> Iterator[str]:
    for handler in ("/v1/completions", "/v1/chat/completions", "/metrics"):
        called = {"handler": handler, "method": "POST"}
        yield from _counter("http_requests", {**called, "status": "2xx"}, served)
        yield from _histogram("http_request_duration_seconds", called, (0.1, 0.5, 1.0), served)
    yield from _histogram("http_request_duration_highr_seconds", {}, _FINE, served)


def _counter(name: str, labels: Labels, value: float) -> Iterator[str]:
    yield from _family(f"{name}_total", "counter", [(labels, value)])
    yield from _family(f"{name}_created", "gauge", [(labels, 1.7960685399e9)])


def _histogram(
    name: str, labels: Labels, bounds: tuple[float, ...], observed: int
) -> Iterator[str]:
    """Yield a histogram whose observations lie evenly in the lower third of its buckets."""
    yield from _head(name, "histogram")
    edges = [*map(str, bounds), "+Inf"]
    for rank, edge in enumerate(edges, start=1):
        share = min(1.0, 3 * rank / len(edges))
        yield _sample(f"{name}_bucket", {**labels, "le": edge}, round(observed * share))
    yield _sample(f"{name}_count", labels, observed)
    yield _sample(f"{name}_sum", labels, observed * 0.7312)
    yield from _family(f"{name}_created", "gauge", [(labels, 1.7960685399e9)])


def _family(name: str, kind: str, samples: Sequence[tuple[Labels, float]]) -> Iterator[str]:
    yield from _head(name, kind)
    for labels, value in samples:
        yield _sample(name, labels, value)


def _head(name: str, kind: str) -> tuple[str, str]:
    return f"# HELP {name} As vLLM counts it.", f"# TYPE {name} {kind}"


def _sample(name: str, labels: Labels, value: float) -> str:
    said = ",".join(f'{label}="{text}"' for label, text in sorted(labels.items()))
    return f"{name}{{{said}}} {float(value)!r}" if said else f"{name} {float(value)!r}"


def _own(model: str) -> Labels:
    return {"engine": "0", "model_name": model}


_COUNTERS: Final = {
    "prompt_tokens": 812.0,
    "prompt_tokens_cached": 130.0,
    "generation_tokens": 214.0,
    "num_preemptions": 0.01,
    "prefix_cache_queries": 812.0,
    "prefix_cache_hits": 130.0,
    "external_prefix_cache_queries": 0.0,
    "external_prefix_cache_hits": 0.0,
    "mm_cache_queries": 0.0,
    "mm_cache_hits": 0.0,
    "estimated_flops_per_gpu": 1.3e12,
    "estimated_read_bytes_per_gpu": 4.1e9,
    "estimated_write_bytes_per_gpu": 3.3e8,
}
"""Each with what one request adds."""

_BY_LABEL: Final[Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "finished_reason": {"request_success": ("stop", "length", "abort", "error", "repetition")},
    "source": {
        "prompt_tokens_by_source": ("local_compute", "local_cache_hit", "external_kv_transfer"),
    },
    "reason": {"admission_rejections": ("queue_full", "too_long")},
}

_TOKENS: Final = tuple(float(m * 10**e) for e in range(5) for m in (1, 2, 5))
_SECONDS: Final = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
_LONG: Final = (*_SECONDS, 120.0, 240.0, 480.0, 960.0, 1920.0, 7680.0)
_FIRST: Final = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, *_LONG[3:15])
_FINE: Final = (0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, *_LONG[3:14])

_HISTOGRAMS: Final = {
    "request_prompt_tokens": _TOKENS,
    "request_generation_tokens": _TOKENS,
    "iteration_tokens_total": _TOKENS,
    "request_max_num_generation_tokens": _TOKENS,
    "request_params_n": (1.0, 2.0, 5.0, 10.0, 20.0),
    "request_params_max_tokens": _TOKENS,
    "request_prefill_kv_computed_tokens": _TOKENS,
    "request_num_preemptions": (0.0, 1.0, 2.0, 5.0, 10.0),
    "time_to_first_token_seconds": _FIRST,
    "inter_token_latency_seconds": _FIRST[2:],
    "request_time_per_output_token_seconds": _FIRST[2:],
    "e2e_request_latency_seconds": _LONG,
    "request_queue_time_seconds": _LONG,
    "request_inference_time_seconds": _LONG,
    "request_prefill_time_seconds": _LONG,
    "request_decode_time_seconds": _LONG,
}

_CACHE_FACTS: Final = (
    "block_size",
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "num_cpu_blocks",
    "num_gpu_blocks",
    "num_gpu_blocks_override",
    "prefix_caching_hash_algo",
    "sliding_window",
    "swap_space",
)
