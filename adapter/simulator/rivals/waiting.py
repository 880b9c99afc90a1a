"""KEDA on waiting requests, as vLLM's production-stack ships it, with the missing ``sum()``.

Source: peers.md section 1.10; evaluation section 7, policy 3. Defects: a queue says nothing until
it is too late, then asks for one replica per five requests that wait, whatever is on its way; the
shipped query has no ``sum()`` and fails with two pods, which is repaired here; ``cooldownPeriod``
360 governs only the last step to zero, so the HPA's default windows decide the way down.
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
class WaitingKeda(Memoryless):
    """AverageValue ``target`` on waiting requests."""

    target: float = 5.0
    """Requests per replica: the chart's default."""

    name: str = "keda-waiting"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = DEFAULT_BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return the sum over the pods that answer: no series at all reads as an empty queue."""
        total = seen.summed(Gauge.WAITING)
        return Published((ExternalMetric(total, self.target),)), state
