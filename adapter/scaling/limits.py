"""The bounds of the count: minimum, maximum, and the largest step up."""

import math
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, model_validator

from adapter.scaling.decision import Stage, Step
from adapter.scaling.section import ContradictionError, Section

MaxStep = (
    Annotated[int, Field(ge=1)]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}%$", title="a share like 100%")]
)


class Replicas(Section):
    """``replicas:``."""

    min: int = Field(ge=1, examples=[2])
    """The least ever published; at least 1, because a pool at zero has no signal to wake on."""

    max: int = Field(ge=1, examples=[8])
    """The most ever published."""

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.max < self.min:
            raise ContradictionError(
                f"max {self.max} is below min {self.min}: raise max or lower min", at="max"
            )
        return self


class ScaleUp(Section):
    """``scaleUp:``."""

    max_step: MaxStep | None = None
    """The largest step up at once: a number of replicas, or a share of the published count
    (``100%`` doubles). Default: no limit, because a replica ordered late arrives late."""


@dataclass(frozen=True, slots=True)
class Limited:
    """The count within the limits, and which of them settled it."""

    step: Step
    reason: str = ""
    """``TooFewReplicas``, ``TooManyReplicas`` (as the HPA says it), ``MaxStep``,
    ``CapacityShortage``; empty when the count was within all of them."""


def limit(
    replicas: Replicas, scale_up: ScaleUp, wanted: int, *, base: int, live: int, shortage: str
) -> Limited:
    """Return ``wanted`` within the largest step, what can be had, and the bounds.

    ``base`` is the count published so far, ``live`` the replicas that exist. A step is measured
    from what exists, so the next one waits for the last one's replicas rather than for a tick.
    """
    count, because, reason = wanted, f"within {replicas.min} to {replicas.max}", ""
    top = _top(scale_up, base=base, exists=min(base, live))
    if top is not None and count > top:
        count, reason = top, "MaxStep"
        because = f"one step of {scale_up.max_step} from {min(base, live)} replicas at a time"
    if shortage and count > base:
        count, because, reason = base, f"no more can be had: {shortage}", "CapacityShortage"
    if count < replicas.min:
        count, because, reason = replicas.min, f"min {replicas.min}", "TooFewReplicas"
    if count > replicas.max:
        count, because, reason = replicas.max, f"max {replicas.max}", "TooManyReplicas"
    return Limited(Step(Stage.LIMIT, wanted, count, because), reason)


def _top(scale_up: ScaleUp, *, base: int, exists: int) -> int | None:
    """Return the most that one step from ``exists`` reaches, or None without a limit."""
    step = scale_up.max_step
    if step is None:
        return None
    size = step if isinstance(step, int) else math.ceil(exists * int(step.rstrip("%")) / 100)
    return max(base, exists + max(1, size))
