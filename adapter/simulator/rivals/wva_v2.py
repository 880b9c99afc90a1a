"""llm-d's Workload-Variant-Autoscaler, second analyser: tokens in the KV cache as capacity.

Source: peers.md sections 1.2 and 5.4. Defects: the cache is a stock and work is a rate, so a pool
bound by prefill looks empty and is drained to its floor in one step while requests queue; pending
replicas count as supply without an age limit, so one stuck order is the last one.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import Behavior
from adapter.simulator.rivals.observation import Observation, PodFacts
from adapter.simulator.rivals.port import Calibration, ExternalMetric, Published, Wish
from adapter.simulator.rivals.wva_v1 import WVA_BEHAVIOR

_LOOP: Final = Seconds(30.0)
_BUCKETS: Final = (100.0, 500.0)
"""Mean output tokens that part short, medium and long work: each has its remembered capacity."""

_REMEMBERED: Final = 10


@dataclass(frozen=True, slots=True)
class V2Memory:
    """What it published last, and the capacities seen while queueing, by output bucket."""

    desired: int
    seen_full: Mapping[int, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WvaV2:
    """As many replicas at once as the demand in tokens asks for."""

    kv_tokens: int
    """That one replica's cache holds."""

    batched_tokens: int | None = None
    """``--max-num-batched-tokens``; None: no estimate before the first queue."""

    sequences: int = 1024
    """``--max-num-seqs``."""

    up_utilization: float = 0.85
    down_utilization: float = 0.70
    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    name: str = "wva-v2"
    interval: Seconds = _LOOP
    behavior: Behavior = WVA_BEHAVIOR

    @classmethod
    def of(cls, calibration: Calibration) -> "WvaV2":
        """Return the rule set up for an engine."""
        return cls(
            kv_tokens=calibration.kv_tokens,
            batched_tokens=calibration.batched_tokens,
            sequences=calibration.sequences,
        )

    def begin(self, seen: Observation) -> V2Memory:
        """Return that it wants what is there, and has seen no queue."""
        return V2Memory(seen.spec_replicas)

    def decide(self, seen: Observation, state: V2Memory) -> tuple[Wish, V2Memory]:
        """Return the count for the pods that answer; the missing half of a pod is 0.

        Without any, the previous count stays published.
        """
        pods = [pod for pod in seen.pods if _answers(pod)]
        if pods:
            full = self._learned(seen, pods, state.seen_full)
            state = V2Memory(self._target(seen, pods, full), full)
        return Published((ExternalMetric(float(state.desired), 1.0),)), state

    def _target(
        self, seen: Observation, pods: Sequence[PodFacts], full: Mapping[int, tuple[float, ...]]
    ) -> int:
        capacity = self._capacity(seen, pods, full)
        demand = self._demand(seen, pods)
        current = seen.spec_replicas
        ready = max(0, current - seen.pending_replicas)
        required = demand / self.up_utilization - current * capacity
        spare = ready * capacity - demand / self.down_utilization
        if capacity <= 0:
            return current
        if required > 0:
            return current + math.ceil(required / capacity)
        return current - min(max(0, math.floor(spare / capacity)), max(0, current - 1))

    def _demand(self, seen: Observation, pods: Sequence[PodFacts]) -> float:
        """Return tokens: in the caches, in the engines' queues, and in the scheduler's."""
        prompt = float(int(seen.router.prompt_tokens_mean or 0.0))
        held = sum(self._in_use(pod) + (pod.waiting or 0.0) * prompt for pod in pods)
        computed = prompt * (1.0 - seen.router.cached_share)
        outputs = seen.router.output_tokens_mean or 0.0
        return held + (seen.router.queued_requests or 0.0) * (computed + outputs)

    def _capacity(
        self, seen: Observation, pods: Sequence[PodFacts], full: Mapping[int, tuple[float, ...]]
    ) -> float:
        """Return the median over the pods; a queueing one is full with what it holds."""
        by_memory = float(int(self.kv_threshold * self.kv_tokens))
        remembered = full.get(_bucket(seen))
        expected = fmean(remembered) if remembered else self._by_arguments(seen)
        limits = [self._in_use(pod) if self._queues(pod) else expected for pod in pods]
        return float(int(median(min(by_memory, limit) for limit in limits)))

    def _by_arguments(self, seen: Observation) -> float:
        """Return what the engine's flags suggest; infinite where they suggest nothing."""
        prompt, output = seen.router.prompt_tokens_mean, seen.router.output_tokens_mean
        if self.batched_tokens is None or not prompt or not output:
            return math.inf
        batch = min(self.batched_tokens * output / (prompt + output), self.sequences)
        return batch * (prompt + output / 2)

    def _learned(
        self, seen: Observation, pods: Sequence[PodFacts], full: Mapping[int, tuple[float, ...]]
    ) -> dict[int, tuple[float, ...]]:
        bucket = _bucket(seen)
        held = [self._in_use(pod) for pod in pods if self._queues(pod)]
        known = (*full.get(bucket, ()), *held)[-_REMEMBERED:]
        return {**full, bucket: known}

    def _queues(self, pod: PodFacts) -> bool:
        return (pod.waiting or 0.0) >= self.queue_threshold and self._in_use(pod) > 0

    def _in_use(self, pod: PodFacts) -> float:
        return (pod.kv_usage_ratio or 0.0) * self.kv_tokens


def _answers(pod: PodFacts) -> bool:
    return pod.kv_usage_ratio is not None or pod.waiting is not None


def _bucket(seen: Observation) -> int:
    output = seen.router.output_tokens_mean or 0.0
    return sum(output >= limit for limit in _BUCKETS)
