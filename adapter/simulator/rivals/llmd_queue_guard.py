"""llm-d's queue-guard overlay: the queue formula that subtracts what is not available yet.

Source: peers.md sections 1.1 and 5.7. Defects: the need is a total that already contains the pods
on their way, so subtracting them asks for too few; after three failed queries its fallback is one
replica, whatever runs.
"""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import ExternalMetric, Published, Wish

_ALL: Final = (RatePolicy(Unit.PERCENT, 100),)
_BEHAVIOR: Final = Behavior(up=Rules(Seconds(0.0), _ALL), down=Rules(Seconds(300.0), _ALL))


@dataclass(frozen=True, slots=True)
class Failures:
    """How many queries in a row the store has not answered."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class LlmdQueueGuard:
    """One AverageValue "1" metric made by a ``scalingModifiers`` formula."""

    queue_per_replica: float = 1.0
    running_per_replica: float = 16.0
    failure_threshold: int = 3
    fallback_replicas: int = 1
    """``fallback.replicas`` of the shipped manifest, static."""

    name: str = "llmd-queue-guard"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = _BEHAVIOR

    def begin(self, seen: Observation) -> Failures:
        """Return no failures yet."""
        del seen
        return Failures()

    def decide(self, seen: Observation, state: Failures) -> tuple[Wish, Failures]:
        """Return the guarded need; absent series are 0, and failures lead to the fallback."""
        running = seen.summed(Gauge.RUNNING)
        if running is None:
            state = Failures(state.count + 1)
            fallen = state.count > self.failure_threshold
            return _one(float(self.fallback_replicas) if fallen else None), state
        queued = seen.router.queued_requests or 0.0
        need = max(queued / self.queue_per_replica, running / self.running_per_replica)
        return _one(guarded(need, seen.spec_replicas, seen.pending_replicas)), Failures()


def guarded(need: float, replicas: int, unavailable: int) -> float:
    """Return the formula's value: up to the present count the need itself, less beyond it."""
    return need if need <= replicas else max(need - unavailable, float(replicas))


def _one(value: float | None) -> Published:
    return Published((ExternalMetric(value, 1.0),))
