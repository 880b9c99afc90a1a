"""Ray Serve's request-based autoscaling: ongoing requests per running replica, after a delay.

Source: peers.md sections 1.8 and 5.6; the newer code's wall-clock delays. Defects: ongoing requests
of long answers are not demand; the direction must hold for the whole delay, so one jittery sample
starts it anew.
"""

import math
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import Ordered, Wish
from adapter.simulator.rivals.window import Window

_PUSH: Final = Seconds(10.0)
"""Handles push their metrics so often: between two pushes no decision can differ."""

_LOOK_BACK: Final = Seconds(30.0)
_UP_DELAY: Final = Seconds(30.0)
_DOWN_DELAY: Final = Seconds(600.0)


@dataclass(frozen=True, slots=True)
class Streak:
    """Since when it has wanted to go one way, and the ongoing requests seen."""

    ongoing: Window
    direction: int = 0
    """1 up, -1 down, 0 neither."""

    since: Timestamp | None = None
    """None while the direction is 0."""


@dataclass(frozen=True, slots=True)
class RayServe:
    """Documented defaults; no downscale to zero."""

    target: float = 2.0
    """Ongoing requests per replica, those queued at the handle included."""

    up_delay: Seconds = _UP_DELAY
    down_delay: Seconds = _DOWN_DELAY
    up_factor: float = 1.0
    down_factor: float = 1.0
    name: str = "ray-serve"
    interval: Seconds = _PUSH
    behavior: None = None

    def begin(self, seen: Observation) -> Streak:
        """Return no streak."""
        del seen
        return Streak(Window())

    def decide(self, seen: Observation, state: Streak) -> tuple[Wish, Streak]:
        """Return the count once its direction has held for the delay; no data changes nothing."""
        total = seen.router.in_flight_requests
        if total is None:
            return Ordered(seen.spec_replicas), state
        ongoing = state.ongoing.plus(seen.at, total, keep=_LOOK_BACK)
        mean = ongoing.mean(seen.at - _LOOK_BACK) or 0.0
        ordered = seen.spec_replicas
        if seen.ready_replicas == 0:
            wanted = max(math.ceil(self.up_factor), ordered) if mean > 0 else ordered
            return Ordered(wanted), Streak(ongoing)
        wanted = self.wanted(mean, running=seen.ready_replicas)
        wanted = max(seen.min_replicas, min(seen.max_replicas, wanted))
        return self._delayed(seen, wanted, Streak(ongoing, state.direction, state.since))

    def wanted(self, total: float, *, running: int) -> int:
        """Return the count for ``total`` ongoing requests, before bounds and delays."""
        ratio = total / (self.target * running)
        factor = self.up_factor if ratio >= 1 else self.down_factor
        wanted = math.ceil(running * (1 + (ratio - 1) * factor))
        rounds_away = math.ceil(running * ratio) < running and wanted == running
        return wanted - 1 if rounds_away else wanted

    def _delayed(self, seen: Observation, wanted: int, state: Streak) -> tuple[Wish, Streak]:
        ordered = seen.spec_replicas
        direction = (wanted > ordered) - (wanted < ordered)
        if direction == 0:
            return Ordered(ordered), Streak(state.ongoing)
        since = seen.at
        if direction == state.direction and state.since is not None:
            since = state.since
        delay = self.up_delay if direction > 0 else self.down_delay
        if seen.at - since < delay:
            return Ordered(ordered), Streak(state.ongoing, direction, since)
        return Ordered(wanted), Streak(state.ongoing)
