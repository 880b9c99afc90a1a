"""kthena's autoscaler: metrics summed over the pods, over a target per pod, the largest counts.

Source: peers.md sections 1.6 and 5.8. Defects: the tolerance compares the *sum* with the target of
one pod, so four pods at a quarter of it each stay four, and a little less makes them one; one pod
that fails to answer stops every decision. Its panic mode only keeps the count up for a while, which
the stabilization window does as well, and is left out.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.rivals.observation import Gauge, Observation
from adapter.simulator.rivals.port import Ordered, Wish
from adapter.simulator.rivals.window import Window

_LOOP: Final = Seconds(15.0)
_DOWN_WINDOW: Final = Seconds(300.0)
_TARGETS: Final = ((Gauge.WAITING, 5.0), (Gauge.RUNNING, 16.0))


@dataclass(frozen=True, slots=True)
class Kthena:
    """A tolerance of 10 %, and the HPA's window on the way down."""

    targets: tuple[tuple[Gauge, float], ...] = _TARGETS
    """Per replica; the gauges are free, these are llm-d's and production-stack's numbers."""

    tolerance: float = 0.1
    down_window: Seconds = _DOWN_WINDOW
    name: str = "kthena"
    interval: Seconds = _LOOP
    behavior: None = None

    def begin(self, seen: Observation) -> Window:
        """Return the present count as its only recommendation."""
        return Window(((seen.at, float(seen.spec_replicas)),))

    def decide(self, seen: Observation, state: Window) -> tuple[Wish, Window]:
        """Return the largest recommendation of the window; any silent Ready pod skips the turn."""
        loads = [tuple(pod.value(gauge) for pod in seen.ready_pods) for gauge, _ in self.targets]
        known = [tuple(one for one in load if one is not None) for load in loads]
        if not seen.ready_pods or any(map(_differ, loads, known)):
            return Ordered(seen.spec_replicas), state
        wanted = max(
            self.count(load, target, current=seen.spec_replicas, unready=seen.pending_replicas)
            for load, (_, target) in zip(known, self.targets, strict=True)
        )
        state = state.plus(seen.at, float(wanted), keep=self.down_window)
        highest = int(max(state.after(seen.at - self.down_window)))
        return Ordered(max(seen.min_replicas, min(seen.max_replicas, highest))), state

    def count(self, load: Sequence[float], target: float, *, current: int, unready: int = 0) -> int:
        """Return the count for one gauge of the Ready pods; unready ones are idle on the way up."""
        ratio = sum(load) / target
        if unready == 0 or ratio < 1:
            return current if self._near(ratio) else math.ceil(ratio)
        spread = ratio / (1 + unready)
        wanted = math.ceil(ratio)
        if self._near(spread) or spread < 1 or wanted < current:
            return current
        return wanted

    def _near(self, ratio: float) -> bool:
        return abs(ratio - 1.0) <= self.tolerance


def _differ(every: tuple[float | None, ...], known: tuple[float, ...]) -> bool:
    return len(every) != len(known)
