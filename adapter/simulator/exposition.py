"""A simulated engine's ``/metrics`` as vLLM 0.32 answers it.

Names, labels, buckets and layout are the real ones. What the product reads is exact. The other
families make the body as long as a real one: they are right in sum, or 0 where nothing happens,
and a histogram of which only the sum is known has everything at the mean.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from adapter.fleet.units import Timestamp
from adapter.simulator.engine import SimulatedEngine
from adapter.simulator.exposition_text import ExpositionText, Labels, at_the_mean, distributions

CONTENT_TYPE: Final = "text/plain; version=1.0.0; charset=utf-8"
"""What vLLM answers, whatever was asked for."""

Rank = tuple[Labels, SimulatedEngine]
"""A data-parallel rank with the labels that all its series have."""


def vllm_exposition(
    *engines: SimulatedEngine, model: str, started_at: Timestamp, loaded_at: Timestamp
) -> bytes:
    """Return what vLLM would answer now, with one of ``engines`` for each data-parallel rank.

    Its process began at ``started_at`` and made its counters at ``loaded_at``, when the model
    was loaded: the difference is the load time that the product reads.
    """
    ranks = [
        ({"engine": str(rank), "model_name": model}, engine) for rank, engine in enumerate(engines)
    ]
    text = ExpositionText()
    _process(text, started_at)
    _vllm_gauges(text, ranks)
    _vllm_counters(text, ranks, loaded_at)
    _vllm_histograms(text, ranks, loaded_at)
    _http(text, engines, loaded_at)
    return text.body()


def _process(text: ExpositionText, started_at: Timestamp) -> None:
    generations = [({"generation": str(generation)}, 0.0) for generation in range(3)]
    for name in ("objects_collected", "objects_uncollectable", "collections"):
        text.family(f"python_gc_{name}_total", "counter", generations)
    version = {"implementation": "CPython", "major": "3", "minor": "12", "version": "3.12.12"}
    text.family("python_info", "gauge", [(version, 1.0)])
    for name, value in (
        ("virtual_memory_bytes", 2.4e10),
        ("resident_memory_bytes", 7.1e8),
        ("start_time_seconds", float(started_at)),
        ("open_fds", 93.0),
        ("max_fds", 65536.0),
    ):
        text.family(f"process_{name}", "gauge", [({}, value)])


def _vllm_gauges(text: ExpositionText, ranks: Sequence[Rank]) -> None:
    def family(name: str, samples: Iterator[tuple[Labels, float]]) -> None:
        text.family(f"vllm:{name}", "gauge", samples)

    family("num_requests_running", ((own, float(one.running)) for own, one in ranks))
    family("num_requests_waiting", ((own, float(one.waiting)) for own, one in ranks))
    family(
        "num_requests_waiting_by_reason",
        (
            ({**own, "reason": reason}, float(value))
            for own, one in ranks
            for reason, value in (("capacity", one.waiting), ("deferred", 0))
        ),
    )
    family(
        "engine_sleep_state",
        (
            ({**own, "sleep_state": state}, float(state == "awake"))
            for own, _ in ranks
            for state in ("awake", "weights_offloaded", "discard_all")
        ),
    )
    family("kv_cache_usage_perc", ((own, one.kv_usage) for own, one in ranks))
    family(
        "cache_config_info",
        (
            (
                {
                    **dict.fromkeys(_CACHE_FACTS, "None"),
                    "block_size": "16",
                    "engine": own["engine"],
                    "num_gpu_blocks": str(one.preset.kv_tokens // 16),
                },
                1.0,
            )
            for own, one in ranks
        ),
    )


def _vllm_counters(text: ExpositionText, ranks: Sequence[Rank], made_at: Timestamp) -> None:
    totals = [(own, engine.totals) for own, engine in ranks]
    values: dict[str, list[tuple[Labels, float]]] = {
        "prompt_tokens": [(own, float(done.prompt_tokens)) for own, done in totals],
        "prompt_tokens_cached": [(own, float(done.cached_prompt_tokens)) for own, done in totals],
        "prefix_cache_queries": [(own, float(done.prompt_tokens)) for own, done in totals],
        "prefix_cache_hits": [(own, float(done.cached_prompt_tokens)) for own, done in totals],
        "generation_tokens": [(own, float(done.generation_tokens)) for own, done in totals],
        "num_preemptions": [(own, float(done.preemptions)) for own, done in totals],
        "prompt_tokens_by_source": [
            ({**own, "source": source}, float(value))
            for own, done in totals
            for source, value in (
                ("local_compute", done.prompt_tokens - done.cached_prompt_tokens),
                ("local_cache_hit", done.cached_prompt_tokens),
                ("external_kv_transfer", 0),
            )
        ],
        "request_success": [
            ({**own, "finished_reason": reason}, float(done.requests * (reason == "length")))
            for own, done in totals
            for reason in ("stop", "length", "abort", "error", "repetition")
        ],
        "admission_rejections": [
            ({"model_name": ranks[0][0]["model_name"], "reason": reason}, 0.0)
            for reason in ("max_num_queued_reqs", "max_num_queued_tokens")
        ],
        **{name: [(own, 0.0) for own, _ in ranks] for name in _VLLM_UNUSED},
    }
    for name, samples in values.items():
        text.family(f"vllm:{name}_total", "counter", samples)
        made = [(labels, float(made_at)) for labels, _ in samples]
        text.family(f"vllm:{name}_created", "gauge", made)


def _vllm_histograms(text: ExpositionText, ranks: Sequence[Rank], made_at: Timestamp) -> None:
    known = [(own, engine.ttft) for own, engine in ranks]
    text.histogram("vllm:time_to_first_token_seconds", known)
    others = [(own, distributions(engine)) for own, engine in ranks]
    names = tuple(others[0][1])
    for name in names:
        text.histogram(f"vllm:{name}", [(own, those[name]) for own, those in others])
    made = [(own, float(made_at)) for own, _ in ranks]
    for name in ("time_to_first_token_seconds", *names):
        text.family(f"vllm:{name}_created", "gauge", made)


def _http(text: ExpositionText, engines: Sequence[SimulatedEngine], made_at: Timestamp) -> None:
    requests = float(sum(engine.totals.requests for engine in engines))
    seconds = sum(engine.totals.request_seconds for engine in engines)
    called = {"handler": "/v1/chat/completions", "method": "POST"}
    text.family("http_requests_total", "counter", [({**called, "status": "2xx"}, requests)])
    text.family("http_requests_created", "gauge", [({**called, "status": "2xx"}, float(made_at))])
    fine, coarse = (at_the_mean(bounds, requests, seconds) for bounds in (_HTTP, (0.1, 0.5, 1.0)))
    text.histogram("http_request_duration_highr_seconds", [({}, fine)])
    text.histogram("http_request_duration_seconds", [(called, coarse)])


_VLLM_UNUSED: Final = (
    "external_prefix_cache_queries",
    "external_prefix_cache_hits",
    "mm_cache_queries",
    "mm_cache_hits",
    "estimated_flops_per_gpu",
    "estimated_read_bytes_per_gpu",
    "estimated_write_bytes_per_gpu",
)

_CACHE_FACTS: Final = (
    "cache_dtype",
    "enable_prefix_caching",
    "gpu_memory_utilization",
    "kv_cache_memory_bytes",
    "kv_cache_size_tokens",
    "kv_offloading_backend",
    "num_cpu_blocks",
    "num_gpu_blocks_override",
    "prefix_caching_hash_algo",
    "sliding_window",
)

_HTTP: Final = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
    *(5.0, 7.5, 10.0, 30.0, 60.0),
)
