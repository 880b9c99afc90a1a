"""llm-d's SLO-aware law: TTFT and time per output token over their objectives, between set points.

Source: peers.md sections 1.1 and 5.7; with a guide's ramp it is the best published result, 95.8 %
at 5.93 replicas. Defects: the credit for pods under way can ask for fewer than are ordered, which
sheds loading pods when a load takes longer than its windows; no data reads as no load and walks to
the floor; a burning pool asks for 3.6 times what is ready, whatever it needs.
"""

import math
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import SYNC_PERIOD, Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Observation, RouterFacts
from adapter.simulator.rivals.port import ExternalMetric, Published, Wish
from adapter.simulator.rivals.window import Window

_FUZZ: Final = 1e-9
"""Keeps 0.2 * 6 / 0.4 = 3.0000000000000004 from becoming 4."""

_MINUTE: Final = Seconds(60.0)
_SMOOTHING: Final = Seconds(45.0)
_BEHAVIOR: Final = Behavior(
    up=Rules(
        Seconds(30.0),
        (RatePolicy(Unit.PERCENT, 100, _MINUTE), RatePolicy(Unit.PODS, 4, _MINUTE)),
    ),
    down=Rules(Seconds(180.0), (RatePolicy(Unit.PODS, 1, Seconds(120.0)),)),
)


@dataclass(frozen=True, slots=True)
class LlmdSloAware:
    """Publishes the count as an AverageValue "1" metric, under the HPA's default tolerance."""

    ttft_seconds: float = 3.0
    tpot_seconds: float = 0.1
    up_at: float = 0.55
    """Share of the objective above which it grows; between the two nothing happens."""

    down_at: float = 0.40
    clamp: float = 2.0
    """The most that one sample says."""

    smoothing: Seconds = _SMOOTHING
    name: str = "llmd-slo-aware"
    interval: Seconds = SYNC_PERIOD
    behavior: Behavior = _BEHAVIOR

    def begin(self, seen: Observation) -> Window:
        """Return no samples: the mean is over those there are."""
        del seen
        return Window()

    def decide(self, seen: Observation, state: Window) -> tuple[Wish, Window]:
        """Return the law's count for the mean of the recent samples."""
        if seen.source_error:
            return Published((ExternalMetric(None, 1.0),)), state
        state = state.plus(seen.at, self.sample(seen.router), keep=self.smoothing)
        mean = state.mean(seen.at - self.smoothing) or 0.0
        count = self.count(mean, ordered=seen.spec_replicas, ready=seen.ready_replicas)
        return Published((ExternalMetric(float(count), 1.0),)), state

    def sample(self, router: RouterFacts) -> float:
        """Return how much of the objective is used up; without a request, 0."""
        shares = [
            seconds / objective
            for seconds, objective in (
                (router.ttft_p90_seconds, self.ttft_seconds),
                (router.tpot_p90_seconds, self.tpot_seconds),
            )
            if seconds is not None and not math.isnan(seconds)
        ]
        return min(max(shares, default=0.0), self.clamp)

    def count(self, mean: float, *, ordered: int, ready: int) -> int:
        """Return the law in its short form: an HPA on ready pods up, on ordered ones down.

        With none ready the credit for those under way is off, as it is with all ready.
        """
        if mean > self.up_at:
            counted = ready if 0 < ready < ordered else ordered
            return math.ceil(counted * mean / self.up_at - _FUZZ)
        if mean < self.down_at:
            return math.ceil(ordered * mean / self.down_at - _FUZZ)
        return ordered
