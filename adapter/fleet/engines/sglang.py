"""SGLang from 0.4 on, and behind its router, which writes ``sglang_`` and adds ``worker_addr``.

Names and releases: the collectors of 14 released wheels, ``sglang/srt/**/collector.py``. What to
know of the numbers:

* gauges are written per batch and, idle, at most every 30 s; up to 0.4.10 never when idle;
* ``priority=""`` is the total and ``priority="0"`` and so on its parts;
* requests of prefill/decode pairs wait in queues of their own: those that want room count as
  waiting, those whose KV cache is on its way and those that compile a grammar as deferred;
* tokens are counted when a request finishes, except ``realtime_tokens_total``;
* a request that does not stream has its first token at its end.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

SGLANG = Dialect(
    engine="sglang",
    spellings=(
        Spelling("sglang:", marks=("sglang:",)),
        Spelling("sglang_", marks=("sglang_",)),
    ),
    model_labels=("model_name", "name"),
    rank_labels=("worker_addr", "dp_rank"),
    copy_labels=frozenset({"tp_rank", "pp_rank", "moe_ep_rank", "pid"}),
    total_labels={"priority": "", "cache_source": "total"},
    hint="--enable-metrics is not set",
    sources={
        Metric.REQUESTS_RUNNING: Source(
            (
                Name("sglang:num_running_reqs", since="0.4.0"),
                Name("sglang:num_requests_running", until="0.4.0"),
            )
        ),
        Metric.REQUESTS_WAITING: Source(
            (
                Name("sglang:num_queue_reqs", since="0.4.0"),
                Name("sglang:num_requests_waiting", until="0.4.0"),
            ),
            plus=(
                (
                    Name("sglang:num_prefill_bootstrap_queue_reqs", since="0.5.13"),
                    Name("sglang:num_prefill_prealloc_queue_reqs", since="0.4.8", until="0.5.13"),
                ),
                (Name("sglang:num_decode_prealloc_queue_reqs", since="0.4.8"),),
            ),
        ),
        Metric.REQUESTS_DEFERRED: Source(
            (Name("sglang:num_grammar_queue_reqs", since="0.4.8"),),
            plus=(
                (
                    Name("sglang:num_prefill_inflight_queue_reqs", since="0.5.2"),
                    Name("sglang:num_prefill_infight_queue_reqs", since="0.4.8", until="0.5.2"),
                ),
                (Name("sglang:num_decode_transfer_queue_reqs", since="0.4.8"),),
            ),
            expected=False,
        ),
        Metric.KV_CACHE_USAGE: Source((Name("sglang:token_usage"),)),
        Metric.PROMPT_TOKENS: Source(
            (
                Name("sglang:realtime_tokens_total", {"mode": "prefill_compute"}, since="0.5.8"),
                Name("sglang:prompt_tokens_total"),
            ),
            plus=((Name("sglang:realtime_tokens_total", {"mode": "prefill_cache"}),),),
            expected=False,
        ),
        Metric.CACHED_PROMPT_TOKENS: Source(
            (
                Name("sglang:realtime_tokens_total", {"mode": "prefill_cache"}, since="0.5.8"),
                Name("sglang:cached_tokens_total"),
            ),
            expected=False,
        ),
        Metric.GENERATION_TOKENS: Source(
            (
                Name("sglang:realtime_tokens_total", {"mode": "decode"}, since="0.5.8"),
                Name("sglang:generation_tokens_total"),
            ),
            expected=False,
        ),
        Metric.REQUESTS_FINISHED: Source((Name("sglang:num_requests_total"),), expected=False),
        Metric.REQUEST_SECONDS: Source(
            (Name("sglang:e2e_request_latency_seconds_sum"),), expected=False
        ),
        Metric.QUEUE_SECONDS: Source(
            (
                Name("sglang:queue_time_seconds_sum", since="0.5.4"),
                Name("sglang:queue_time_s_sum", since="0.5.2", until="0.5.4"),
            ),
            expected=False,
        ),
        Metric.ENGINE_STEPS: Source(
            (Name("sglang:cuda_graph_passes_total", since="0.5.8"),), expected=False
        ),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
        Metric.MODEL_LOAD_SECONDS: Source(
            (
                Name("sglang:startup_time_seconds", {"phase": "scheduler_e2e"}, since="0.5.19"),
                Name("sglang:engine_startup_time", since="0.5.2", until="0.5.19"),
            ),
            expected=False,
        ),
    },
    ttft=Source(
        (
            Name("sglang:time_to_first_token_seconds", {"is_streaming": "true"}, since="0.5.19"),
            Name(
                "sglang:time_to_first_token_seconds",
                {"is_streaming": "false"},
                since="0.5.19",
                caution="nobody streams: the first token of these requests came with their last",
            ),
            Name("sglang:time_to_first_token_seconds"),
        ),
        expected=False,
    ),
)
"""``expected=False``: SGLang's registry shows a counter or a histogram only once it has counted,
and prefill workers never observe a first token."""
