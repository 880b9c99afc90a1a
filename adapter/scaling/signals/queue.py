"""Queue: work in flight over what one replica carries."""

import math
from typing import Annotated, Final, Literal

from pydantic import Field

from adapter.fleet.units import Seconds
from adapter.scaling.carrying import carried_at, replicas_for
from adapter.scaling.demand import Demand
from adapter.scaling.flow import Flow
from adapter.scaling.offered import Offered
from adapter.scaling.section import Section
from adapter.scaling.view import View

PRIOR_IN_FLIGHT: Final = 16.0
"""Requests that one replica is taken to carry before anything was learned: tuned in-flight targets
of 70B models on 4 x H100 lie at 5 to 30, and too small a value only orders too early."""

LEAST_DRAIN: Final = Seconds(240.0)
DRAIN_FACTOR: Final = 4.0
"""A backlog is worked off over this many lead times. While replicas load, a backlog of one lead
time's shortage builds up by itself, so it adds a quarter of that shortage and never snowballs;
under a minute, scraping and starting add as much again, hence the least."""


class QueueSection(Section):
    """``signals.queue:``."""

    target_in_flight: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    """Requests in flight (running + waiting) that one replica carries within the objective;
    ``auto`` learns it from queues and from how soon first tokens come."""

    headroom: float = Field(default=0.9, gt=0, le=1)
    """Share of the target that is planned with, so that noise does not queue."""

    def demand(self, view: View) -> Demand:
        """Return the replicas that the requests in hand need, and those that silence may hide.

        Silent replicas count as the average of the others on the way up; on the way down each
        counts as busy with one replica's worth.
        """
        if view.tells_no_work:
            return Demand("queue", None, "the engine exports no queue or load", unserved=True)
        if not view.answers:
            return Demand("queue", None, "no replica tells what it has in hand", blocks_down=True)
        admitted, because = self._heard(view)
        heard = admitted * (1.0 + view.turned_away)
        count, silent = len(view.heard), len(view.silent)
        average = heard / count if count else 1.0
        elsewhere = 0.0 if self._by_work(view) else view.elsewhere
        known = heard + self._replicas(view, elsewhere)
        return Demand(
            "queue",
            known + silent * average,
            because + _rest(view, elsewhere),
            floor=known + silent * max(1.0, average) if silent else None,
            evidence=_evidence(view),
        )

    def _replicas(self, view: View, requests: float) -> float:
        return requests / (view.target * self.headroom)

    def _heard(self, view: View) -> tuple[float, str]:
        """Return the need of the replicas that are heard, and the clause that explains it."""
        in_flight = view.running + view.waiting
        plain = self._replicas(view, in_flight)
        clause = f"{in_flight:g} in flight / ({view.target:.3g} x {self.headroom:g}) per replica"
        if self.target_in_flight == "auto" and view.offered and view.carried.levels:
            work = self._for_work(view, view.offered)
            if self._by_work(view) or work[0] < plain:
                return work
        if view.flow is None:
            return plain, clause
        arrivals = self._for_arrivals(view, view.flow)
        need = max(self._running(view, view.flow), min(plain, arrivals))
        if need >= plain:
            return plain, clause
        return need, (
            f"{view.flow.arriving:.3g} requests/s over {view.flow.capacity:.3g} per replica, "
            f"with {view.waiting:g} waiting; {clause} would be {plain:.1f}"
        )

    def _by_work(self, view: View) -> bool:
        """Return whether work alone sizes the pool; before a limit was met it only talks down.

        What arrives tells nothing of what drains or is stuck: that is served or replaced there.
        """
        auto = self.target_in_flight == "auto"
        return auto and view.carried.late and view.offered is not None

    def _for_work(self, view: View, offered: Offered) -> tuple[float, str]:
        """Return what carries the arriving work and drains the backlog meanwhile."""
        drain = max(LEAST_DRAIN, DRAIN_FACTOR * view.lead)
        backlog = view.waiting * offered.each / drain
        need = replicas_for(view.carried, offered.rate + backlog, headroom=self.headroom)
        pool = max(1, len(view.heard))
        level = carried_at(view.carried, pool)
        queue = f" and {backlog:.3g}/s drain {view.waiting:g} waiting" if backlog else ""
        learned = "learned" if view.carried.late else "more was never tried"
        return need, (
            f"{offered.rate:.4g} {offered.unit}/s arrive{queue} / ({level:.4g} x "
            f"{self.headroom:g}) per replica of {pool}, {learned}"
        )

    def _running(self, view: View, flow: Flow) -> float:
        """Return the need below which no rate may talk it down."""
        if not flow.settled:
            return self._replicas(view, view.running)
        return min(view.running / view.target, float(len(view.heard)))

    def _for_arrivals(self, view: View, flow: Flow) -> float:
        """Return what keeps up with the arrivals and works the backlog off meanwhile.

        Waiting requests alone would ask for a replica each while the first ones load: 100
        requests a second at 10 per replica end at 22,745 replicas that way (WVA#1019).
        """
        drain = max(LEAST_DRAIN, DRAIN_FACTOR * view.lead)
        return flow.arriving / flow.capacity / self.headroom + view.waiting / flow.capacity / drain


def target_in_flight(section: QueueSection | None, learned: float | None) -> float:
    """Return how many requests in flight one replica carries: configured, learned or the prior."""
    if section is not None and section.target_in_flight != "auto":
        return section.target_in_flight
    return PRIOR_IN_FLIGHT if learned is None else learned


def _rest(view: View, elsewhere: float) -> str:
    """Return what the clause leaves out."""
    notes = []
    if view.turned_away:
        notes.append(f"x {1.0 + view.turned_away:.2f} for requests that were refused")
    if elsewhere:
        notes.append(f"and {elsewhere:g} in flight at replicas that do not serve")
    if view.surplus:
        notes.append(f"without {view.surplus:g} that wait at few")
    if view.silent:
        as_what = f"the average of {len(view.heard)}" if view.heard else "busy"
        notes.append(f"{len(view.silent)} silent replicas as {as_what}")
    return "".join(f"; {note}" for note in notes)


def _evidence(view: View) -> dict[str, float]:
    numbers = {
        "running_requests": view.running,
        "waiting_requests": view.waiting,
        "skewed_requests": view.surplus,
        "refused_per_served_request": view.turned_away,
        "elsewhere_requests": view.elsewhere,
        "target_in_flight_requests": view.target,
        "silent_replicas": float(len(view.silent)),
    }
    if view.flow is not None:
        numbers["arriving_requests_per_second"] = view.flow.arriving
        numbers["replica_requests_per_second"] = view.flow.capacity
    if view.offered is not None:
        numbers["arriving_work_per_second"] = view.offered.rate
        if view.carried.levels:
            level = carried_at(view.carried, len(view.heard))
            numbers["replica_work_per_second"] = level
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
