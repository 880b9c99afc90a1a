"""A moving-window recommender, as Autopilot's and the VPA's: a high percentile of recent use.

Source: evaluation sections 3 and 7, policy 9. Defects: behind every rise by the share of the window
that the percentile leaves out, and above every fall for nearly the whole window.
"""

import math
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import Calibration, Ordered, Wish
from adapter.simulator.rivals.window import Window

_MINUTE: Final = Seconds(60.0)
_WINDOW: Final = Seconds(3600.0)


@dataclass(frozen=True, slots=True)
class MovingP95:
    """The percentile of arriving requests per second, over what one replica does."""

    requests_per_second: float
    """Of one replica, within the objective."""

    quantile: float = 0.95
    margin: float = 0.15
    """On top, as the VPA's recommender by default."""

    window: Seconds = _WINDOW
    """An hour of minutes: an in-day curve would drown in Autopilot's own days."""

    name: str = "moving-p95"
    interval: Seconds = _MINUTE
    behavior: None = None

    @classmethod
    def of(cls, calibration: Calibration) -> "MovingP95":
        """Return the rule set up for an engine."""
        return cls(calibration.requests_per_second)

    def begin(self, seen: Observation) -> Window:
        """Return no history."""
        del seen
        return Window()

    def decide(self, seen: Observation, state: Window) -> tuple[Wish, Window]:
        """Return the recommendation; a minute without data is left out."""
        rate = seen.router.requests_per_second
        if rate is not None:
            state = state.plus(seen.at, rate, keep=self.window)
        rates = sorted(state.after(seen.at - self.window))
        if not rates:
            return Ordered(seen.spec_replicas), state
        high = rates[math.ceil(self.quantile * len(rates)) - 1] * (1 + self.margin)
        wanted = math.ceil(high / self.requests_per_second)
        return Ordered(max(seen.min_replicas, min(seen.max_replicas, wanted))), state
