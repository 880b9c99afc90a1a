"""``trtllm-serve``: ``/prometheus/metrics``; its ``/metrics`` is JSON that a reader uses up.

Names: TensorRT-LLM ``tensorrt_llm/metrics/collector.py`` (2026) and issue reports of 1.1; never
run. It needs ``return_perf_metrics`` and ``enable_iter_perf_stats``. Everything, gauges included,
is refreshed when a request finishes: during long decodes it stands still.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

TRTLLM = Dialect(
    engine="trtllm",
    spellings=(
        Spelling("trtllm_", marks=("trtllm_",)),
        Spelling("trtllm:", marks=("trtllm:",)),
        Spelling("", marks=("time_to_first_token_seconds_bucket{engine_type=",)),
    ),
    nameless=frozenset({"undefined"}),
    hint="return_perf_metrics or enable_iter_perf_stats is off",
    sources={
        Metric.REQUESTS_RUNNING: Source((Name("trtllm_num_requests_running", since="1.2"),)),
        Metric.REQUESTS_WAITING: Source((Name("trtllm_num_requests_waiting", since="1.2"),)),
        Metric.KV_CACHE_USAGE: Source((Name("trtllm_kv_cache_utilization", since="1.2"),)),
        Metric.GENERATION_TOKENS: Source(
            (Name("trtllm_generation_tokens_total", since="1.2"),), expected=False
        ),
        Metric.REQUESTS_FINISHED: Source((Name("trtllm_request_success_total"),), expected=False),
        Metric.REQUEST_SECONDS: Source(
            (Name("trtllm_e2e_request_latency_seconds_sum"),), expected=False
        ),
        Metric.QUEUE_SECONDS: Source(
            (Name("trtllm_request_queue_time_seconds_sum"),), expected=False
        ),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
    },
    ttft=Source((Name("trtllm_time_to_first_token_seconds"),), expected=False),
)
