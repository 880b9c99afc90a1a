"""Scaling like SageServe: reactive steps on cache memory, within the budget of an hourly forecast.

Source: peers.md sections 1.15 and 5.8; evaluation section 7, policy 7. Its ARIMA and integer
programme over regions become the same hour of the better of yesterday and last week, for one pool.
Defects: one replica per lock-out, so 4 to 20 takes 41 minutes; memory in use is a stock, which long
decodes fill; silent pods are left out, and without any it waits.
"""

import math
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.pattern import Pattern
from adapter.simulator.rivals.port import Calibration, Ordered, Wish

_LOOP: Final = Seconds(15.0)
_LOCK_OUT: Final = Seconds(155.0)
_HOUR: Final = Seconds(3600.0)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The load's pattern, and until when no step is taken."""

    rates: Pattern
    locked_until: Timestamp


@dataclass(frozen=True, slots=True)
class SageServe:
    """Thresholds and lock-out of the paper's code; a new machine per replica."""

    requests_per_second: float
    """Of one replica, to turn a forecast into a budget."""

    up_at: float = 0.50
    """KV-cache usage ratio, the mean over the pods."""

    down_at: float = 0.25
    override_at: float = 0.90
    """Above this the budget does not hold it."""

    lock_out: Seconds = _LOCK_OUT
    """Between two steps: 155 s for a new machine, 65 s for a warm one."""

    name: str = "sageserve"
    interval: Seconds = _LOOP
    behavior: None = None

    @classmethod
    def of(cls, calibration: Calibration) -> "SageServe":
        """Return the rule set up for an engine."""
        return cls(calibration.requests_per_second)

    def begin(self, seen: Observation) -> Ledger:
        """Return no history and no lock."""
        return Ledger(Pattern(), seen.at)

    def decide(self, seen: Observation, state: Ledger) -> tuple[Wish, Ledger]:
        """Return one step of the reactive rule, not beyond the budget and not below it."""
        rate = seen.router.requests_per_second
        if rate is not None:
            state = replace(state, rates=state.rates.plus(seen.at, rate))
        usages = seen.known(Gauge.KV_USAGE)
        current = seen.spec_replicas
        if seen.at < state.locked_until or not usages:
            return Ordered(current), state
        wanted = self.step(fmean(usages), current, budget=self._budget(state.rates))
        wanted = max(seen.min_replicas, min(seen.max_replicas, wanted))
        if wanted != current:
            state = replace(state, locked_until=Timestamp(seen.at + self.lock_out))
        return Ordered(wanted), state

    def step(self, usage: float, current: int, *, budget: int | None) -> int:
        """Return the count after one step; ``budget`` None is no forecast yet."""
        if usage > self.up_at:
            held = budget is not None and current >= budget and usage <= self.override_at
            return current if held else current + 1
        if usage < self.down_at and current > (budget or 0):
            return current - 1
        return max(current, min(current + 1, budget or 0))

    def _budget(self, rates: Pattern) -> int | None:
        highest = rates.highest(_HOUR)
        return None if highest is None else math.ceil(highest / self.requests_per_second)
