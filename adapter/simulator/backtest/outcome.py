"""What came of a backtest: who was late when, what it cost, and what nobody could have beaten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision
from adapter.scaling.spec import Mode
from adapter.simulator.backtest.load import COUNTERFACTUAL, THINNED, Load
from adapter.simulator.bound import Bound
from adapter.simulator.presets import EnginePreset
from adapter.simulator.score import WINDOW, Objective, Score, Window

_HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be played."""

    policy: Policy
    load: Load
    engine: EnginePreset
    load_time: Seconds
    """Mean; drawn around it, with stragglers."""

    scale: float = 1.0
    warm_up: Seconds = Seconds(0.0)  # noqa: RUF009 - NewType is the identity
    """Played at the begin and neither judged nor paid for."""

    seed: int = 1

    @property
    def active(self) -> Policy:
        """Return the policy as if it were active: an advisory one would move nothing."""
        spec = self.policy.spec.model_copy(update={"mode": Mode.ACTIVE})
        return self.policy.model_copy(update={"spec": spec})

    @property
    def objective(self) -> Objective:
        """Return the policy's own promise of the first token, or the usual one without."""
        ttft = self.policy.spec.signals.ttft
        return Objective() if ttft is None else Objective(ttft=ttft.objective)

    @property
    def judged_from(self) -> Timestamp:
        """Return when judging and paying begin."""
        return Timestamp(self.load.begin + self.warm_up)

    @property
    def end(self) -> Timestamp:
        """Return when it is over."""
        return Timestamp(self.load.begin + self.load.length)


@dataclass(frozen=True, slots=True)
class Moment:
    """The fleet once a minute."""

    at: Timestamp
    demand: float | None
    """The largest demand of the latest decision, in replicas; None: nobody could tell."""

    desired: int
    """What the decision wants."""

    serving: int
    loading: int
    in_flight: float
    """Requests at the engines and in front of them."""

    paid_hours: float
    """Replica-hours since judging began."""


