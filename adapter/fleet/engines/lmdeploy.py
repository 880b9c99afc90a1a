"""LMDeploy: shaped like vLLM, with a second queue in front of the engine.

Names: InternLM/lmdeploy main of 2026-08. Requests without a free handle wait in the API server and
count as waiting too. TurboMind's KV usage includes warm prefix-cache blocks, unlike any other's.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

LMDEPLOY = Dialect(
    engine="lmdeploy",
    spellings=(
        Spelling("lmdeploy:", marks=("lmdeploy:",)),
        Spelling("lmdeploy_", marks=("lmdeploy_",)),
    ),
    rank_labels=("engine",),
    hint="--disable-metrics is set",
    sources={
        Metric.REQUESTS_RUNNING: Source((Name("lmdeploy:num_requests_running"),)),
        Metric.REQUESTS_WAITING: Source(
            (Name("lmdeploy:num_requests_waiting"),),
            plus=((Name("lmdeploy:num_api_requests_waiting"),),),
        ),
        Metric.KV_CACHE_USAGE: Source((Name("lmdeploy:gpu_cache_usage_perc"),)),
        Metric.PROMPT_TOKENS: Source((Name("lmdeploy:prompt_tokens_total"),)),
        Metric.CACHED_PROMPT_TOKENS: Source(
            (Name("lmdeploy:cached_tokens_total"),), expected=False
        ),
        Metric.GENERATION_TOKENS: Source((Name("lmdeploy:generation_tokens_total"),)),
        Metric.REQUESTS_FINISHED: Source((Name("lmdeploy:request_success_total"),)),
        Metric.REQUEST_SECONDS: Source(
            (Name("lmdeploy:e2e_request_latency_seconds_sum"),), expected=False
        ),
        Metric.QUEUE_SECONDS: Source(
            (Name("lmdeploy:request_queue_time_seconds_sum"),), expected=False
        ),
        Metric.ENGINE_STEPS: Source(
            (Name("lmdeploy:iteration_tokens_total_count"),), expected=False
        ),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
    },
    ttft=Source((Name("lmdeploy:time_to_first_token_seconds"),)),
)
