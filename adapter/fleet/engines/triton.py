"""Triton: plain models, its vLLM backend and its TensorRT-LLM backend, told apart per model.

Names and releases: triton core ``metrics.cc``, binaries of 2.36 to 2.51 run on a CPU, the READMEs
of both backends. What to know of the numbers:

* pending counts only what no backend instance has taken. A backend that takes all and batches
  itself - vLLM, TensorRT-LLM, any decoupled model whose execute() returns at once - shows 0 with
  any queue inside. Next to a series of such a backend it counts as not exported; a backend that
  exports none (the vLLM one without REPORT_CUSTOM_METRICS) cannot be told from an idle model;
* success includes errors that a python model returned, a full queue's 503 is counted nowhere;
* sums are microseconds and grow when a request ends, the TTFT histogram is milliseconds;
* every version of a model has its own series and they go with it: versions are read as ranks.
"""

from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.metrics import Metric

_VLLM_BACKEND = "vllm:prompt_tokens_total"
_TRTLLM_BACKEND = "nv_trt_llm_request_metrics"
_MICROSECOND = 1e-6
_MILLISECOND = 1e-3


def _requests(request_type: str) -> Name:
    return Name(_TRTLLM_BACKEND, {"request_type": request_type}, since="23.11")


def _blocks(block_type: str, over: Name | None = None) -> Name:
    labels = {"kv_cache_block_type": block_type}
    return Name("nv_trt_llm_kv_cache_block_metrics", labels, since="23.11", over=over)


TRITON = Dialect(
    engine="triton",
    spellings=(Spelling("nv_", marks=("nv_", "vllm:prompt_tokens_total{model=")),),
    model_labels=("model",),
    rank_labels=("version",),
    hint="no model is loaded",
    sources={
        Metric.REQUESTS_RUNNING: Source((_requests("scheduled"),), expected=False),
        Metric.REQUESTS_WAITING: Source(
            (_requests("waiting"), Name("nv_inference_pending_request_count", since="23.09")),
            expected=False,
            hidden_by=(_VLLM_BACKEND,),
        ),
        Metric.KV_CACHE_USAGE: Source(
            (_blocks("used", over=_blocks("max")), _blocks("fraction")), expected=False
        ),
        Metric.PROMPT_TOKENS: Source((Name(_VLLM_BACKEND, since="24.08"),), expected=False),
        Metric.GENERATION_TOKENS: Source(
            (Name("vllm:generation_tokens_total", since="24.08"),), expected=False
        ),
        Metric.REQUESTS_FINISHED: Source(
            (
                Name("vllm:e2e_request_latency_seconds_count", since="24.08"),
                Name("nv_inference_request_success"),
            ),
            plus=((Name("nv_inference_request_failure"),),),
            expected=False,
        ),
        Metric.REQUEST_SECONDS: Source(
            (
                Name("vllm:e2e_request_latency_seconds_sum", since="24.08"),
                Name("nv_inference_request_duration_us", unit=_MICROSECOND),
            ),
            expected=False,
            hidden_by=(_TRTLLM_BACKEND,),
        ),
        Metric.QUEUE_SECONDS: Source(
            (Name("nv_inference_queue_duration_us", unit=_MICROSECOND),),
            expected=False,
            hidden_by=(_VLLM_BACKEND, _TRTLLM_BACKEND),
        ),
        Metric.ENGINE_STEPS: Source(
            (
                Name("nv_trt_llm_general_metrics", {"general_type": "iteration_counter"}),
                Name("nv_inference_exec_count"),
            ),
            expected=False,
            hidden_by=(_VLLM_BACKEND,),
        ),
        Metric.CACHE_HITS: Source((Name("nv_cache_num_hits_per_model"),), expected=False),
        Metric.MODEL_LOAD_SECONDS: Source(
            (Name("nv_model_load_duration_secs", since="24.11"),), expected=False
        ),
    },
    ttft=Source(
        (
            Name("vllm:time_to_first_token_seconds", since="24.08"),
            Name("nv_inference_first_response_histogram_ms", since="24.11", unit=_MILLISECOND),
        ),
        expected=False,
    ),
)
"""``expected=False`` throughout: what a model exports depends on its backend and on flags."""
