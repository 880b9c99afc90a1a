"""What scraping simulated pods brings: readings in time, readings late, and gaps."""

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final

from adapter.fleet.assemble import FleetMemory, assemble
from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import SetClock
from adapter.simulator.deployment import Deployment, Pod
from adapter.simulator.engine import SimulatedEngine
from adapter.simulator.exposition import vllm_exposition
from adapter.simulator.presets import PRESETS

MODEL: Final = "simulated"

_NOW: Final = Timestamp(0.0)


class Scraper:
    """Asks every pod on a fixed grid, as a Prometheus or the adapter itself does."""

    def __init__(self, deployment: Deployment, clock: SetClock, *, delay: Seconds) -> None:
        self._deployment, self._clock = deployment, clock
        self._under_way: deque[tuple[Timestamp, Mapping[str, Reading | Gap]]] = deque()
        self._samples: dict[str, Reading | Gap] = {}
        self.delay = delay
        """From the moment that an answer tells of until it can be used. What repeats an answer (a
        proxy, an exporter with a cache) dates it anew, so it looks as fresh as it arrives."""

        self.broken = False
        """While true, nobody answers."""

    def scrape(self, at: Timestamp) -> None:
        """Ask every pod at ``at``, in the world's time."""
        self._deployment.advance(at)
        answered_at = Timestamp(self._clock.now() + self.delay)
        answers = {pod.name: self._ask(pod, answered_at) for pod in self._deployment.pods}
        self._under_way.append((Timestamp(at + self.delay), answers))

    def samples(self, at: Timestamp) -> Mapping[str, Reading | Gap]:
        """Return the latest usable answer of every pod that was asked, at ``at`` of the world."""
        while self._under_way and self._under_way[0][0] <= at:
            self._samples = dict(self._under_way.popleft()[1])
        return self._samples

    def _ask(self, pod: Pod, at: Timestamp) -> Reading | Gap:
        if self.broken:
            return Gap(at, Cause.TIMEOUT, f"{pod.name}: no answer in time")
        if pod.engine is None or pod.ready_at is None:
            return Gap(at, Cause.UNREACHABLE, f"{pod.name}: connection refused, still loading")
        return reading_of(pod.engine, at=at, started_at=pod.created_at, loaded_at=pod.ready_at)


class ScrapedFleet:
    """One observer's snapshots: a ``FleetSource`` with a memory of its own."""

    def __init__(
        self, deployment: Deployment, scraper: Scraper, *, clock: SetClock, stale_after: Seconds
    ) -> None:
        self._deployment, self._scraper, self._clock = deployment, scraper, clock
        self._stale_after = stale_after
        self._memory = FleetMemory()

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return the fleet as its last answers and the watch of its pods tell it at ``at``."""
        samples = self._scraper.samples(Timestamp(at - self._clock.off))
        fleet, self._memory = assemble(
            self._deployment.roster(),
            samples,
            self._memory,
            at=at,
            stale_after=self._stale_after,
        )
        return fleet

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def reading_of(
    engine: SimulatedEngine, *, at: Timestamp, started_at: Timestamp, loaded_at: Timestamp
) -> Reading:
    """Return what the product reads from this engine's exposition, without writing the text.

    A text for each scrape would cost more than the engine itself. Which series each metric comes
    from, and what a vLLM never exports, is taken from one real text.
    """
    totals = engine.totals
    usage = min(1.0, engine.kv_usage)
    values = {
        Metric.REQUESTS_RUNNING: float(engine.running),
        Metric.REQUESTS_WAITING: float(engine.waiting),
        Metric.REQUESTS_DEFERRED: 0.0,
        Metric.KV_CACHE_USAGE: usage,
        Metric.KV_CACHE_USAGE_PEAK: usage,
        Metric.PROMPT_TOKENS: float(totals.prompt_tokens),
        Metric.CACHED_PROMPT_TOKENS: float(totals.cached_prompt_tokens),
        Metric.GENERATION_TOKENS: float(totals.generation_tokens),
        Metric.REQUESTS_FINISHED: float(totals.requests),
        Metric.REQUESTS_REJECTED: 0.0,
        Metric.REQUEST_SECONDS: totals.request_seconds,
        Metric.QUEUE_SECONDS: totals.queue_seconds,
        Metric.PREEMPTIONS: float(totals.preemptions),
        Metric.ENGINE_STEPS: float(totals.steps),
        Metric.PROCESS_START: float(started_at),
        Metric.MODEL_LOAD_SECONDS: float(loaded_at) - float(started_at),
    }
    ttft, pattern = engine.ttft, pattern_reading()
    ranks = {
        name: Rank(
            {metric: values[metric] for metric in rank.values}, None if rank.ttft is None else ttft
        )
        for name, rank in pattern.ranks.items()
    }
    return replace(pattern, at=at, values=values, ttft=ttft, ranks=ranks)


@cache
def pattern_reading() -> Reading:
    """Return the reading of an idle engine's text: all but its numbers is that of any engine."""
    body = vllm_exposition(
        SimulatedEngine(PRESETS[0]), model=MODEL, started_at=_NOW, loaded_at=_NOW
    )
    reading = read_exposition(body, engine="vllm", model=MODEL, at=_NOW, target=MODEL)
    if isinstance(reading, Gap):
        raise AssertionError(reading.detail)
    return reading
