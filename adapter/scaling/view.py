"""The facts that the signals read: who serves, what is in hand, what cannot be told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.first_tokens import ttft_points
from adapter.scaling.flow import Flow, flow_of, rate_point, recent
from adapter.scaling.progress import Judged
from adapter.scaling.state import RatePoint, ScalingState, TtftPoint
from adapter.scaling.work import Silence, Work, work_of

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

    rates: tuple[RatePoint, ...]
    """Requests that came and went, of the last ticks and of this one."""

    flow: Flow | None
    """Arrivals and what a replica can do; None while the counters do not tell."""

    first_tokens: tuple[TtftPoint, ...]
    """First tokens of the past and of this tick."""

    queued_lately: bool
    """True when requests wait, or did within the window of the rates."""

    @property
    def running(self) -> float:
        """Return the requests running on the serving replicas that are heard."""
        return sum(work.running for _, work in self.heard)

    @property
    def waiting(self) -> float:
        """Return the requests waiting there, without the skewed surplus."""
        return sum(min(work.waiting, self.skew_limit) for _, work in self.heard)

    @property
    def surplus(self) -> float:
        """Return the requests that wait at few replicas while most have no queue to speak of."""
        return sum(max(0.0, work.waiting - self.skew_limit) for _, work in self.heard)

    @property
    def skew_limit(self) -> float:
        """Return how many waiting requests of one replica are the fleet's rather than the router's.

        The median grows with every queue, so one more waiting request never lowers the demand.
        """
        if len(self.heard) < 2:  # noqa: PLR2004 - one replica has nobody to be compared with
            return float("inf")
        median = median_low(work.waiting for _, work in self.heard)
        return max(SKEW_FREE, SKEW_RATIO * median)

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
    works = {replica.uid: work_of(replica) for replica in fleet.replicas}
    heard = tuple((r, w) for r in serving if isinstance(w := works[r.uid], Work))
    lost = fleet.phase(Phase.STALLED, Phase.ISOLATED)
    point = rate_point(fleet.replicas, fleet.at)
    before = recent(state.rates, fleet.at)
    return View(
        at=fleet.at,
        lead=lead,
        target=target,
        serving=serving,
        heard=heard,
        silent=tuple((r, w) for r in serving if isinstance(w := works[r.uid], Silence)),
        elsewhere=_elsewhere(fleet, works, judged.stuck),
        coming=fleet.phase(Phase.PENDING, Phase.LOADING, Phase.WARMING),
        lost=lost,
        stuck=judged.stuck,
        draining=len(fleet.phase(Phase.DRAINING)),
        answers=bool(heard) or any(isinstance(works[r.uid], Work) for r in lost),
        rates=before if point is None else (*before, point),
        flow=flow_of(before, point),
        first_tokens=(*state.ttft, *ttft_points(serving, fleet.at)),
        queued_lately=any(p.queued for p in before) or any(w.waiting > 0 for _, w in heard),
    )


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
