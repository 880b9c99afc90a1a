"""An HPA on in-flight requests: the strongest thing that plain Kubernetes offers, once tuned.

Source: evaluation section 7, policy 2; the arithmetic is peers.md section 5.0. Defect: the target
that is right for one mix of lengths meets the objective for two thirds of the requests on another.
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
class InFlightHpa(Memoryless):
    """AverageValue ``target`` on running plus waiting, with the HPA's default behavior."""

    target: float = 20.0
    """Requests per replica; tuned by grid on the first day, scored on the later ones."""

    name: str = "hpa-in-flight"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = DEFAULT_BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return the sum over the pods that answer: a silent pod counts as idle."""
        total = seen.summed(Gauge.IN_FLIGHT)
        return Published((ExternalMetric(total, self.target),)), state
