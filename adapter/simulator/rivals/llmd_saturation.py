"""llm-d's experimental saturation ScaledObject: a ratio of the whole pool read as a total.

Source: peers.md section 1.1 (``keda-epp`` saturation). Defect: ``pool_saturation`` is a mean over
the pool, and AverageValue divides it by the replicas again: full saturation asks for two replicas
whatever the pool's size, so four saturated ones shrink to three.
"""

from dataclasses import dataclass
from statistics import fmean
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Gauge, Observation, PodFacts
from adapter.simulator.rivals.port import ExternalMetric, Memoryless, NoMemory, Published, Wish

_WINDOW: Final = Seconds(300.0)
_ALL: Final = (RatePolicy(Unit.PERCENT, 100),)
_BEHAVIOR: Final = Behavior(up=Rules(_WINDOW, _ALL), down=Rules(_WINDOW, _ALL))


@dataclass(frozen=True, slots=True)
class LlmdSaturation(Memoryless):
    """The pool's saturation and running requests; the guide's windows."""

    saturation_target: float = 0.7
    running_target: float = 16.0
    """Requests per replica."""

    full_queue: float = 5.0
    """Waiting requests that count as saturation 1: the endpoint picker's default, from memory."""

    full_kv_ratio: float = 0.8
    """KV-cache usage that counts as saturation 1, likewise."""

    name: str = "llmd-saturation"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = _BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return the mean saturation of the pods that answer, 0 of none, and their running sum."""
        metrics = (
            ExternalMetric(self._saturation(seen), self.saturation_target),
            ExternalMetric(seen.summed(Gauge.RUNNING), self.running_target),
        )
        return Published(metrics), state

    def _saturation(self, seen: Observation) -> float | None:
        if seen.source_error:
            return None
        answering = [self._share(pod) for pod in seen.pods if not pod.silent]
        return fmean(answering) if answering else 0.0

    def _share(self, pod: PodFacts) -> float:
        waiting, usage = pod.waiting or 0.0, pod.kv_usage_ratio or 0.0
        return max(waiting / self.full_queue, usage / self.full_kv_ratio)
