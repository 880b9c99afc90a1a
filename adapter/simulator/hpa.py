"""The Horizontal Pod Autoscaler around one external metric, as kube-controller-manager runs it.

The arithmetic of a sync is ``scaling.hpa``'s; this is what surrounds it: bounds, stabilization
windows, rate policies, and that an error leaves the scale target alone. As of Kubernetes 1.36;
the order of the steps and the strictness of each comparison are the real controller's.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal, Protocol

from adapter.controller.errors import AdapterError
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.hpa import average_value

SYNC_PERIOD: Final = Seconds(15.0)
"""``--horizontal-pod-autoscaler-sync-period``'s default."""

DOWNSCALE_WINDOW: Final = Seconds(300.0)
"""``--horizontal-pod-autoscaler-downscale-stabilization``'s default."""

_MEMORY: Final = Seconds(3600.0)
"""The API's upper limit of a stabilization window; a rate policy's period ends at half of it."""


class Unit(StrEnum):
    """What the value of a rate policy counts: its ``type``."""

    PODS = "Pods"
    PERCENT = "Percent"


class Select(StrEnum):
    """``selectPolicy``: which of several rate policies holds."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"
    """No change in this direction."""


@dataclass(frozen=True, slots=True)
class RatePolicy:
    """At most ``value`` pods, or percent of the count at the period's begin, per period."""

    unit: Unit
    value: int
    period: Seconds = SYNC_PERIOD


@dataclass(frozen=True, slots=True)
class Rules:
    """``behavior.scaleUp`` or ``behavior.scaleDown``."""

    window: Seconds
    policies: tuple[RatePolicy, ...]
    select: Select = Select.MAX
    tolerance: float = 0.1
    """A ratio; a metric that counts replicas needs 0."""


DEFAULT_UP: Final = Rules(Seconds(0), (RatePolicy(Unit.PERCENT, 100), RatePolicy(Unit.PODS, 4)))
DEFAULT_DOWN: Final = Rules(DOWNSCALE_WINDOW, (RatePolicy(Unit.PERCENT, 100),))


@dataclass(frozen=True, slots=True)
class Behavior:
    """``behavior``; a half that the manifest leaves out gets these defaults."""

    up: Rules = DEFAULT_UP
    down: Rules = DEFAULT_DOWN


@dataclass(frozen=True, slots=True)
class HpaSpec:
    """The part of the manifest that the controller computes with."""

    min_replicas: int
    max_replicas: int
    target_milli: int = 1000
    """``averageValue``; "1" for a metric that counts replicas."""

    behavior: Behavior | None = None
    """None: the older rules, at most double (or 4) per sync, and the downscale window."""


@dataclass(frozen=True, slots=True)
class Scale:
    """``/scale`` of the scale target."""

    spec_replicas: int
    status_replicas: int
    """What is there, surge pods of a rollout included: the arithmetic starts from this one."""


@dataclass(frozen=True, slots=True)
class Log:
    """Moments with a number each: recommendations, or changes of the count."""

    entries: tuple[tuple[Timestamp, int], ...] = ()

    def after(self, moment: float) -> tuple[int, ...]:
        """Return the numbers of what is younger than ``moment``; one as old does not count."""
        return tuple(number for at, number in self.entries if at > moment)

    def since(self, moment: float) -> tuple[int, ...]:
        """Return the numbers of what is as young as ``moment`` or younger."""
        return tuple(number for at, number in self.entries if at >= moment)

    def plus(self, at: Timestamp, number: int) -> "Log":
        """Return the log with one more entry, without those that no rule can ask for."""
        kept = tuple(entry for entry in self.entries if entry[0] >= at - _MEMORY)
        return Log((*kept, (at, number)))


@dataclass(frozen=True, slots=True)
class HpaState:
    """What the controller remembers between syncs, and loses when it restarts."""

    wanted: Log = Log()
    """What the metric asked for, before windows and limits."""

    changes: Log = Log()
    """By how much the count was changed; above 0 is up."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One sync's outcome."""

    replicas: int
    """What the scale target is set to; the present count means that it is left alone."""

    because: str
    """The reason in the HPA's conditions, with the message where there is one."""

    wanted: int | None = None
    """What the metric asks for, before windows and limits; None when it was not used."""


class ExternalMetric(Protocol):
    """How the controller reads the metric: in a cluster, through the aggregator."""

    async def read(self) -> tuple[int, ...]:
        """Return every item's value in milli.

        Raises:
            AdapterError: there is no value; the text says why.
        """
        ...


class ScaleTarget(Protocol):
    """What is scaled."""

    @property
    def scale(self) -> Scale:
        """Return what it is set to, and what is there."""
        ...

    def set_replicas(self, count: int) -> None:
        """Ask for ``count`` replicas."""
        ...


