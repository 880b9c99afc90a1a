"""A KEDA ScaledObject around one AverageValue trigger, as KEDA 2.19 and later run it.

KEDA is two things: an operator that polls, and switches between zero and one; and a metrics
server between the HPA and the trigger, which after enough failures answers with a count of its
own. Before 2.19 the operator set ``fallback.replicas`` at the first failed poll.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.controller.errors import AdapterError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import Behavior, ExternalMetric, HpaController, HpaSpec, ScaleTarget

POLLING_INTERVAL: Final = Seconds(30.0)
COOLDOWN: Final = Seconds(300.0)
"""KEDA's defaults."""


class FallbackBehavior(StrEnum):
    """Which count stands in for a trigger that fails."""

    STATIC = "static"
    CURRENT = "currentReplicas"
    CURRENT_IF_HIGHER = "currentReplicasIfHigher"
    CURRENT_IF_LOWER = "currentReplicasIfLower"


@dataclass(frozen=True, slots=True)
class Fallback:
    """``fallback:``."""

    failure_threshold: int
    """More failures in a row than this, and the count below is answered."""

    replicas: int
    behavior: FallbackBehavior = FallbackBehavior.STATIC

    def count(self, current: int) -> int:
        """Return the count to ask for while ``current`` are set."""
        match self.behavior:
            case FallbackBehavior.CURRENT:
                return current
            case FallbackBehavior.CURRENT_IF_HIGHER:
                return max(current, self.replicas)
            case FallbackBehavior.CURRENT_IF_LOWER:
                return min(current, self.replicas)
            case FallbackBehavior.STATIC:
                return self.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaSpec:
    """The part of a ScaledObject that decides the count."""

    min_replicas: int = 0
    max_replicas: int = 100
    target_milli: int = 1000
    behavior: Behavior | None = None
    """``advanced.horizontalPodAutoscalerConfig.behavior``."""

    fallback: Fallback | None = None
    polling_interval: Seconds = POLLING_INTERVAL
    cooldown: Seconds = COOLDOWN
    """Since the trigger was last active, before the last step to zero; no other step waits."""

    @property
    def hpa(self) -> HpaSpec:
        """Return the HPA that KEDA makes of it: never below one."""
        return HpaSpec(
            max(1, self.min_replicas), self.max_replicas, self.target_milli, self.behavior
        )


class Keda:
    """The operator, the metrics server and the HPA of one ScaledObject."""

    def __init__(
        self, spec: KedaSpec, *, metric: ExternalMetric, target: ScaleTarget, clock: Clock
    ) -> None:
        self._spec, self._metric, self._target, self._clock = spec, metric, target, clock
        self._failures = 0
        self._active_at: Timestamp | None = None
        self.hpa = HpaController(spec.hpa, metric=self, target=target, clock=clock)

    async def read(self) -> tuple[int, ...]:
        """Return the trigger's values in milli, or after too many failures the fallback's.

        Raises:
            AdapterError: the trigger failed, and there is no fallback or its time has not come.
        """
        try:
            values = await self._metric.read()
        except AdapterError:
            self._failures += 1
            fallback = self._spec.fallback
            if fallback is None or self._failures <= fallback.failure_threshold:
                raise
            count = fallback.count(self._target.scale.spec_replicas)
            return (count * self._spec.target_milli,)
        self._failures = 0
        return values

    async def poll(self) -> None:
        """Look whether the trigger is active, and step to or from zero; once per interval."""
        now, current = self._clock.now(), self._target.scale.spec_replicas
        try:
            active = any(value > 0 for value in await self.read())
        except AdapterError:
            return
        least = self._spec.min_replicas
        if active:
            self._active_at = now
        if active and current == 0:
            self._target.set_replicas(max(1, least))
        elif not active and current > 0 and least == 0:
            if self._active_at is None or now - self._active_at >= self._spec.cooldown:
                self._target.set_replicas(0)
        elif current < least:
            self._target.set_replicas(least)
