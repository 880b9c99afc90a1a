"""Text Generation Inference: a queue and a batch, but no model name, no TTFT and no KV usage.

Names: text-generation-inference ``router/src/server.rs`` 3.3. With ``--max-concurrent-requests``
reached it refuses with 429 and its queue stays short: the refusals are the load.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

TGI = Dialect(
    engine="tgi",
    spellings=(Spelling("tgi_", marks=("tgi_",)),),
    model_labels=(),
    sources={
        Metric.REQUESTS_RUNNING: Source((Name("tgi_batch_current_size"),)),
        Metric.REQUESTS_WAITING: Source((Name("tgi_queue_size"),)),
        Metric.PROMPT_TOKENS: Source((Name("tgi_request_input_length_sum"),), expected=False),
        Metric.GENERATION_TOKENS: Source(
            (Name("tgi_request_generated_tokens_sum"),), expected=False
        ),
        Metric.REQUESTS_FINISHED: Source((Name("tgi_request_success"),), expected=False),
        Metric.REQUESTS_REJECTED: Source(
            (Name("tgi_request_failure", {"err": "overloaded"}),), expected=False
        ),
        Metric.REQUEST_SECONDS: Source((Name("tgi_request_duration_sum"),), expected=False),
        Metric.QUEUE_SECONDS: Source((Name("tgi_request_queue_duration_sum"),), expected=False),
        Metric.ENGINE_STEPS: Source((Name("tgi_batch_inference_duration_count"),), expected=False),
        Metric.PROCESS_START: Source((Name("process_start_time_seconds"),), expected=False),
    },
)