class HpaController:
    """Syncs one HPA every 15 s."""

    def __init__(
        self, spec: HpaSpec, *, metric: ExternalMetric, target: ScaleTarget, clock: Clock
    ) -> None:
        self._spec = spec
        self._metric = metric
        self._target = target
        self._clock = clock
        self._state = HpaState()
        self.verdict: Verdict | None = None
        """The latest sync's outcome; None before the first."""

    async def run(self) -> None:
        """Sync until cancelled, on a fixed grid: a slow answer does not shift the next sync."""
        moment = self._clock.now()
        while True:
            await self.sync()
            moment = Timestamp(moment + SYNC_PERIOD)
            await self._clock.sleep_until(moment)

    async def sync(self) -> None:
        """Read the metric once, and set the scale target if that makes another count of it."""
        values: tuple[int, ...] | str
        try:
            values = await self._metric.read()
        except AdapterError as error:
            values = str(error)
        scale = self._target.scale
        self.verdict, self._state = reconcile(
            self._spec, scale, values=values, at=self._clock.now(), state=self._state
        )
        if self.verdict.replicas != scale.spec_replicas:
            self._target.set_replicas(self.verdict.replicas)


def reconcile(
    spec: HpaSpec,
    scale: Scale,
    *,
    values: tuple[int, ...] | str,
    at: Timestamp,
    state: HpaState,
) -> tuple[Verdict, HpaState]:
    """Return what one sync makes of the metric's items in milli, or of an error's text."""
    current = scale.spec_replicas
    if not state.wanted.entries:
        state = replace(state, wanted=Log(((at, current),)))
    verdict = _out_of_bounds(spec, current) or _judge(spec, scale, values, at=at, state=state)
    if verdict.wanted is not None:
        state = replace(state, wanted=state.wanted.plus(at, verdict.wanted))
    if verdict.replicas != current:
        state = replace(state, changes=state.changes.plus(at, verdict.replicas - current))
    return verdict, state


def _out_of_bounds(spec: HpaSpec, current: int) -> Verdict | None:
    """Return the verdict that asks no metric; None within the bounds."""
    if current == 0 and spec.min_replicas > 0:
        return Verdict(0, "ScalingDisabled: the scale target is at zero")
    if current > spec.max_replicas:
        return Verdict(spec.max_replicas, "TooManyReplicas")
    if current < spec.min_replicas:
        return Verdict(spec.min_replicas, "TooFewReplicas")
    return None


def _judge(
    spec: HpaSpec, scale: Scale, values: tuple[int, ...] | str, *, at: Timestamp, state: HpaState
) -> Verdict:
    current = scale.spec_replicas
    if isinstance(values, str):
        return Verdict(current, f"FailedGetExternalMetric: {values}")
    if not values:
        return Verdict(current, "FailedGetExternalMetric: no metrics returned")
    rules = spec.behavior or Behavior()
    wanted = average_value(
        values,
        spec.target_milli,
        scale.status_replicas,
        up=rules.up.tolerance,
        down=rules.down.tolerance,
    )
    if spec.behavior is None:
        steady = max(wanted, *state.wanted.since(at - DOWNSCALE_WINDOW))
        least, most = spec.min_replicas, max(2 * current, 4)
    else:
        steady = _stabilized(rules, current, wanted, at=at, past=state.wanted)
        least = _farthest(rules.down, current, sign=-1, at=at, changes=state.changes)
        most = _farthest(rules.up, current, sign=1, at=at, changes=state.changes)
    least, most = max(least, spec.min_replicas), min(most, spec.max_replicas)
    replicas = max(least, min(most, steady))
    return Verdict(replicas, _reason(spec, wanted, steady=steady, replicas=replicas), wanted)


def _stabilized(rules: Behavior, current: int, wanted: int, *, at: Timestamp, past: Log) -> int:
    """Return the count nearest to the present one that both windows allow."""
    lowest = min((wanted, *past.after(at - rules.up.window)))
    highest = max((wanted, *past.after(at - rules.down.window)))
    return min(max(current, lowest), highest)


def _farthest(
    rules: Rules, current: int, *, sign: Literal[1, -1], at: Timestamp, changes: Log
) -> int:
    """Return how far the rate policies let the count go now, up (+1) or down (-1)."""
    if rules.select is Select.DISABLED:
        return current
    ends = []
    for policy in rules.policies:
        begin = current - sum(changes.after(at - policy.period))
        if policy.unit is Unit.PODS:
            ends.append(begin + sign * policy.value)
        else:
            end = begin * (1 + sign * policy.value / 100)
            ends.append(math.ceil(end) if sign > 0 else int(end))
    upper = (sign > 0) is (rules.select is Select.MAX)
    end = max(ends) if upper else min(ends)
    return max(current, end) if sign > 0 else min(current, end)


def _reason(spec: HpaSpec, wanted: int, *, steady: int, replicas: int) -> str:
    """Return which rule settled the count: the last one that changed it."""
    if replicas < steady:
        return "TooManyReplicas" if replicas == spec.max_replicas else "ScaleUpLimit"
    if replicas > steady:
        return "TooFewReplicas" if replicas == spec.min_replicas else "ScaleDownLimit"
    if steady == wanted:
        return "DesiredWithinRange"
    return "ScaleDownStabilized" if steady > wanted else "ScaleUpStabilized"
