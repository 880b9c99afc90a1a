"""A fleet on virtual time: requests, a router, engines in pods, and whoever sets their number.

Engines work only when somebody looks: at a scrape, when they are stopped, and once a second for
the router. In between they are handed requests and nothing else, so a simulated second costs
about what its requests cost.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda, SetClock
from adapter.simulator.deployment import Deployment, PodSpec
from adapter.simulator.engine import Request
from adapter.simulator.gateway import Gateway
from adapter.simulator.router import router
from adapter.simulator.score import Objective, Score, Scorer
from adapter.simulator.scraping import ScrapedFleet, Scraper
from adapter.simulator.workload import Arrival

SUNDAY: Final = Timestamp(1_715_472_000.0)
"""2024-05-12 00:00 UTC, when the Azure conversation week begins."""

SCRAPE_INTERVAL: Final = Seconds(5.0)
"""The product's default."""

AT_ONCE: Final = Seconds(0.0)

ROUTER_SEES: Final = Seconds(1.0)
"""How often the router learns what the engines have done; what it sent itself it knows at once.
Endpoint pickers poll more often; with two drawn at random it hardly matters: at 90 % of capacity
the p99 of the first token is 0.57 s, with ten looks a second 0.54 s, for half again the time."""

PATIENCE: Final = Seconds(60.0)
"""How long after the last arrival the engines may finish; what remains was not served."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything about a world but its arrivals and its autoscaler."""

    pods: PodSpec
    first: int
    """Replicas that serve already when it begins."""

    router: str = "power-of-two"
    scrape_interval: Seconds = SCRAPE_INTERVAL
    scrape_delay: Seconds = AT_ONCE
    """0: scraped at the tick, as the adapter itself does; a Prometheus adds its own interval."""

    begin: Timestamp = SUNDAY
    scored_after: Seconds = AT_ONCE
    """What arrives earlier fills histories and is not judged, nor its cost counted."""

    objective: Objective = field(default_factory=Objective)
    seed: int = 0


Autoscaler = Callable[["World"], None]
"""Puts its acts down on the agenda of the world that it is given, before it is played.

It reads ``world.observer`` and ``world.gateway``, and sets ``world.deployment.set_replicas``.
"""


class World:
    """Plays arrivals against a deployment; equal seeds give equal runs, in whatever strides."""

    def __init__(
        self,
        setting: Setting,
        arrivals: Iterator[Arrival],
        *,
        autoscaler: Autoscaler,
        faults: Iterable["Fault"] = (),
    ) -> None:
        """Begin at ``setting.begin``, to which the arrivals are relative."""
        self.begin: Final = setting.begin
        self.agenda: Final = Agenda(setting.begin)
        self.clock: Final = SetClock(self.agenda)
        """The adapter's."""

        self._scored_from = Timestamp(setting.begin + setting.scored_after)
        self._scorer = Scorer(setting.objective, setting.pods.preset, begin=self._scored_from)
        self.gateway: Final = Gateway(self._scorer)
        self.deployment: Final = Deployment(
            "replica",
            spec=setting.pods,
            agenda=self.agenda,
            first=setting.first,
            ledger=self.gateway,
        )
        self.scraper: Final = Scraper(self.deployment, self.clock, delay=setting.scrape_delay)
        self.prompt_factor = 1.0
        """How much longer than usual prompts are now."""

        self._largest = setting.pods.preset.admissible_tokens
        self._router = router(setting.router, seed=setting.seed)
        self._arrivals, self._next = arrivals, next(arrivals, None)
        self._queue: deque[Request] = deque()
        """What waits at the router for the first replica to serve."""

        self._seen_until = 0.0
        self._before = (0.0, 0)
        self.agenda.at(self._scored_from, self._begin_scoring)
        self.agenda.every(setting.scrape_interval, self.scraper.scrape, first=setting.begin)
        for fault in faults:
            fault.put_down(self)
        autoscaler(self)

    @property
    def queued(self) -> int:
        """Return the requests at the router, which wait for any replica to serve."""
        return len(self._queue)

    def observer(self, *, stale_after: Seconds) -> ScrapedFleet:
        """Return a source of snapshots, for one adapter or rival."""
        return ScrapedFleet(
            self.deployment, self.scraper, clock=self.clock, stale_after=stale_after
        )

    def play(self, until: Timestamp) -> None:
        """Let everything happen that happens by ``until``."""
        agenda = self.agenda
        while agenda.next <= until:
            self._receive(agenda.next)
            agenda.step()
            if self._queue:
                self._flush()
        self._receive(until)
        agenda.pass_until(until)

    def score(self) -> Score:
        """End the run here, let the engines finish for a minute, and return what came of it."""
        now = self.agenda.now()
        paid, starts = self.deployment.paid_seconds, self.deployment.started
        self.deployment.advance(now + PATIENCE)
        self._scorer.leave(now, self.gateway.in_flight)
        return self._scorer.score(
            paid=Seconds(paid - self._before[0]),
            starts=starts - self._before[1],
            seconds=Seconds(now - self._scored_from),
        )

    def _begin_scoring(self, at: Timestamp) -> None:
        del at
        self._before = (self.deployment.paid_seconds, self.deployment.started)

    def _receive(self, until: float) -> None:
        """Route what arrives by ``until``."""
        arrival, begin = self._next, self.begin
        came = prompts = outputs = 0
        while arrival is not None and begin + arrival.after <= until:
            prompt, output = arrival.prompt_tokens, arrival.output_tokens
            if self.prompt_factor != 1.0:
                prompt = max(1, round(prompt * self.prompt_factor))
            came += 1
            prompts += prompt
            outputs += output
            self._route(Request(Timestamp(begin + arrival.after), prompt, output))
            arrival = next(self._arrivals, None)
        self._next = arrival
        totals = self.gateway.totals
        totals.requests += came
        totals.prompt_tokens += prompts
        totals.output_tokens += outputs

    def _route(self, request: Request) -> None:
        serving = self.deployment.serving
        if request.prompt_tokens + request.output_tokens > self._largest:
            self.gateway.refuse(request.arrived_at)
        elif serving:
            if request.arrived_at >= self._seen_until:
                self._look(request.arrived_at)
            self._router.choose(serving).send(request)
        else:
            self._queue.append(request)

    def _look(self, at: Timestamp) -> None:
        """Let the router see what the engines have done by ``at``."""
        self._seen_until = at + ROUTER_SEES
        self.deployment.advance(at)

    def _flush(self) -> None:
        """Send what waited at the router for the first replica to serve."""
        while self._queue and self.deployment.serving:
            self._router.choose(self.deployment.serving).send(self._queue.popleft())


class Fault(Protocol):
    """Something that goes wrong; see ``faults``."""

    def put_down(self, world: World) -> None:
        """Put it on the world's agenda."""
        ...
