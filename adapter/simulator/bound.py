"""What nobody can beat: the fewest replica-seconds that serve a known load in time.

Two answers that agree where both apply: a closed form when nothing may be missed, and a dynamic
programme over the replica count with a price on missed work. A plan that is optimal at any price
gives a lower bound at every budget (weak duality), so the search below may stop anywhere.
Assumed in favour of every policy, so that the bound holds for all of them: the load is known, the
router is perfect, releases are free and nothing has to drain. Source: evaluation section 4.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from operator import add, sub
from typing import Final

from adapter.fleet.units import Seconds

_ROUNDS: Final = 60
"""Of the search for the best price; it ends by itself after about six."""

_CLOSE: Final = 1e-6
"""Relative gain below which another round of the search tells nothing."""


class UnservableError(ValueError):
    """Even the largest fleet misses more work than the budget allows; the text has the figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A load, and a fleet that may serve it."""

    work: tuple[float, ...]
    """Work arriving in each slot, in units per second: requests, tokens, or whatever counts."""

    capacity: tuple[float, ...]
    """``capacity[n]`` is the most that n replicas do, in units per second, under any policy: the
    saturated throughput. From 0 for none, never falling; its last index is the largest fleet."""

    slot: Seconds
    load_time: Seconds
    """Paid before a replica serves. Of random load times take the least that a policy may get;
    with their mean the bound holds for the mean cost."""

    slack: Seconds
    """How late work may begin and still be in time; shorter than a slot."""

    min_replicas: int = 1
    running: int = 0
    """Replicas that serve when the first slot begins, and whose start nobody pays for."""

    def __post_init__(self) -> None:
        """Refuse what has no bound.

        Raises:
            ValueError: says which field, and what it must be.
        """
        if self.capacity[:1] != (0.0,) or any(
            more < less for less, more in pairwise(self.capacity)
        ):
            raise ValueError(f"capacity {self.capacity} must begin with 0 and never fall")
        if not self.slot > 0 or not self.load_time >= 0:
            raise ValueError(
                f"slot {self.slot} s must be above 0 and load_time {self.load_time} s not below"
            )
        if not 0 <= self.slack < self.slot:
            raise ValueError(
                f"slack {self.slack} s must be shorter than a slot of {self.slot} s: "
                "take longer slots"
            )
        if not 0 <= self.min_replicas <= self.max_replicas:
            raise ValueError(
                f"min_replicas {self.min_replicas} must be within 0..{self.max_replicas}, "
                "the largest fleet of capacity"
            )
        if not all(0 <= rate < math.inf for rate in self.work):
            raise ValueError("work must be finite and not negative in every slot")

    @property
    def max_replicas(self) -> int:
        """Return the largest fleet that ``capacity`` knows."""
        return len(self.capacity) - 1

    @property
    def due(self) -> tuple[float, ...]:
        """Return the work per second that a slot cannot leave to the next one.

        Evenly spread within a slot, what comes in its last ``slack`` may be served after it; what
        the slot inherits is left out, which only lowers the bound.
        """
        kept = 1.0 - self.slack / self.slot
        return tuple(rate * kept for rate in self.work)

    def missed(self, replicas: Sequence[int]) -> float:
        """Return the work that a fleet of ``replicas[t]`` in slot t cannot do in time."""
        return self.slot * sum(
            max(0.0, rate - self.capacity[count])
            for rate, count in zip(self.due, replicas, strict=True)
        )

    def paid(self, replicas: Sequence[int]) -> Seconds:
        """Return the replica-seconds of serving ``replicas[t]`` in slot t, starts included."""
        starts = sum(max(0, up - low) for low, up in pairwise((self.running, *replicas)))
        return Seconds(self.slot * sum(replicas) + self.load_time * starts)


@dataclass(frozen=True, slots=True)
class Bound:
    """What the cheapest policy pays at least, and a plan that shows how near that is."""

    paid: Seconds
    """Replica-seconds; no policy within the budget pays less."""

    plan: tuple[int, ...]
    """Serving replicas by slot, within the budget: the cheapest plan that the search met."""

    plan_paid: Seconds
    """What the plan pays: the least possible lies between ``paid`` and this."""

    plan_missed: float
    """Work that the plan misses."""


def needed(task: Task) -> tuple[int, ...]:
    """Return the fewest replicas that miss as little as possible, for each slot.

    That is nothing at all, unless the slot brings more than the largest fleet does.
    """
    most = task.capacity[-1]
    counts = (bisect_left(task.capacity, min(rate, most)) for rate in task.due)
    return tuple(max(task.min_replicas, count) for count in counts)


def closed_form(task: Task) -> Seconds:
    """Return the least replica-seconds when nothing may be missed.

    Replicas are a stack: level k serves while k or more are needed, and between two such times it
    costs the gap or a new start, whichever is less.

    Raises:
        UnservableError: a slot brings more than the largest fleet does.
    """
    counts = needed(task)
    _insist(task, counts, budget=0.0)
    return Seconds(
        math.fsum(
            _level_paid(task, counts, level) for level in range(1, max(counts, default=0) + 1)
        )
    )


def bound(task: Task, *, missed_share: float) -> Bound:
    """Return the lower bound when ``missed_share`` of the work, 0 to 1, may be late.

    The dual function is concave and piecewise linear in the price of a unit of missed work, and
    each plan contributes one line: the next price is where the lines of a too careless and a
    careful enough plan meet, until no plan lies below that point.

    Raises:
        UnservableError: even the largest fleet misses more.
    """
    budget = missed_share * task.slot * math.fsum(task.work)
    careful = _Line.of(task, cheapest(task, price=math.inf), budget)
    _insist(task, careful.plan, budget=budget)
    if budget == 0:
        return _found(closed_form(task), careful, budget)
    careless = _Line.of(task, cheapest(task, price=0.0), budget)
    if careless.excess <= 0:
        return _found(careless.paid, careless, budget)
    best, affordable = 0.0, careful
    for _ in range(_ROUNDS):
        price = (careful.paid - careless.paid) / (careless.excess - careful.excess)
        hoped = careless.at(price)
        line = _Line.of(task, cheapest(task, price=price), budget)
        best = max(best, line.at(price))
        if line.excess > 0:
            careless = line
        else:
            careful = line
            affordable = min(affordable, line, key=lambda each: each.paid)
        if hoped - line.at(price) <= _CLOSE * hoped:
            break
    return _found(Seconds(best), affordable, budget)


def cheapest(task: Task, *, price: float) -> tuple[int, ...]:
    """Return the serving replicas by slot that pay least when missed work costs ``price``.

    In replica-seconds per unit; ``inf`` misses no more than the largest fleet must. Takes time
    and memory in proportion to slots times replicas.
    """
    counts = range(task.min_replicas, max(needed(task), default=task.min_replicas) + 1)
    able = [task.capacity[count] for count in counts]
    starts = [count * task.load_time for count in counts]
    holding = [count * task.slot for count in counts]
    costs = [[max(0, count - task.running) * task.load_time for count in counts]]
    fine = price * task.slot
    for rate in task.due:
        row = list(map(add, _moved(costs[-1], starts), holding))
        due = min(rate, able[-1])
        for place in range(bisect_left(able, due)):
            row[place] += fine * (due - able[place]) if fine else 0.0
        costs.append(row)
    return tuple(counts[place] for place in _traced(costs, task.load_time))


@dataclass(frozen=True, slots=True)
class _Line:
    """What one plan says about every price: an upper limit of the dual function."""

    plan: tuple[int, ...]
    paid: Seconds
    excess: float
    """Missed work above the budget."""

    @classmethod
    def of(cls, task: Task, plan: tuple[int, ...], budget: float) -> "_Line":
        return cls(plan, task.paid(plan), task.missed(plan) - budget)

    def at(self, price: float) -> float:
        return self.paid + price * self.excess


def _found(paid: Seconds, line: _Line, budget: float) -> Bound:
    return Bound(paid, line.plan, line.paid, line.excess + budget)


def _insist(task: Task, plan: Sequence[int], *, budget: float) -> None:
    missed = task.missed(plan)
    if missed > budget:
        raise UnservableError(
            f"{task.max_replicas} replicas miss {missed:g} units of work and {budget:g} may be "
            "missed: allow more replicas or more missed work"
        )


def _level_paid(task: Task, counts: Sequence[int], level: int) -> float:
    """Return what the stack's replica ``level`` pays."""
    paid = 0.0
    idle = 0.0 if level <= task.running else math.inf
    for count in counts:
        if count >= level:
            paid += task.slot + min(idle, task.load_time)
            idle = 0.0
        else:
            idle += task.slot
    return paid


def _moved(costs: list[float], starts: list[float]) -> list[float]:
    """Return the least cost of being at each count after moving there: down is free, up is not."""
    down = list(accumulate(reversed(costs), min))
    down.reverse()
    up = map(add, starts, accumulate(map(sub, costs, starts), min))
    return list(map(min, down, up))


def _traced(costs: list[list[float]], load_time: Seconds) -> list[int]:
    """Return the way to the cheapest end, as places in the rows, from the first slot on."""
    places = range(len(costs[0]))
    climbs = [[max(0, to - place) * load_time for place in places] for to in places]
    place = costs[-1].index(min(costs[-1]))
    way = []
    for before in reversed(costs[:-1]):
        way.append(place)
        reached = list(map(add, before, climbs[place]))
        place = reached.index(min(reached))
    way.reverse()
    return way
