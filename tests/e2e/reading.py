"""One scrape of an engine, read with the product's own parts."""

import asyncio

from adapter.fleet.assemble import Target
from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Reading
from adapter.fleet.units import Seconds
from adapter.sources.clock import SystemClock
from adapter.sources.scrape import Scraper
from tests.e2e.engine import Vllm


async def read(engine: Vllm) -> Reading:
    """Scrape and read once."""
    clock = SystemClock()
    async with Scraper(clock) as scraper:
        body = await scraper.fetch(Target("e", "engine", engine.metrics), Seconds(5.0))
    assert isinstance(body, bytes), body
    found = read_exposition(body, engine="auto", model=None, at=clock.now(), target="engine")
    assert isinstance(found, Reading), found
    return found


async def read_at(engine: Vllm, *, in_flight: int) -> Reading:
    """Read until so many requests run and wait, and return that reading."""
    async with asyncio.timeout(30):
        while _in_flight(reading := await read(engine)) != in_flight:
            await asyncio.sleep(0.1)
    return reading


def gained(metric: Metric, before: Reading, after: Reading) -> float:
    """Return by how much a counter grew."""
    return after.values[metric] - before.values[metric]


def _in_flight(reading: Reading) -> float:
    return reading.values[Metric.REQUESTS_RUNNING] + reading.values[Metric.REQUESTS_WAITING]
