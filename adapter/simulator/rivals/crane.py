"""Forecasting like Crane's EffectiveHPA: the most that the pattern shows for the next hour.

Source: peers.md sections 1.13 and 5.8. Its FFT and maximum estimators, the better of daily and
weekly by the last period, become the pattern of in-flight requests itself. Defects: the horizon is
an hour whatever a load takes; the value is truncated to an integer; a forecast of 0 counts as
outdated. Missing data leaves the real metric at what answers and the pattern at its last mean.
"""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.pattern import Pattern
from adapter.simulator.rivals.port import DEFAULT_BEHAVIOR, ExternalMetric, Published, Wish

_HORIZON: Final = Seconds(3600.0)


@dataclass(frozen=True, slots=True)
class CraneForecast:
    """An HPA over the real metric and its forecast, both per replica; the larger counts."""

    target: float = 20.0
    """In-flight requests per replica; tune it as the plain HPA's."""

    margin: float = 0.0
    """``marginFraction`` on the forecast; 0 by default."""

    horizon: Seconds = _HORIZON
    """``predictionWindowSeconds``."""

    name: str = "crane-forecast"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = DEFAULT_BEHAVIOR

    def begin(self, seen: Observation) -> Pattern:
        """Return no history: the world's first days, which nobody scores, fill it."""
        del seen
        return Pattern()

    def decide(self, seen: Observation, state: Pattern) -> tuple[Wish, Pattern]:
        """Return the real metric, and the forecast once there is one above 0."""
        real = seen.summed(Gauge.IN_FLIGHT)
        metrics = [ExternalMetric(real, self.target)]
        if real is not None and seen.known(Gauge.IN_FLIGHT):
            state = state.plus(seen.at, real)
        predicted = int((state.highest(self.horizon) or 0.0) * (1 + self.margin))
        if predicted > 0:
            metrics.append(ExternalMetric(float(predicted), self.target))
        return Published(tuple(metrics)), state
