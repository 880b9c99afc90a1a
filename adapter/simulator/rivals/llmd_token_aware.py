"""llm-d's token-aware triggers: seconds of prefill in flight, and the sum of KV-cache usage.

Source: peers.md sections 1.1 and 5.7. Defects: under a closed loop the tokens in flight do not
depend on the replicas, so it goes to the maximum and stays; the prefill rate differs sixfold by
path and is calibrated by hand; KV 0.88 against 0.8 sits exactly on the HPA's tolerance.
"""

from dataclasses import dataclass

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import (
    DEFAULT_BEHAVIOR,
    ExternalMetric,
    Memoryless,
    NoMemory,
    Published,
    Wish,
)


@dataclass(frozen=True, slots=True)
class LlmdTokenAware(Memoryless):
    """Two AverageValue targets."""

    prefill_tokens_per_second: float = 15_928.0
    """Of one replica; the guide's Qwen3-32B on two H100. Calibrate it."""

    backlog_target_seconds: float = 1.5
    """Of prefill per replica: the objective less one prompt, times 0.6 to 0.7 for the tail."""

    kv_target: float = 0.8
    name: str = "llmd-token-aware"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = DEFAULT_BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return both totals; tokens that nobody exports read as none."""
        tokens = None if seen.source_error else seen.router.uncached_tokens_in_flight or 0.0
        seconds = None if tokens is None else tokens / self.prefill_tokens_per_second
        metrics = (
            ExternalMetric(seconds, self.backlog_target_seconds),
            ExternalMetric(seen.summed(Gauge.KV_USAGE), self.kv_target),
        )
        return Published(metrics), state