@dataclass(frozen=True)
class Backtest:
    """One policy on one load."""

    plan: Plan
    mode: str
    """``requests`` or ``fluid``."""

    score: Score
    moments: tuple[Moment, ...]
    """Since judging began."""

    asked: tuple[tuple[Timestamp, int], ...]
    """Each count that was asked for, and when; the first one is that of the begin."""

    bound: Bound | None
    """None: even the largest fleet that was tried serves too little."""

    slot: Seconds
    """Of the bound's plan."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what must be said wherever these numbers are."""
        plan = self.plan
        notes = [COUNTERFACTUAL, *plan.load.remarks]
        if plan.scale < 1:
            notes.append(THINNED)
        if plan.policy.spec.mode is not Mode.ACTIVE:
            notes.append(f"The policy's mode is {plan.policy.spec.mode}: played as if active.")
        if plan.load.gaps:
            hours = sum(end - begin for begin, end in plan.load.gaps) / _HOUR
            count = len(plan.load.gaps)
            holes = "a gap" if count == 1 else f"{count} gaps"
            notes.append(
                f"{holes[0].upper()}{holes[1:]} in the history, {hours:.1f} h in all: "
                f"the load there is made up between its neighbours."
            )
        return (*notes, *_MODE_NOTES[self.mode])

    @property
    def bound_hours(self) -> float | None:
        """Return the replica-hours that nobody within the objective pays less than."""
        return None if self.bound is None else self.bound.paid / _HOUR

    @property
    def ratio(self) -> float | None:
        """Return how many times the bound was paid; None without a bound, or of nothing."""
        hours = self.bound_hours
        return self.score.paid_hours / hours if hours else None

    @cached_property
    def changes(self) -> tuple[int, ...]:
        """Return by how much the count was changed each time while judged."""
        begin = self.plan.judged_from
        return tuple(
            after - before for (_, before), (at, after) in pairwise(self.asked) if at >= begin
        )

    @property
    def flips(self) -> int:
        """Return how often the count turned round: up after down, or down after up."""
        return sum((one > 0) is not (two > 0) for one, two in pairwise(self.changes))

    @property
    def most(self) -> int:
        """Return the most replicas that were asked for while judged."""
        begin = self.plan.judged_from
        before = [count for at, count in self.asked if at <= begin][-1:]
        return max((*before, *(count for at, count in self.asked if at > begin)))

    @property
    def at_most(self) -> float:
        """Return the share of the time in which as many were wanted as the policy allows, 0..1."""
        limit = self.plan.policy.spec.replicas.max
        return sum(m.desired >= limit for m in self.moments) / max(1, len(self.moments))

    @property
    def stretches(self) -> "tuple[Stretch, ...]":
        """Return the moments by ten minutes; what stands at an end belongs to what came before."""
        groups: dict[int, list[Moment]] = {}
        begin = self.plan.judged_from
        for moment in self.moments:
            number = max(0, math.ceil((moment.at - begin) / WINDOW) - 1)
            groups.setdefault(number, []).append(moment)
        windows = {window.begin: window for window in self.score.windows}
        found: list[Stretch] = []
        paid = 0.0
        for number, group in groups.items():
            at = Timestamp(begin + number * WINDOW)
            found.append(self._stretch(at, group, windows.get(at), paid))
            paid = group[-1].paid_hours
        return tuple(found)

    def _stretch(
        self, at: Timestamp, group: Sequence[Moment], window: Window | None, paid: float
    ) -> "Stretch":
        demands = [moment.demand for moment in group if moment.demand is not None]
        end = at + WINDOW
        return Stretch(
            begin=at,
            desired=max(moment.desired for moment in group),
            serving=min(moment.serving for moment in group),
            loading=max(moment.loading for moment in group),
            demand=max(demands, default=None),
            in_flight=max(moment.in_flight for moment in group),
            planned=self._planned(at),
            requests=0 if window is None else window.requests,
            missed=0 if window is None else window.requests - window.in_time,
            paid_hours=group[-1].paid_hours - paid,
            gap=any(start < end and over > at for start, over in self.plan.load.gaps),
        )

    def _planned(self, at: Timestamp) -> int | None:
        """Return the most replicas within ten minutes of the plan behind the bound."""
        if self.bound is None:
            return None
        after = at - self.plan.judged_from
        first, last = (int(moment // self.slot) for moment in (after, after + WINDOW))
        return max(self.bound.plan[first : max(last, first + 1)], default=None)

    @property
    def hours(self) -> "tuple[Hour, ...]":
        """Return what came of the requests of each hour, whole ones of the clock."""
        found: dict[int, list[int]] = {}
        for window in self.score.windows:
            hour = found.setdefault(int(window.begin // _HOUR), [0, 0])
            hour[0] += window.requests
            hour[1] += window.requests - window.in_time
        return tuple(Hour(Timestamp(number * _HOUR), *found[number]) for number in sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Ten minutes: counts are the most, but the fewest that served."""

    begin: Timestamp
    desired: int
    serving: int
    loading: int
    demand: float | None
    in_flight: float
    planned: int | None
    """Of the plan behind the bound, which knew the load; None without a bound."""

    requests: int
    missed: int
    paid_hours: float
    gap: bool
    """The load was made up in a part of it."""


@dataclass(frozen=True, slots=True)
class Hour:
    """The requests that arrived in an hour of the clock."""

    begin: Timestamp
    requests: int
    missed: int


_MODE_NOTES: Final[dict[str, tuple[str, ...]]] = {
    "requests": (),
    "fluid": (
        "Fluid: requests are not played one by one; queues and first tokens are approximated, "
        "and a decision is made once a minute.",
    ),
}


def demand_of(decision: Decision) -> float | None:
    """Return the largest demand in replicas, or None where no signal tells one."""
    known = [demand.replicas for demand in decision.demands if demand.replicas is not None]
    return max(known, default=None)


def since(moments: Sequence[Moment], begin: Timestamp) -> tuple[Moment, ...]:
    """Return the moments from ``begin`` on."""
    return tuple(moment for moment in moments if moment.at >= begin)
