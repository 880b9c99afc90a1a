"""Scrapes: what they bring is what the product reads from the text, when it can be used."""

import asyncio
import dataclasses

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda, SetClock
from adapter.simulator.deployment import Deployment
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.exposition import vllm_exposition
from adapter.simulator.scraping import MODEL, ScrapedFleet, Scraper, reading_of
from tests.build import T0
from tests.simulator.worlds import ENGINE, a_deployment


def at(seconds: float) -> Timestamp:
    return Timestamp(T0 + seconds)


def a_busy_engine(*, requests: int, prompt: int, cached: int = 0) -> SimulatedEngine:
    engine = SimulatedEngine(ENGINE, started_at=T0)
    for number in range(requests):
        engine.submit(Request(at(0.01 * number), prompt, 40 + number % 90, cached))
    engine.advance(at(7.3))
    return engine


@pytest.mark.parametrize(
    ("requests", "prompt", "cached"), [(0, 1, 0), (3, 900, 0), (400, 3000, 1000), (900, 5000, 0)]
)
def test_a_reading_equals_what_is_read_from_the_rendered_text(requests, prompt, cached):
    """All metrics, ranks, matched names, what is missing and why: nothing is told apart."""
    engine = a_busy_engine(requests=requests, prompt=prompt, cached=cached)
    started_at, loaded_at = at(-300.25), at(-60.125)
    body = vllm_exposition(engine, model=MODEL, started_at=started_at, loaded_at=loaded_at)

    direct = reading_of(engine, at=at(7.3), started_at=started_at, loaded_at=loaded_at)

    read = read_exposition(body, engine="vllm", model=MODEL, at=at(7.3), target="pod")
    assert direct == read


def test_preemptions_and_a_full_cache_are_read_alike():
    """A small cache that overflows: preemptions counted, usage within 0 and 1."""
    small = dataclasses.replace(ENGINE, kv_tokens=6000)
    engine = SimulatedEngine(small, started_at=T0)
    for number in range(30):
        engine.submit(Request(at(0.0), 180, 400 + number))
    engine.advance(at(20))

    direct = reading_of(engine, at=at(20), started_at=T0, loaded_at=T0)

    body = vllm_exposition(engine, model=MODEL, started_at=T0, loaded_at=T0)
    assert direct == read_exposition(body, engine="vllm", model=MODEL, at=at(20), target="pod")
    assert direct.values[Metric.PREEMPTIONS] > 0


class Bench:
    """One deployment, one scraper, one observer; the clock may be off."""

    def __init__(self, *, delay: float = 0.0, first: int = 2) -> None:
        self.agenda = Agenda(T0)
        self.clock = SetClock(self.agenda)
        self.deployment, _ = a_deployment(self.agenda, first=first, load=60)
        self.scraper = Scraper(self.deployment, self.clock, delay=Seconds(delay))
        self.agenda.every(Seconds(5.0), self.scraper.scrape, first=T0)
        self._fleet = observer(self.deployment, self.scraper, self.clock)

    def seen(self, seconds: float) -> FleetSnapshot:
        self.agenda.pass_until(at(seconds))
        return asyncio.run(self._fleet.snapshot(self.clock.now()))


def observer(deployment: Deployment, scraper: Scraper, clock: SetClock) -> ScrapedFleet:
    return ScrapedFleet(deployment, scraper, clock=clock, stale_after=Seconds(120.0))


def test_a_snapshot_has_the_scrape_of_its_own_moment():
    bench = Bench()
    bench.deployment.serving[0].send(Request(at(3), 1000, 2000))

    fleet = bench.seen(5)

    assert [r.sample.at for r in fleet.replicas] == [at(5), at(5)]
    assert [r.value(Metric.REQUESTS_RUNNING) for r in fleet.replicas] == [1.0, 0.0]
    assert (fleet.spec_replicas, fleet.status_replicas) == (2, 2)


def test_two_scrapes_make_a_pair_that_rates_are_taken_of():
    bench = Bench()
    bench.seen(0)

    replica = bench.seen(5).replicas[0]

    assert replica.previous is not None
    assert replica.previous.at == at(0)


def test_a_late_answer_tells_of_the_past_and_is_dated_at_its_arrival():
    """12 s late: at 15 s the newest usable answer is that of 0 s, as fresh as 12 s."""
    bench = Bench(delay=12)
    bench.deployment.serving[0].send(Request(at(1), 1000, 2000))

    early, late = bench.seen(15).replicas[0], bench.seen(17).replicas[0]

    assert early.sample.at == at(12)
    assert early.value(Metric.REQUESTS_RUNNING) == 0.0
    assert late.sample.at == at(17)
    assert late.value(Metric.REQUESTS_RUNNING) == 1.0


def test_before_the_first_answer_nobody_was_scraped():
    bench = Bench(delay=12)

    sample = bench.seen(5).replicas[0].sample

    assert isinstance(sample, Gap)
    assert sample.cause is Cause.NOT_SCRAPED


def test_a_loading_pod_refuses_the_connection():
    bench = Bench()
    bench.deployment.set_replicas(3)

    replica = bench.seen(5).replicas[2]

    assert replica.phase is Phase.LOADING
    assert isinstance(replica.sample, Gap)
    assert replica.sample.cause is Cause.UNREACHABLE


def test_a_broken_scraper_brings_gaps_and_the_pair_is_broken_too():
    bench = Bench()
    bench.seen(5)
    bench.scraper.broken = True
    silent = bench.seen(10).replicas[0].sample
    bench.scraper.broken = False

    back = bench.seen(15).replicas[0]

    assert isinstance(silent, Gap)
    assert silent.cause is Cause.TIMEOUT
    assert isinstance(back.sample, Reading)
    assert back.previous is None


def test_a_clock_that_is_off_dates_answers_and_snapshots_alike():
    bench = Bench()
    bench.clock.off = Seconds(3600.0)

    fleet = bench.seen(5)

    assert fleet.at == at(3605)
    assert fleet.replicas[0].sample.at == at(3605)


def test_observers_remember_for_themselves():
    """One asks every 5 s, one every 15 s: each gets the reading before its own last one."""
    bench = Bench()
    slow = observer(bench.deployment, bench.scraper, bench.clock)
    bench.seen(0)
    asyncio.run(slow.snapshot(at(0)))
    for seconds in (5, 10):
        bench.seen(seconds)

    quick = bench.seen(15).replicas[0]
    other = asyncio.run(slow.snapshot(at(15))).replicas[0]
    asyncio.run(slow.close())

    assert quick.previous is not None
    assert other.previous is not None
    assert (quick.previous.at, other.previous.at) == (at(10), at(0))
