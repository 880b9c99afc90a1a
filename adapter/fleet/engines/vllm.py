"""vLLM: V0 and V1 engines from 0.4 on, behind Ray Serve, relabelled by OpenTelemetry, or as NIM.

Names and releases: the metrics classes of 36 released wheels, ``vllm/v1/metrics/loggers.py`` and
``vllm/engine/metrics.py``; behaviour measured on 0.32.0. What to know of the numbers:

* a deprecated name is hidden one minor release later and gone the release after that;
* the waiting total includes preempted requests and such as no new replica helps (``deferred``);
* KV cache usage excludes evictable prefix-cache blocks: 0.0 after load does not mean a cold cache;
* request durations and queue times are added when a request ends, first tokens when they come.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

VLLM = Dialect(
    engine="vllm",
    spellings=(
        Spelling("vllm:", marks=("vllm:",)),
        Spelling("ray_vllm:", marks=("ray_vllm:",)),
        Spelling("ray_vllm_", marks=("ray_vllm_",)),
        Spelling("vllm_", marks=("vllm_num_requests_", "vllm_generation_tokens_")),
        Spelling("", marks=("num_requests_running{", "num_requests_waiting{")),  # NIM
    ),
    model_labels=("model_name", "model"),
    rank_labels=("WorkerId", "engine"),
    lingering_label="WorkerId",
    hint="--disable-log-stats is set",
    sources={
        Metric.REQUESTS_RUNNING: Source((Name("vllm:num_requests_running"),)),
        Metric.REQUESTS_WAITING: Source(
            (
                Name(
                    "vllm:num_requests_waiting_by_reason",
                    where={"reason": "capacity"},
                    since="0.20",
                ),
                Name("vllm:num_requests_waiting"),
            )
        ),
        Metric.REQUESTS_DEFERRED: Source(
            (
                Name(
                    "vllm:num_requests_waiting_by_reason",
                    where={"reason": "deferred"},
                    since="0.20",
                ),
            ),
            expected=False,
        ),
        Metric.KV_CACHE_USAGE: Source(
            (
                Name("vllm:kv_cache_usage_perc", since="0.9.2"),
                Name("vllm:gpu_cache_usage_perc", until="0.12"),
            )
        ),
        Metric.PROMPT_TOKENS: Source((Name("vllm:prompt_tokens_total"),)),
        Metric.CACHED_PROMPT_TOKENS: Source(
            (
                Name("vllm:prompt_tokens_cached_total", since="0.16"),
                Name("vllm:prefix_cache_hits_total", since="0.9.2"),
                Name("vllm:gpu_prefix_cache_hits_total", since="0.7.3", until="0.12"),
            ),
            expected=False,
        ),
        Metric.GENERATION_TOKENS: Source((Name("vllm:generation_tokens_total"),)),
        Metric.REQUESTS_FINISHED: Source((Name("vllm:request_success_total"),)),
        Metric.REQUESTS_REJECTED: Source(
            (Name("vllm:admission_rejections_total", since="0.32"),), expected=False
        ),
        Metric.REQUEST_SECONDS: Source((Name("vllm:e2e_request_latency_seconds_sum"),)),
        Metric.QUEUE_SECONDS: Source(
            (
                Name("vllm:request_queue_time_seconds_sum", since="0.7"),
                Name("vllm:time_in_queue_requests_sum", since="0.6", until="0.9"),
            ),
            expected=False,
        ),
        Metric.PREEMPTIONS: Source((Name("vllm:num_preemptions_total"),), expected=False),
        Metric.ENGINE_STEPS: Source(
            (Name("vllm:iteration_tokens_total_count", since="0.6"),), expected=False
        ),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
        Metric.MODEL_LOAD_SECONDS: Source(
            (
                Name(
                    "vllm:num_preemptions_created",
                    since="0.11.1",
                    minus=Name("process_start_time_seconds"),
                ),
            ),
            expected=False,
        ),
    },
    ttft=Source((Name("vllm:time_to_first_token_seconds"),)),
)
"""``expected=False``: absent in older releases; process start and load time also with several
API servers. In 0.9.2 to 0.10.2 both KV names are there and say the same."""
