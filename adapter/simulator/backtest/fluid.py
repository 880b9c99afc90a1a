"""A load played as a fluid: weeks in seconds, through the same loop and the same decision.

Every minute the pool takes in what came, pods start and stop as in a cluster, the loop sees the
readings that such engines would export, and what it publishes is set at once: with our metric an
HPA adds up to 15 s. What is approximated is written in ``pool`` and ``flow``; how far it is off is
measured in ``docs/backtest.md``.
"""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Final

from adapter.controller.errors import NoDecisionYetError
from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import WARMING_SECONDS, FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda, SetClock, at_once
from adapter.simulator.autoscaler import adapter_of
from adapter.simulator.backtest.flow import Lengths
from adapter.simulator.backtest.least import MINUTE, first_replicas, full, least
from adapter.simulator.backtest.load import Bin
from adapter.simulator.backtest.outcome import Backtest, Moment, Plan, demand_of
from adapter.simulator.backtest.pool import Passed, Pool, Told
from adapter.simulator.deployment import WARM_UP, Deployment, Pod, PodSpec
from adapter.simulator.engine import TTFT_BOUNDS, Request
from adapter.simulator.presets import EnginePreset
from adapter.simulator.saturation import work_of
from adapter.simulator.score import WINDOW, Score, Window
from adapter.simulator.scraping import pattern_reading
from adapter.simulator.starts import LoadTimes

MODE: Final = "fluid"

_HOUR: Final = 3600.0
_BOUNDS: Final = (*TTFT_BOUNDS, math.inf)
_REPORTS: Final = 50
"""How often progress is told in all."""


def _untold(share: float) -> None:
    del share


