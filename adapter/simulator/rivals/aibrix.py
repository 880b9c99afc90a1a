"""AIBrix' PodAutoscaler, strategies APA and KPA: as it ships, and with its defects repaired.

Source: peers.md sections 1.4 and 5.1. Defects as shipped: KPA divides a mean per pod by the target
as if it were a total, and halves under overload; a failed scrape is a load of 0, so an outage takes
ten replicas to one in 90 s; the cooldown takes the *least* recommendation on the way down; pods
that load are not counted, so one overload doubles the count every tick. Its panic has no memory.
The repaired build reads totals in KPA, leaves failed pods out, takes the largest recommendation
down, and orders nothing while replicas are pending.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import Ordered, Wish
from adapter.simulator.rivals.window import Window

_TICK: Final = Seconds(10.0)
_STABLE: Final = Seconds(180.0)
_PANIC: Final = Seconds(60.0)
_COOLDOWN: Final = Seconds(300.0)


class Strategy(StrEnum):
    """``scalingStrategy``."""

    APA = "APA"
    KPA = "KPA"


class Build(StrEnum):
    """Whether the defects are in."""

    SHIPPED = "shipped"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True)
class Past:
    """What the controller holds in memory."""

    values: Window
    """Means per pod."""

    wanted: Window


@dataclass(frozen=True, slots=True)
class AibrixAutoscaler:
    """Documented defaults: rates of 2, tolerances of 0.1, cooldowns of 0 s up and 300 s down."""

    strategy: Strategy
    build: Build = Build.SHIPPED
    gauge: Gauge = Gauge.KV_USAGE
    target: float = 0.5
    """Per pod: the documented example's, of KV-cache usage."""

    rate: float = 2.0
    """The most that one tick multiplies or divides by."""

    tolerance: float = 0.1
    panic_threshold: float = 2.0
    cooldown: Seconds = _COOLDOWN
    interval: Seconds = _TICK
    behavior: None = None

    @property
    def name(self) -> str:
        """Return the strategy and the build."""
        repaired = "" if self.build is Build.SHIPPED else "-repaired"
        return f"aibrix-{self.strategy.lower()}{repaired}"

    def begin(self, seen: Observation) -> Past:
        """Return no history."""
        del seen
        return Past(Window(), Window())

    def decide(self, seen: Observation, state: Past) -> tuple[Wish, Past]:
        """Return the cooled-down count; a target at zero is left alone."""
        current = seen.spec_replicas
        value = self._mean(seen)
        if current == 0 or value is None:
            return Ordered(current), state
        state = replace(state, values=state.values.plus(seen.at, value, keep=_STABLE))
        wanted = self._wanted(seen, state.values)
        if self.build is Build.REPAIRED and seen.pending_replicas > 0:
            wanted = min(wanted, current)
        history = state.wanted.plus(seen.at, float(wanted), keep=self.cooldown)
        cooled = self.cooled(history, wanted, current=current, at=seen.at)
        bounded = max(seen.min_replicas, min(seen.max_replicas, cooled))
        return Ordered(bounded), replace(state, wanted=history)

    def apa(self, mean: float, *, current: int) -> int:
        """Return APA's count for a mean per pod."""
        ratio = mean / self.target
        if ratio > 1 + self.tolerance:
            return min(math.ceil(current * ratio), math.ceil(self.rate * current))
        if ratio < 1 - self.tolerance:
            return max(math.ceil(current * ratio), math.floor(current / self.rate))
        return current

    def kpa(self, stable: float, panic: float, *, current: int) -> int:
        """Return KPA's count for a stable and a panic value: means as shipped, totals repaired."""
        panicking = stable <= 0 or panic / stable > self.panic_threshold
        wanted = self._step(stable, current)
        return max(wanted, self._step(panic, current)) if panicking else wanted

    def cooled(self, history: Window, wanted: int, *, current: int, at: Timestamp) -> int:
        """Return the count after the cooldown; ``history`` holds ``wanted`` already."""
        if wanted >= current:
            return wanted
        recent = history.after(at - self.cooldown)
        return int(min(recent) if self.build is Build.SHIPPED else max(recent))

    def _mean(self, seen: Observation) -> float | None:
        """Return the mean over Ready pods: failures are 0 as shipped, left out when repaired."""
        values = [pod.value(self.gauge) for pod in seen.ready_pods]
        if self.build is Build.SHIPPED:
            values = [value or 0.0 for value in values]
        known = [value for value in values if value is not None]
        return fmean(known) if known else None

    def _wanted(self, seen: Observation, values: Window) -> int:
        stable = values.mean(seen.at - _STABLE) or 0.0
        if self.strategy is Strategy.APA:
            return self.apa(stable, current=seen.spec_replicas)
        panic = values.mean(seen.at - _PANIC) or 0.0
        pods = seen.ready_replicas if self.build is Build.REPAIRED else 1
        return self.kpa(stable * pods, panic * pods, current=seen.spec_replicas)

    def _step(self, value: float, current: int) -> int:
        share = current if self.build is Build.REPAIRED else 1
        ratio = value / (self.target * share)
        steady = 1 - self.tolerance <= ratio <= 1 + self.tolerance
        wanted = current if steady else math.ceil(value / self.target)
        highest = max(1, math.ceil(self.rate * current))
        return max(math.floor(current / self.rate), min(highest, wanted))
