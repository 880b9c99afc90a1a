"""KEDA on KV-cache usage and waiting requests, as llm-d's older script sets it up.

Source: evaluation section 7, policy 4. Defects: a long decode fills the cache without any want of
capacity; usage of 0.66 against 0.6 sits on the HPA's tolerance and never scales.
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
class KvAndWaitingKeda(Memoryless):
    """The larger of two AverageValue targets."""

    kv_target: float = 0.6
    """Usage ratio per replica, summed over replicas."""

    waiting_target: float = 30.0
    """Requests per replica."""

    name: str = "keda-kv-waiting"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = DEFAULT_BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return both sums over the pods that answer."""
        usage = ExternalMetric(seen.summed(Gauge.KV_USAGE), self.kv_target)
        waiting = ExternalMetric(seen.summed(Gauge.WAITING), self.waiting_target)
        return Published((usage, waiting)), state
