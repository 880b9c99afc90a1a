"""NVIDIA Dynamo: its frontend, or a worker component whose engine exports nothing itself.

Names: ai-dynamo ``docs/observability/metrics.md`` and issue reports; never run. Queued lasts until
the first token, so it includes prefill. A worker that passes its engine's series on is read as
that engine. The KV gauge is a ratio, whatever its name says.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

_QUEUED = Name("dynamo_frontend_queued_requests")

DYNAMO = Dialect(
    engine="dynamo",
    spellings=(Spelling("dynamo_", marks=("dynamo_",)),),
    model_labels=("model",),
    hint="this is neither the frontend nor a worker with DYN_SYSTEM_PORT",
    sources={
        Metric.REQUESTS_RUNNING: Source(
            (Name("dynamo_frontend_inflight_requests", minus=_QUEUED),), expected=False
        ),
        Metric.REQUESTS_WAITING: Source((_QUEUED,), expected=False),
        Metric.KV_CACHE_USAGE: Source(
            (Name("dynamo_component_kvstats_gpu_cache_usage_percent"),), expected=False
        ),
        Metric.GENERATION_TOKENS: Source(
            (Name("dynamo_frontend_output_sequence_tokens_sum"),), expected=False
        ),
        Metric.REQUESTS_FINISHED: Source(
            (Name("dynamo_frontend_requests_total"), Name("dynamo_component_requests_total")),
            expected=False,
        ),
        Metric.REQUEST_SECONDS: Source(
            (
                Name("dynamo_frontend_request_duration_seconds_sum"),
                Name("dynamo_component_request_duration_seconds_sum"),
            ),
            expected=False,
        ),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
    },
    ttft=Source((Name("dynamo_frontend_time_to_first_token_seconds"),), expected=False),
)
