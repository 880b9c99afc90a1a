"""What was decided, and every step on the way to it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.demand import Demand


class Stage(StrEnum):
    """The stages of a decision, in the order in which they run."""

    COMBINE = "combine"
    """Many demands become one recommendation: the largest, rounded up once."""

    STANDBY = "standby"
    """Spare serving replicas on top."""

    REPLACE = "replace"
    """Replicas that hold a place and do no work are asked for once more."""

    GAPS = "gaps"
    """Missing data: hold, loudly."""

    STABILIZE = "stabilize"
    """Down slowly: the largest recommendation of the scale-down delay, and what else holds."""

    LIMIT = "limit"
    """Step limit, shortage, minimum, maximum."""

    PUBLISH = "publish"
    """Advisory mode publishes what is; active mode publishes what is wanted."""


_BOUNDS: Final = frozenset({Stage.LIMIT, Stage.PUBLISH})
"""Stages that bend a number without knowing why it was wanted."""


@dataclass(frozen=True, slots=True)
class Step:
    """One stage, whether it changed the number or not."""

    stage: Stage
    before: int
    after: int
    because: str


class HoldReason(StrEnum):
    """Why a lower (or higher) count is not followed yet."""

    METRICS_GAP = "MetricsGap"
    AFTER_GAP = "RecoveringFromGap"
    SCALE_DOWN_DELAY = "ScaleDownDelay"
    ROLLOUT = "RolloutInProgress"
    LOADING_UNSERVED = "LoadingForUnservedDemand"
    NOT_IDLE = "NoIdleReplica"
    CAPACITY_SHORTAGE = "CapacityShortage"
    NO_MEMORY = "StartedWithoutMemory"


@dataclass(frozen=True, slots=True)
class Hold:
    """One thing that keeps the count where it is; every hold has a reason and an end."""

    reason: HoldReason
    until: Timestamp | None
    """When it ends by itself; None when it ends with the condition that ``because`` names."""

    because: str


class ConditionType(StrEnum):
    """The conditions of ``ScalingPolicy.status``."""

    READY = "Ready"
    METRICS_AVAILABLE = "MetricsAvailable"
    SIGNAL_SERVED = "SignalServed"
    SCALING_LIMITED = "ScalingLimited"
    CAPACITY_SHORTAGE = "CapacityShortage"
    ROLLOUT_IN_PROGRESS = "RolloutInProgress"
    REPLICAS_STALLED = "ReplicasStalled"
    QUEUE_SKEW = "QueueSkew"


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition, as ``kubectl describe`` shows it."""

    type: ConditionType
    status: bool
    reason: str
    """CamelCase, stable."""

    message: str


@dataclass(frozen=True, slots=True)
class Census:
    """How many replicas are in which phase, as the decision judged them."""

    serving: int = 0
    loading: int = 0
    """Pending, loading and warming together: coming supply."""

    overdue: int = 0
    """The part of ``loading`` that takes longer than expected; no longer counted on."""

    stalled: int = 0
    """Stalled and isolated."""

    draining: int = 0
    silent: int = 0
    """Serving replicas without a usable reading."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The replica count to publish at ``at``, with its whole story."""

    at: Timestamp
    desired: int
    """What is wanted within the limits."""

    published: int
    """What the HPA and KEDA are told; differs from ``desired`` in advisory mode."""

    refusal: str | None
    """Set: there is no count worth serving; the wire answers an error with this text, never 0."""

    valid_until: Timestamp
    """After this moment the decision is stale and must be refused as well."""

    demands: tuple[Demand, ...]
    steps: tuple[Step, ...]
    holds: tuple[Hold, ...]
    conditions: tuple[Condition, ...]
    census: Census
    standby: int
    """The part of ``desired`` above present demand."""

    lead_time: Seconds
    """The load time used: measured, or the policy's default."""

    data_at: Timestamp | None = None
    """When the data was last good enough to decide on; ``at`` unless held. None: never."""

    @property
    def held(self) -> bool:
        """Return whether missing data keeps the count; loud, never an ordinary number."""
        return any(
            hold.reason in {HoldReason.METRICS_GAP, HoldReason.AFTER_GAP} for hold in self.holds
        )

    @property
    def because(self) -> str:
        """Return the clause of what settled the number: the last step that changed it.

        Where none did, that of the first hold, or of the first step. A limit is told with the
        demand that it limited.
        """
        return _because(self.steps, self.holds)


def _because(steps: Sequence[Step], holds: Sequence[Hold]) -> str:
    changed = [place for place, step in enumerate(steps) if step.before != step.after]
    if not changed:
        unchanged = [*(hold.because for hold in holds), *(step.because for step in steps)]
        return unchanged[0] if unchanged else ""
    last = steps[changed[-1]]
    if last.stage in _BOUNDS:
        return f"{last.because}, {last.before} wanted: {_because(steps[: changed[-1]], holds)}"
    return last.because
