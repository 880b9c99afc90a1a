"""KAITO's KEDA scaler: all above asks for more, all below for less, one replica per five minutes.

Source: peers.md sections 1.5 and 5.8. Defects: measures are joined by AND, so one quiet measure
holds a queue of 200; one replica that never gets Ready blocks every scale-up; 4 to 20 takes 80
minutes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import SYNC_PERIOD, Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import ExternalMetric, Published, TargetType, Wish

_STALE: Final = Seconds(45.0)
_ONE: Final = (RatePolicy(Unit.PODS, 1, Seconds(300.0)),)
_BEHAVIOR: Final = Behavior(up=Rules(Seconds(60.0), _ONE), down=Rules(Seconds(300.0), _ONE))
_GROW, _STAY, _SHRINK = 2.0, 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Threshold:
    """Per replica; between the two it neither grows nor shrinks."""

    gauge: Gauge
    up: float
    down: float


_WAITING: Final = Threshold(Gauge.WAITING, up=10.0, down=2.0)


@dataclass(frozen=True, slots=True)
class LastSeen:
    """The latest values that were complete, in the order of the thresholds."""

    at: Timestamp
    values: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class KaitoScaler:
    """A Value "1" metric of 2, 1 or 0.5: the HPA multiplies, its rate policy makes it one."""

    thresholds: tuple[Threshold, ...] = (_WAITING,)
    name: str = "kaito"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = _BEHAVIOR

    def begin(self, seen: Observation) -> LastSeen:
        """Return nothing seen yet."""
        return LastSeen(seen.at)

    def decide(self, seen: Observation, state: LastSeen) -> tuple[Wish, LastSeen]:
        """Return the metric, or an error once nothing complete was seen for 45 s.

        A pod that does not answer counts as 0, as long as any does.
        """
        values = self._means(seen)
        if values is not None:
            state = LastSeen(seen.at, values)
        if not state.values or seen.at - state.at > _STALE:
            return _value(None), state
        factor = self.factor(state.values, ready=seen.ready_replicas, ordered=seen.spec_replicas)
        return _value(factor), state

    def factor(self, values: Sequence[float], *, ready: int, ordered: int) -> float:
        """Return the factor for one value per threshold."""
        pairs = list(zip(values, self.thresholds, strict=True))
        if ready >= ordered and all(value > limits.up for value, limits in pairs):
            return _GROW
        return _SHRINK if all(value < limits.down for value, limits in pairs) else _STAY

    def _means(self, seen: Observation) -> tuple[float, ...] | None:
        pods = seen.ready_pods
        if all(pod.silent for pod in pods):
            return None
        return tuple(
            fmean(pod.value(limits.gauge) or 0.0 for pod in pods) for limits in self.thresholds
        )


def _value(factor: float | None) -> Published:
    return Published((ExternalMetric(factor, 1.0, TargetType.VALUE),))
