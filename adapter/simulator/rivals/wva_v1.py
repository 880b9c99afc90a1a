"""llm-d's Workload-Variant-Autoscaler, first analyser: spare capacity of what is not saturated.

Source: peers.md sections 1.2 and 5.3. Defects: saturated pods are left out of the average, so two
idle ones among ten justify a scale-down; one pod without metrics, or a desired count that the HPA
will not reach, holds everything for ever; one replica per step and load time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import Behavior, RatePolicy, Rules, Unit
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import ExternalMetric, Published, Wish

_LOOP: Final = Seconds(30.0)
_PEAK_WINDOW: Final = Seconds(60.0)
_FREE: Final = (RatePolicy(Unit.PERCENT, 100), RatePolicy(Unit.PODS, 4))
WVA_BEHAVIOR: Final = Behavior(
    up=Rules(Seconds(0.0), _FREE, tolerance=0.0),
    down=Rules(Seconds(240.0), (RatePolicy(Unit.PERCENT, 100),), tolerance=0.0),
)
"""Stabilization 240 s as in its samples; tolerance 0, as the default one deadlocks it at ten."""


class Load(NamedTuple):
    """One pod's KV-cache usage ratio and waiting requests."""

    kv: float
    queue: float


class Sample(NamedTuple):
    """What one pod said at one moment."""

    at: Timestamp
    pod: str
    load: Load


@dataclass(frozen=True, slots=True)
class V1Memory:
    """What it wanted last, and the last minute's samples."""

    desired: int = 0
    """0 before the first decision."""

    samples: tuple[Sample, ...] = ()


@dataclass(frozen=True, slots=True)
class WvaV1:
    """Up or down by one on spare KV cache and spare queue."""

    kv_threshold: float = 0.80
    queue_threshold: float = 5.0
    kv_spare: float = 0.10
    queue_spare: float = 3.0
    name: str = "wva-v1"
    interval: Seconds = _LOOP
    behavior: Behavior = WVA_BEHAVIOR

    def begin(self, seen: Observation) -> V1Memory:
        """Return no decision yet."""
        del seen
        return V1Memory()

    def decide(self, seen: Observation, state: V1Memory) -> tuple[Wish, V1Memory]:
        """Return the target for the worst of the last minute; a missing half of a pod is 0.

        Without any pod's metrics the previous target stays published.
        """
        state = replace(state, samples=_recent(seen, state.samples))
        peaks = _peaks(seen, state.samples)
        desired = state.desired or seen.spec_replicas
        if peaks:
            desired = self.target(
                peaks,
                current=seen.spec_replicas,
                desired=state.desired,
                pending=seen.pending_replicas,
            )
        return Published((ExternalMetric(float(desired), 1.0),)), replace(state, desired=desired)

    def target(self, pods: Sequence[Load], *, current: int, desired: int, pending: int) -> int:
        """Return the count that ``pods`` ask for; ``desired`` is the previous one, 0 of none."""
        count = len(pods)
        in_transition = desired not in {0, current}
        if in_transition or count != current:
            return desired if in_transition else current
        fine = [pod for pod in pods if self._fine(pod)]
        left = len(fine)
        kv = sum(self.kv_threshold - pod.kv for pod in fine) / max(1, left)
        queue = sum(self.queue_threshold - pod.queue for pod in fine) / max(1, left)
        if not self._spare(kv, queue):
            return count if pending > 0 else count + 1
        share = left / (left - 1) if left > 1 else 0.0
        kv_after = self.kv_threshold - (self.kv_threshold - kv) * share
        queue_after = self.queue_threshold - (self.queue_threshold - queue) * share
        return count - 1 if left > 1 and self._spare(kv_after, queue_after) else count

    def _fine(self, pod: Load) -> bool:
        return pod.kv < self.kv_threshold and pod.queue < self.queue_threshold

    def _spare(self, kv: float, queue: float) -> bool:
        return kv >= self.kv_spare and queue >= self.queue_spare


def _recent(seen: Observation, samples: tuple[Sample, ...]) -> tuple[Sample, ...]:
    kept = tuple(one for one in samples if one.at > seen.at - _PEAK_WINDOW)
    said = tuple(
        Sample(seen.at, pod.name, Load(pod.kv_usage_ratio or 0.0, pod.waiting or 0.0))
        for pod in seen.pods
        if pod.kv_usage_ratio is not None or pod.waiting is not None
    )
    return kept + said


def _peaks(seen: Observation, samples: tuple[Sample, ...]) -> list[Load]:
    """Return each living pod's highest values; it counts as long as it spoke within the window."""
    alive = {pod.name for pod in seen.pods}
    peaks: dict[str, Load] = {}
    for _, pod, load in samples:
        if pod in alive:
            before = peaks.get(pod, load)
            peaks[pod] = Load(max(before.kv, load.kv), max(before.queue, load.queue))
    return list(peaks.values())
