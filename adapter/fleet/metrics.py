"""The metrics the decision understands, whatever each engine calls them."""

from enum import StrEnum


class Metric(StrEnum):
    """Canonical metric names; a dialect maps an engine's series onto these."""

    REQUESTS_RUNNING = "requests_running"
    """Requests in the running batch, prefill and decode (gauge, requests; ranks add up)."""

    REQUESTS_WAITING = "requests_waiting"
    """Requests queued inside the engine for want of capacity (gauge, requests; ranks add up)."""

    REQUESTS_DEFERRED = "requests_deferred"
    """Requests held back for a cause that no new replica cures: remote KV, grammar compile,
    LoRA budget (gauge, requests; ranks add up). Never part of ``requests_waiting``."""

    KV_CACHE_USAGE = "kv_cache_usage_ratio"
    """Share of the KV cache in use (gauge, ratio 0..1; the mean over ranks)."""

    KV_CACHE_USAGE_PEAK = "kv_cache_usage_peak_ratio"
    """The same of the fullest rank: a mean hides a hot rank (gauge, ratio 0..1; maximum)."""

    PROMPT_TOKENS = "prompt_tokens_total"
    """Prompt tokens taken in (counter, tokens; ranks add up)."""

    CACHED_PROMPT_TOKENS = "cached_prompt_tokens_total"
    """Prompt tokens answered from the prefix cache, hence not computed (counter, tokens)."""

    GENERATION_TOKENS = "generation_tokens_total"
    """Output tokens produced (counter, tokens; ranks add up)."""

    REQUESTS_FINISHED = "requests_finished_total"
    """Requests that ended, for whatever reason the engine counts (counter, requests)."""

    REQUESTS_REJECTED = "requests_rejected_total"
    """Requests turned away at admission; load that no gauge shows (counter, requests)."""

    REQUEST_SECONDS = "request_seconds_total"
    """Sum of request durations, added when each ends (counter, seconds): its rate is the mean
    number in flight by Little's law, for engines that have no running gauge."""

    QUEUE_SECONDS = "queue_seconds_total"
    """Sum of the time requests spent queued, added when each ends (counter, seconds)."""

    PREEMPTIONS = "preemptions_total"
    """Requests thrown out of the batch for want of KV cache (counter, events)."""

    ENGINE_STEPS = "engine_steps_total"
    """Scheduler iterations: the engine's heartbeat (counter, steps)."""

    CACHE_HITS = "response_cache_hits_total"
    """Whole answers served from a response cache: no engine work (counter, requests)."""

    PROCESS_START = "process_start_timestamp_seconds"
    """When the engine process started (gauge, Unix seconds)."""

    MODEL_LOAD_SECONDS = "model_load_seconds"
    """How long the engine says it took to load its model (gauge, seconds)."""


COUNTERS = frozenset(
    {
        Metric.PROMPT_TOKENS,
        Metric.CACHED_PROMPT_TOKENS,
        Metric.GENERATION_TOKENS,
        Metric.REQUESTS_FINISHED,
        Metric.REQUESTS_REJECTED,
        Metric.REQUEST_SECONDS,
        Metric.QUEUE_SECONDS,
        Metric.PREEMPTIONS,
        Metric.ENGINE_STEPS,
        Metric.CACHE_HITS,
    }
)
"""Metrics that only grow while the engine lives; everything else is a gauge."""