def play(plan: Plan, *, told: Callable[[float], None] = _untold) -> Backtest:
    """Return what came of ``plan``; ``told`` gets the share that is done, 0..1."""
    capacity = full(plan)
    fleet = _Fleet(plan, first=first_replicas(plan, capacity=capacity))
    loop, published = adapter_of(plan.active, fleet, fleet.clock, interval=MINUTE)
    judge, minutes = _Judge(plan), []
    weigh = _weigher(plan.engine, fleet.lengths)
    bins = list(plan.load.bins(MINUTE, scale=plan.scale, seed=plan.seed))
    at_once(loop.tick(plan.load.begin))
    for number, one in enumerate(bins):
        minutes.append(weigh(one))
        judge.note(one, fleet.play(one))
        decision = at_once(loop.tick(fleet.clock.now()))
        judge.look(fleet, demand_of(decision), decision.desired)
        with contextlib.suppress(NoDecisionYetError):  # on an error an HPA leaves the count alone
            fleet.set_replicas(at_once(published.read())[0] // 1000)
        if number % max(1, len(bins) // _REPORTS) == 0:
            told(number / len(bins))
    found, slot = least(plan, minutes, capacity=capacity)
    return Backtest(
        plan=plan,
        mode=MODE,
        score=judge.score(fleet),
        moments=tuple(judge.moments),
        asked=tuple(fleet.deployment.history),
        bound=found,
        slot=slot,
    )


def _weigher(engine: EnginePreset, lengths: Lengths) -> Callable[[Bin], float]:
    """Return the function from a bin to the engine-seconds in it, as ``work_of`` counts them."""
    squares = lengths.square / lengths.prompt**2
    work, longer = work_of(engine), engine.kappa * engine.beta * (squares - 1)

    def weigh(one: Bin) -> float:
        if one.requests <= 0:
            return 0.0
        prompt, output = one.prompt_tokens / one.requests, one.output_tokens / one.requests
        return one.requests * (work(round(prompt), round(output)) + longer * prompt**2)

    return weigh


class _Fleet:
    """The pool in its pods, on virtual time: a ``FleetSource`` that needs no scraping."""

    def __init__(self, plan: Plan, *, first: int) -> None:
        self._agenda = Agenda(plan.load.begin)
        self.clock = SetClock(self._agenda)
        self.lengths = Lengths.of([card for deck in plan.load.lengths() for card in deck])
        self.pool = Pool(plan.engine, self.lengths, objective=plan.objective, seed=plan.seed)
        pods = PodSpec(
            preset=plan.engine,
            load_times=LoadTimes(plan.load_time, seed=plan.seed),
            load_quantile=plan.policy.spec.load_time.quantile,
        )
        self.deployment = Deployment(
            "replica", spec=pods, agenda=self._agenda, first=first, ledger=_NoLedger()
        )
        self._kv_tokens = plan.engine.kv_tokens
        self._before: dict[str, Reading] = {}
        self._pattern = pattern_reading()

    def play(self, one: Bin) -> Passed:
        """Let the time of ``one`` pass, and return what came of its requests."""
        self._agenda.pass_until(Timestamp(one.start + one.seconds))
        return self.pool.play(one, self.deployment.serving, warm_up=WARM_UP)

    def set_replicas(self, count: int) -> None:
        """Ask for ``count``."""
        if count != self.deployment.scale.spec_replicas:
            self.deployment.set_replicas(count)

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return the fleet as engines in this state would tell it."""
        roster = self.deployment.roster()
        before, self._before = self._before, {}
        replicas = [self._replica(pod, before.get(pod.name), at) for pod in self.deployment.pods]
        return FleetSnapshot.of(
            at,
            replicas,
            spec_replicas=roster.spec_replicas,
            status_replicas=roster.status_replicas,
            load_time=roster.load_time,
        )

    async def close(self) -> None:
        """Do nothing: nothing is open."""

    def _replica(self, pod: Pod, previous: Reading | None, at: Timestamp) -> Replica:
        if pod.ready_at is None:
            gap = Gap(at, Cause.UNREACHABLE, f"{pod.name}: connection refused, still loading")
            return Replica(pod.name, pod.name, pod.phase, gap, since=pod.since)
        told = self.pool.told.get(pod.name) or Told()
        reading = self._before[pod.name] = self._reading(pod, told, at)
        phase = pod.phase
        if not told.taken and at - pod.ready_at < WARMING_SECONDS:
            phase = Phase.WARMING
        return Replica(pod.name, pod.name, phase, reading, previous, pod.since)

    def _reading(self, pod: Pod, told: Told, at: Timestamp) -> Reading:
        pattern = self._pattern
        usage = min(1.0, told.running * self.lengths.context / self._kv_tokens)
        started, ready = float(pod.created_at), float(pod.ready_at or at)
        values = {
            Metric.REQUESTS_RUNNING: told.running,
            Metric.REQUESTS_WAITING: told.waiting,
            Metric.REQUESTS_DEFERRED: 0.0,
            Metric.KV_CACHE_USAGE: usage,
            Metric.KV_CACHE_USAGE_PEAK: usage,
            Metric.PROMPT_TOKENS: told.prompt_tokens,
            Metric.CACHED_PROMPT_TOKENS: 0.0,
            Metric.GENERATION_TOKENS: told.output_tokens,
            Metric.REQUESTS_FINISHED: told.finished,
            Metric.REQUESTS_REJECTED: 0.0,
            Metric.REQUEST_SECONDS: told.request_seconds,
            Metric.QUEUE_SECONDS: told.queue_seconds,
            Metric.PREEMPTIONS: 0.0,
            Metric.ENGINE_STEPS: told.steps,
            Metric.PROCESS_START: started,
            Metric.MODEL_LOAD_SECONDS: ready - started,
        }
        ttft = Histogram(_BOUNDS, told.ttft_counts, told.ttft_seconds)
        ranks = {name: Rank(values, ttft) for name in pattern.ranks}
        return Reading(
            at=at,
            engine=pattern.engine,
            model=pattern.model,
            values=values,
            ttft=ttft,
            ranks=ranks,
            matched=pattern.matched,
            missing=pattern.missing,
            unserved=pattern.unserved,
        )


class _Judge:
    """Counts who was late, and looks at the fleet once a minute."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._windows: dict[int, list[float]] = {}
        self._before: tuple[float, int] | None = None
        self.moments: list[Moment] = []

    def note(self, one: Bin, passed: Passed) -> None:
        """Count the requests of ``one``, if they are judged."""
        if one.start >= self._plan.judged_from and passed.requests:
            number = int((one.start - self._plan.judged_from) // WINDOW)
            window = self._windows.setdefault(number, [0.0, 0.0])
            window[0] += passed.requests
            window[1] += passed.missed

    def look(self, fleet: _Fleet, demand: float | None, desired: int) -> None:
        """Write the fleet down, if it is judged already."""
        deployment, at = fleet.deployment, fleet.clock.now()
        if at < self._plan.judged_from:
            return
        if self._before is None:
            self._before = (deployment.paid_seconds, deployment.started)
            if not self._plan.warm_up:
                self._before = (0.0, 0)
        self.moments.append(
            Moment(
                at=at,
                demand=demand,
                desired=desired,
                serving=len(deployment.serving),
                loading=sum(pod.ready_at is None for pod in deployment.pods),
                in_flight=fleet.pool.running + fleet.pool.waiting,
                paid_hours=(deployment.paid_seconds - self._before[0]) / _HOUR,
            )
        )

    def score(self, fleet: _Fleet) -> Score:
        """Return what came of it; what waits at the end is late, as are those before it."""
        deployment = fleet.deployment
        paid, started = self._before or (0.0, 0)
        windows = self._told()
        requests = sum(window.requests for window in windows)
        unserved = round(fleet.pool.waiting)
        ttft = Histogram(_BOUNDS, Told(ttft=fleet.pool.ttft).ttft_counts, 0.0)
        return Score(
            requests=requests,
            in_time=sum(window.in_time for window in windows),
            finished=max(0, requests - unserved),
            refused=0,
            lost=0,
            unfinished=unserved,
            worst_window=min((w.in_time / w.requests for w in windows), default=1.0),
            ttft_p50=_known(ttft.quantile(0.5)),
            ttft_p99=_known(ttft.quantile(0.99)),
            paid_hours=(deployment.paid_seconds - paid) / _HOUR,
            starts=deployment.started - started,
            seconds=Seconds(self._plan.end - self._plan.judged_from),
            windows=windows,
        )

    def _told(self) -> tuple[Window, ...]:
        """Return the windows in whole requests."""
        return tuple(
            Window(
                Timestamp(self._plan.judged_from + number * WINDOW),
                max(1, round(every)),
                max(0, min(max(1, round(every)), round(every - missed))),
            )
            for number, (every, missed) in sorted(self._windows.items())
        )


class _NoLedger:
    """Fluid pods hold no single requests."""

    def finish(self, requests: Sequence[Request]) -> None:
        """Count nothing."""

    def lose(self, at: Timestamp, count: int) -> None:
        """Count nothing."""


def _known(seconds: float | None) -> Seconds:
    return Seconds(math.nan if seconds is None else seconds)
