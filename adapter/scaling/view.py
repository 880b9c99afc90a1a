"""The facts that the signals read: who serves, what is in hand, what cannot be told."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low
from typing import Final

from adapter.fleet.rates import Between, between
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.first_tokens import ttft_points
from adapter.scaling.flow import Flow, flow_of, mean_running, rate_point, recent, turned_away
from adapter.scaling.offered import Offered, offered_of
from adapter.scaling.progress import Judged
from adapter.scaling.state import Carried, RatePoint, ScalingState, TtftPoint
from adapter.scaling.work import Silence, Work

SKEW_FREE: Final = 4.0
"""Requests that may wait at a replica while most have no queue: noise of any router."""

SKEW_RATIO: Final = 3.0
"""How much more than the median replica one may hold before the rest is called skewed."""


@dataclass(frozen=True, slots=True)
class View:
    """A judged fleet as the signals see it."""

    at: Timestamp
    lead: Seconds
    """How long a replica that is ordered now takes to serve."""

    target: float
    """Requests in flight that one replica carries."""

    serving: tuple[Replica, ...]
    """Replicas that count as capacity, the silent ones included."""

    heard: tuple[tuple[Replica, Work], ...]
    """The part of ``serving`` whose work is known."""

    silent: tuple[tuple[Replica, Silence], ...]
    """The rest of it, with the reasons."""

    running: float
    """Requests running on the replicas that are heard."""

    waiting: float
    """Requests waiting there, without the skewed surplus."""

    surplus: float
    """Requests that wait at few replicas while most have no queue to speak of."""

    skew_limit: float
    """How many waiting requests of one replica are the fleet's matter, not the router's."""

    elsewhere: float
    """Requests in flight at replicas that are no capacity: their work is demand."""

    coming: tuple[Replica, ...]
    """Pending, loading and warming."""

    lost: tuple[Replica, ...]
    """Stalled and isolated: each holds a place and does no work."""

    stuck: frozenset[str]
    """UIDs of the lost ones whose queue has neither moved nor grown: not part of ``elsewhere``."""

    draining: int

    answers: bool
    """False when no replica that could tell the demand says anything."""

    passed: Mapping[str, Between]
    """By UID, what happened between the last two readings; the first reading has no past."""

    rates: tuple[RatePoint, ...]
    """Requests that came and went, of the last ticks and of this one."""

    flow: Flow | None
    """Arrivals and what a replica can do; None while the counters do not tell."""

    offered: Offered | None
    """Work that arrives; None while the counters do not tell."""

    carried: Carried
    """What one replica carries of it, as far as it was learned."""

    turned_away: float
    """Requests refused lately per request served, 0..1: load that no gauge shows."""

    first_tokens: tuple[TtftPoint, ...]
    """First tokens of the past and of this tick."""

    queued_lately: bool
    """True when requests wait, or did within the window of the rates."""

    @property
    def live(self) -> int:
        """Return the replicas that hold a place: all but the draining ones."""
        return len(self.serving) + len(self.coming) + len(self.lost)

    @property
    def idle(self) -> int:
        """Return the replicas that can be taken away without cutting a stream."""
        return len(self.stuck) + sum(work.in_flight == 0 for _, work in self.heard)

    @property
    def in_flight(self) -> float:
        """Return the requests in hand of the serving replicas that are heard."""
        return self.running + self.waiting

    @property
    def tells_no_work(self) -> bool:
        """Return whether the engine exports nothing that tells the work, as opposed to a gap."""
        said = [silence for _, silence in self.silent]
        return bool(said) and not self.heard and all(silence.unserved for silence in said)

    def unserved(self, metric: str) -> bool:
        """Return whether no serving replica that answers exports ``metric`` at all."""
        readings = [r.reading for r in self.serving if r.reading is not None]
        return bool(readings) and all(metric in reading.unserved for reading in readings)


def look(judged: Judged, state: ScalingState, *, lead: Seconds, target: float) -> View:
    """Return the facts of the fleet at this moment, with what is remembered of the last ones."""
    fleet = judged.fleet
    serving = fleet.phase(Phase.SERVING)
    lost = fleet.phase(Phase.STALLED, Phase.ISOLATED)
    before = recent(state.rates, fleet.at)
    passed = _passed(fleet)
    point = rate_point(fleet.replicas, judged.works, fleet.at, passed=passed)
    rates = before if point is None else (*before, point)
    works = calmed(judged.works, rates)
    heard = tuple((r, w) for r in serving if isinstance(w := works[r.uid], Work))
    queues = [work.waiting for _, work in heard]
    most = skew_limit(queues)
    return View(
        at=fleet.at,
        lead=lead,
        target=target,
        serving=serving,
        heard=heard,
        silent=tuple((r, w) for r in serving if isinstance(w := works[r.uid], Silence)),
        running=sum(work.running for _, work in heard),
        waiting=sum(min(queue, most) for queue in queues),
        surplus=sum(max(0.0, queue - most) for queue in queues),
        skew_limit=most,
        elsewhere=_elsewhere(fleet, works, judged.stuck),
        coming=fleet.phase(Phase.PENDING, Phase.LOADING, Phase.WARMING),
        lost=lost,
        stuck=judged.stuck,
        draining=len(fleet.phase(Phase.DRAINING)),
        answers=bool(heard) or any(isinstance(works[r.uid], Work) for r in lost),
        passed=passed,
        rates=rates,
        flow=flow_of(before, point),
        offered=offered_of(rates, state.carried),
        carried=state.carried,
        turned_away=turned_away(rates),
        first_tokens=(*state.ttft, *ttft_points(serving, fleet.at, passed=passed)),
        queued_lately=any(p.queued for p in before) or any(queue > 0 for queue in queues),
    )


def _passed(fleet: FleetSnapshot) -> Mapping[str, Between]:
    return {
        replica.uid: between(replica.reading, replica.previous)
        for replica in fleet.replicas
        if replica.reading is not None and replica.previous is not None
    }


def skew_limit(queues: Sequence[float]) -> float:
    """Return how many waiting requests of one replica are the fleet's matter, not the router's.

    Where most replicas have no queue, what waits at the few is a routing fault that more replicas
    do not cure. The median grows with every queue, so one more waiting request never lowers what
    is counted.
    """
    if len(queues) < 2:  # noqa: PLR2004 - one replica has nobody to be compared with
        return math.inf
    return max(SKEW_FREE, SKEW_RATIO * median_low(queues))


def calmed(
    works: Mapping[str, Work | Silence], rates: Sequence[RatePoint]
) -> Mapping[str, Work | Silence]:
    """Return ``works`` with the mean of the last minute where Little's law told the work."""
    mean = mean_running(rates)
    if mean is None or not any(isinstance(w, Work) and w.by_law for w in works.values()):
        return works
    return {
        uid: replace(work, running=mean) if isinstance(work, Work) and work.by_law else work
        for uid, work in works.items()
    }


def _elsewhere(
    fleet: FleetSnapshot, works: Mapping[str, Work | Silence], stuck: frozenset[str]
) -> float:
    return sum(
        work.in_flight
        for replica in fleet.replicas
        if replica.phase is not Phase.SERVING
        and replica.uid not in stuck
        and isinstance(work := works[replica.uid], Work)
    )


def names(replicas: Sequence[Replica], *, most: int = 3) -> str:
    """Return the names of ``replicas`` for a person; the rest of many as a number."""
    shown = ", ".join(replica.name for replica in replicas[:most])
    return shown if len(replicas) <= most else f"{shown} and {len(replicas) - most} more"
