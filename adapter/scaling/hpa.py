"""What a HorizontalPodAutoscaler makes of a published number: its external-metric arithmetic.

After Kubernetes 1.36 (pkg/controller/podautoscaler), in float64 of integer milli, because that is
where 22/20 is inside a tolerance of 0.1 and 10/11 is not. Bounds, stabilization windows and
policies come afterwards and are not part of it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

DEFAULT_TOLERANCE: Final = 0.1
"""kube-controller-manager's ``--horizontal-pod-autoscaler-tolerance``."""

MILLI: Final = 1000

_MAX_INT64: Final = 2**63 - 1
_MAX_INT32: Final = 2**31 - 1


def average_value(
    values_milli: Sequence[int],
    target_milli: int,
    status_replicas: int,
    *,
    up: float = DEFAULT_TOLERANCE,
    down: float = DEFAULT_TOLERANCE,
) -> int:
    """Return the replicas that an HPA wants for a target of type AverageValue.

    ``values_milli`` are all items of the answer, which the HPA adds up; ``status_replicas`` is
    ``scale.status.replicas``, surge pods included. Inside the tolerance that is also the answer.
    """
    usage = _added_up(values_milli)
    ratio = _quotient(float(usage), float(target_milli) * float(status_replicas))
    if _within(ratio, up=up, down=down):
        return status_replicas
    return min(_MAX_INT32, math.ceil(float(usage) / float(target_milli)))


def value(
    values_milli: Sequence[int],
    target_milli: int,
    spec_replicas: int,
    *,
    ready: int,
    up: float = DEFAULT_TOLERANCE,
    down: float = DEFAULT_TOLERANCE,
) -> int:
    """Return the replicas that an HPA wants for a target of type Value.

    The ratio multiplies the ``ready`` pods: a desired count served under such a target runs away,
    6 wanted with 2 ready come out as 12. Kept for ``doctor`` and the linter to show it.
    """
    ratio = float(sum(values_milli)) / float(target_milli)
    if spec_replicas == 0:
        return math.ceil(ratio)
    if _within(ratio, up=up, down=down):
        return spec_replicas
    return min(_MAX_INT32, math.ceil(ratio * float(ready)))


def follows(
    published: int,
    *,
    current: int,
    up: float = DEFAULT_TOLERANCE,
    down: float = DEFAULT_TOLERANCE,
) -> int:
    """Return where an HPA with AverageValue "1" goes from ``current`` when we say ``published``."""
    return average_value([published * MILLI], MILLI, current, up=up, down=down)


def reachable(
    count: int,
    *,
    current: int,
    up: float = DEFAULT_TOLERANCE,
    down: float = DEFAULT_TOLERANCE,
) -> bool:
    """Return whether any milli number takes an HPA with AverageValue "1" to ``count`` in one step.

    Beside ``count`` itself half a replica less is tried, and the least that rounds up to it: on
    the way down they leave the tolerance sooner.
    """
    whole = count * MILLI
    candidates = (whole, whole - MILLI // 2, whole - MILLI + 1)
    return any(
        average_value([milli], MILLI, current, up=up, down=down) == count
        for milli in candidates
        if milli >= 0
    )


@dataclass(frozen=True, slots=True)
class DeadZone:
    """The steps that an HPA with AverageValue "1" ignores at one count."""

    current: int
    step_up: int
    """The smallest step up that it follows when the count itself is published."""

    step_down: int
    """The smallest step down, likewise; more than ``current`` when there is none above zero."""

    def ignores(self, published: int) -> str:
        """Return why ``published`` changes nothing, in one clause; empty when it is followed."""
        step = published - self.current
        if step == 0 or step >= self.step_up or -step >= self.step_down:
            return ""
        smallest = f"+{self.step_up}" if step > 0 else f"-{self.step_down}"
        return (
            f"{self.current}→{published} is inside the HPA's tolerance; smallest effective step "
            f"{smallest}: set behavior.scaleUp.tolerance and scaleDown.tolerance to 0"
        )


def dead_zone(
    current: int, *, up: float = DEFAULT_TOLERANCE, down: float = DEFAULT_TOLERANCE
) -> DeadZone:
    """Return which steps from ``current`` replicas, at least 1, are ignored."""
    above = current + 1
    while follows(above, current=current, up=up, down=down) != above:
        above += 1
    below = current - 1
    while below > 0 and follows(below, current=current, up=up, down=down) != below:
        below -= 1
    step_down = current - below if below > 0 else current + 1
    return DeadZone(current, above - current, step_down)


def _added_up(values_milli: Sequence[int]) -> int:
    """Return the sum; a sum that is negative on the way is taken for an overflow, as the HPA does.

    So one negative item asks for the maximum: nothing below zero may ever be served.
    """
    total = 0
    for milli in values_milli:
        total += milli
        if total < 0:
            return _MAX_INT64
    return total


def _quotient(usage: float, capacity: float) -> float:
    """Divide as Go does: by zero it is NaN or infinite."""
    if capacity == 0:
        return math.nan if usage == 0 else math.inf
    return usage / capacity


def _within(ratio: float, *, up: float, down: float) -> bool:
    return 1.0 - down <= ratio <= 1.0 + up
