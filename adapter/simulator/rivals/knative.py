"""Knative's pod autoscaler on concurrency, with its panic mode.

Source: peers.md sections 1.7 and 5.2. Defects: it knows no load time, so a slow start in panic is
answered by more pods; leaving panic forgets a plan whose pods are still loading. Without data it
decides nothing.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import Ordered, Wish
from adapter.simulator.rivals.window import Window

_TICK: Final = Seconds(2.0)
_STABLE: Final = Seconds(60.0)
_PANIC: Final = Seconds(6.0)
_DELAY: Final = Seconds(900.0)
_LEAST_TARGET: Final = 0.01


@dataclass(frozen=True, slots=True)
class Memory:
    """Samples, recommendations, and the panic with the most it ordered."""

    concurrency: Window
    """Totals over the service."""

    wanted: Window
    panic_since: Timestamp | None
    """Renewed while the panic's cause lasts; None outside a panic."""

    most: int
    """In this panic."""


@dataclass(frozen=True, slots=True)
class KnativeKpa:
    """The documented example: target 10 at 70 % utilization, scale-down delay 15 min."""

    target: float = 10.0
    """Requests in flight per replica."""

    utilization: float = 0.70
    panic_threshold: float = 2.0
    max_up: float = 1000.0
    max_down: float = 2.0
    activation: int = 1
    delay: Seconds = _DELAY
    """Of scale-down: the largest recommendation within it counts; 0 is none."""

    name: str = "knative-kpa"
    interval: Seconds = _TICK
    behavior: None = None

    def begin(self, seen: Observation) -> Memory:
        """Return a panic at the ready count: a restart cannot scale down for one window."""
        panic_since = seen.at if seen.ready_replicas > 1 else None
        return Memory(Window(), Window(), panic_since, seen.ready_replicas)

    def decide(self, seen: Observation, state: Memory) -> tuple[Wish, Memory]:
        """Return the count for the mean concurrency of both windows."""
        total = seen.router.in_flight_requests
        if total is None or not math.isfinite(total):
            return Ordered(seen.spec_replicas), state
        samples = state.concurrency.plus(seen.at, total, keep=_STABLE)
        stable = samples.mean(seen.at - _STABLE) or 0.0
        panic = samples.mean(seen.at - _PANIC) or 0.0
        wanted, state = self.judge(
            replace(state, concurrency=samples),
            at=seen.at,
            ready=seen.ready_replicas,
            stable=stable,
            panic=panic,
        )
        return Ordered(max(seen.min_replicas, min(seen.max_replicas, wanted))), state

    def judge(
        self, state: Memory, *, at: Timestamp, ready: int, stable: float, panic: float
    ) -> tuple[int, Memory]:
        """Return the count for the two windows' means, before the bounds."""
        capacity = max(1, ready)
        for_stable = self._within_rates(stable, capacity)
        for_panic = self._within_rates(panic, capacity)
        state = self._panicking(state, at, over=self._pods(panic) / capacity)
        wanted = for_stable
        if state.panic_since is not None:
            wanted = max(for_stable, for_panic, state.most)
            state = replace(state, most=wanted)
        if self.delay:
            state = replace(state, wanted=state.wanted.plus(at, float(wanted), keep=self.delay))
            wanted = int(max(state.wanted.after(at - self.delay)))
        return wanted, state

    def _panicking(self, state: Memory, at: Timestamp, *, over: float) -> Memory:
        if over >= self.panic_threshold:
            return replace(state, panic_since=at)
        if state.panic_since is not None and at > state.panic_since + _STABLE:
            return replace(state, panic_since=None, most=0)
        return state

    def _within_rates(self, total: float, capacity: int) -> int:
        pods = self._pods(total)
        highest, lowest = math.ceil(self.max_up * capacity), math.floor(capacity / self.max_down)
        bounded = max(lowest, min(highest, pods))
        return max(bounded, self.activation) if pods > 0 and self.activation > 1 else bounded

    def _pods(self, total: float) -> int:
        return math.ceil(total / max(_LEAST_TARGET, self.target * self.utilization))
