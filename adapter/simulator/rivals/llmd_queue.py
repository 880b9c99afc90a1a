"""llm-d's default ScaledObject: flow-control queue and running requests, the larger one counts.

Source: peers.md section 1.1 (``keda-epp`` queue). Defects: a 300 s window on the way *up* is its
only brake against overshoot, so nothing grows in the first five minutes; 16 running requests per
replica is one model's number.
"""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import ExternalMetric, Memoryless, NoMemory, Published, Wish

_WINDOW: Final = Seconds(300.0)
_ALL: Final = (RatePolicy(Unit.PERCENT, 100),)
_BEHAVIOR: Final = Behavior(up=Rules(_WINDOW, _ALL), down=Rules(_WINDOW, _ALL))


@dataclass(frozen=True, slots=True)
class LlmdQueue(Memoryless):
    """Two AverageValue targets; the guide's windows."""

    queue_target: float = 1.0
    """Requests queued at the endpoint picker, per replica."""

    running_target: float = 16.0
    """Requests per replica."""

    name: str = "llmd-queue"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = _BEHAVIOR

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return both sums; a queue that nobody exports reads as an empty one."""
        queue = None if seen.source_error else seen.router.queued_requests or 0.0
        running = seen.summed(Gauge.RUNNING)
        metrics = (
            ExternalMetric(queue, self.queue_target),
            ExternalMetric(running, self.running_target),
        )
        return Published(metrics), state
