"""A planner like NVIDIA Dynamo's: a load loop of single steps over a throughput forecast.

Source: peers.md sections 1.3 and 5.5; aggregated mode. For the target ``sla`` its fitted step-time
regression is taken as linear: queued prompt tokens at the calibrated prefill rate, and the measured
time between tokens. Defects: one replica per load time, so 4 to 20 takes 65 minutes at 240 s; up
only when *all* engines miss, so a single fast one vetoes; the forecast looks one interval ahead,
not one load time; an unknown load is forecast as 0.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final, NamedTuple

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.observation import Observation, PodFacts
from adapter.simulator.rivals.port import Calibration, Ordered, Wish

_LOAD_LOOP: Final = Seconds(5.0)
_THROUGHPUT_LOOP: Final = Seconds(180.0)
_POINTS: Final = 50
"""Of the predictor's history: 2.5 h."""

_SENSITIVITY: Final = 0.8
_ENOUGH: Final = 5
"""Observations before the load loop acts."""


class Target(StrEnum):
    """``optimization_target``."""

    SLA = "sla"
    THROUGHPUT = "throughput"
    """Its default."""

    LATENCY = "latency"


_UTILIZATION: Final = {Target.THROUGHPUT: (1.0, 0.6), Target.LATENCY: (0.4, 0.1)}
"""Of the KV cache, queue included: up when any engine is above, down when all are below."""


class Estimate(NamedTuple):
    """What one engine would give the next request, in seconds."""

    queued: float
    """Prefill of what waits."""

    own: float
    """Prefill of the request itself."""

    itl: float
    """Between two output tokens; 0 of an idle engine."""

    utilization: float
    """Tokens in the KV cache and in the queue, over what the cache holds; 1 is full."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planner remembers."""

    forecast_at: Timestamp
    """When the throughput loop ran last."""

    rates: tuple[float, ...] = ()
    """Requests per second, one per throughput interval."""

    least: int = 0
    """The forecast's count: the load loop does not go below it."""

    observations: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamoPlanner:
    """Both loops on, with the documented example's objectives.

    Its GPU budget is the scale target's maximum.
    """

    kv_tokens: int
    """That one replica's cache holds."""

    prefill_tokens_per_second: float
    requests_per_second: float
    """Of one replica, within the objectives: what its profiling run finds."""

    ttft_seconds: float = 0.5
    itl_seconds: float = 0.05
    target: Target = Target.SLA
    interval: Seconds = _LOAD_LOOP
    behavior: None = None

    @classmethod
    def of(cls, calibration: Calibration, target: Target) -> "DynamoPlanner":
        """Return the rule set up for an engine."""
        return cls(
            kv_tokens=calibration.kv_tokens,
            prefill_tokens_per_second=calibration.prefill_tokens_per_second,
            requests_per_second=calibration.requests_per_second,
            target=target,
        )

    @property
    def name(self) -> str:
        """Return the planner's name with its target."""
        return f"dynamo-{self.target}"

    def begin(self, seen: Observation) -> Plan:
        """Return no forecast; the first is one throughput interval away."""
        return Plan(seen.at)

    def decide(self, seen: Observation, state: Plan) -> tuple[Wish, Plan]:
        """Return the load loop's step, not below the forecast; scaling under way waits.

        Engines without metrics, or too few observations, change nothing.
        """
        state = self._forecast(seen, state)
        engines = self.estimates(seen)
        if engines:
            state = replace(state, observations=state.observations + 1)
        steady = seen.pending_replicas == 0 and len(engines) == seen.spec_replicas
        wanted = seen.spec_replicas
        if steady and state.observations >= _ENOUGH:
            wanted = self.step(engines)
        if seen.pending_replicas == 0:
            wanted = max(wanted, state.least)
        return Ordered(max(seen.min_replicas, min(seen.max_replicas, wanted))), state

    def estimates(self, seen: Observation) -> list[Estimate]:
        """Return the estimate of every ready engine that answers."""
        prompt = (seen.router.prompt_tokens_mean or 0.0) * (1.0 - seen.router.cached_share)
        own = prompt / self.prefill_tokens_per_second
        return [
            Estimate(
                queued=pod.waiting * own,
                own=own,
                itl=_between_tokens(pod),
                utilization=(pod.kv_usage_ratio or 0.0) + pod.waiting * prompt / self.kv_tokens,
            )
            for pod in seen.ready_pods
            if pod.waiting is not None
        ]

    def step(self, engines: Sequence[Estimate]) -> int:
        """Return the count after one decision of the load loop."""
        count = len(engines)
        if self.target is not Target.SLA:
            return self._easy(engines)
        slow = all(each.queued + each.own > self.ttft_seconds for each in engines)
        choppy = all(each.itl > self.itl_seconds for each in engines)
        if slow or choppy:
            return count + 1
        if count > 1 and all(self._bears(each, count / (count - 1)) for each in engines):
            return count - 1
        return count

    def _easy(self, engines: Sequence[Estimate]) -> int:
        count = len(engines)
        high, low = _UTILIZATION[self.target]
        if any(each.utilization > high for each in engines):
            return count + 1
        quiet = all(each.utilization < low for each in engines)
        return count - 1 if count > 1 and quiet else count

    def _bears(self, engine: Estimate, more: float) -> bool:
        """Return whether the engine would still be well inside with ``more`` times the load."""
        room = (self.ttft_seconds - engine.own) * _SENSITIVITY
        return engine.queued * more <= room and engine.itl * more <= self.itl_seconds * _SENSITIVITY

    def _forecast(self, seen: Observation, state: Plan) -> Plan:
        if seen.at - state.forecast_at < _THROUGHPUT_LOOP:
            return state
        rates = (*state.rates, seen.router.requests_per_second or 0.0)[-_POINTS:]
        least = math.ceil(next_rate(rates) / self.requests_per_second)
        return replace(state, forecast_at=seen.at, rates=rates, least=least)


def next_rate(rates: Sequence[float]) -> float:
    """Return the next of ``rates`` by ARIMA(1, 1, 0), fitted by least squares; never negative.

    With fewer than three, the last one.
    """
    steps = [after - before for before, after in pairwise(rates)]
    squares = sum(step * step for step in steps[:-1])
    if squares == 0:
        return rates[-1]
    follow = _dot(pairwise(steps)) / squares
    return max(0.0, rates[-1] + follow * steps[-1])


def _dot(pairs: Iterable[tuple[float, float]]) -> float:
    return sum(before * after for before, after in pairs)


def _between_tokens(pod: PodFacts) -> float:
    """Return the mean time between tokens by Little's law; a batch that yields none is stuck."""
    if not pod.running or pod.generated_tokens_per_second is None:
        return 0.0
    rate = pod.generated_tokens_per_second
    return pod.running / rate if rate > 0 else math.inf
