"""Several policies over one engine, and what it sees of them."""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from adapter.fleet.assemble import Target
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Seconds
from adapter.sources.scrape import Scraper
from adapter.sources.sharing import SharedScrapes
from tests.fakes import FakeClock, a_target
from tests.sources.servers import serving

LONG = Seconds(5)


class Engine:
    """Answers when the test lets it, and counts who asks."""

    def __init__(self) -> None:
        self.asked = self.gone = 0
        self.answers = asyncio.Event()

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.asked += 1
        waits, leaves = (asyncio.ensure_future(c) for c in (self.answers.wait(), reader.read()))
        await asyncio.wait({waits, leaves}, return_when=asyncio.FIRST_COMPLETED)
        self.gone += leaves.done()
        for task in (waits, leaves):
            task.cancel()
        body = b"%d" % self.asked
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n" + body)
        await writer.drain()

    def asks(self, count: int) -> Callable[[], bool]:
        return lambda: self.asked == count


@pytest.fixture
async def shared() -> AsyncIterator[SharedScrapes]:
    async with Scraper(FakeClock()) as scraper:
        yield SharedScrapes(scraper)


def asking(
    shared: SharedScrapes, target: Target, timeout: Seconds = LONG
) -> asyncio.Task[bytes | Gap]:
    return asyncio.create_task(shared.fetch(target, timeout))


async def eventually(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.001)


async def test_policies_that_ask_one_engine_at_one_moment_cost_it_one_scrape(
    shared: SharedScrapes,
):
    engine = Engine()
    async with serving(engine) as url:
        questions = [asking(shared, a_target(url)) for _ in range(3)]
        await eventually(engine.asks(1))
        engine.answers.set()

        assert [await question for question in questions] == [b"1", b"1", b"1"]
        assert engine.asked == 1


async def test_an_answer_from_before_is_not_used_again(shared: SharedScrapes):
    """The next policy's tick must see what the engine says then, not what it said."""
    engine = Engine()
    engine.answers.set()
    async with serving(engine) as url:
        first = await shared.fetch(a_target(url), LONG)
        second = await shared.fetch(a_target(url), LONG)

    assert (first, second) == (b"1", b"2")


async def test_who_leaves_takes_nobody_along_and_the_last_one_closes_the_door(
    shared: SharedScrapes,
):
    """A policy that is withdrawn cancels its questions."""
    engine = Engine()
    async with serving(engine) as url:
        leaving, staying = (asking(shared, a_target(url)) for _ in range(2))
        await eventually(engine.asks(1))
        leaving.cancel()
        await asyncio.wait({leaving})
        engine.answers.set()
        answer = await staying

        engine.answers.clear()
        alone = asking(shared, a_target(url))
        await eventually(engine.asks(2))
        alone.cancel()
        await eventually(lambda: engine.gone == 1)

    assert (answer, engine.asked) == (b"1", 2)
    assert alone.cancelled()


async def test_a_question_after_one_that_was_dropped_is_a_new_one(shared: SharedScrapes):
    engine = Engine()
    async with serving(engine) as url:
        dropped = asking(shared, a_target(url))
        await eventually(engine.asks(1))
        dropped.cancel()
        await asyncio.wait({dropped})
        engine.answers.set()

        assert await shared.fetch(a_target(url), LONG) == b"2"


async def test_another_timeout_or_another_address_is_another_question(shared: SharedScrapes):
    """Credentials are part of the address: nobody is answered what was told to somebody else."""
    engine = Engine()
    async with serving(engine) as url:
        other = url.replace("http://", "http://reader:s3cret@")
        questions = [
            asking(shared, a_target(url)),
            asking(shared, a_target(url), Seconds(4)),
            asking(shared, Target(uid=url, name=url, url=other)),
        ]
        await eventually(engine.asks(3))
        engine.answers.set()
        await asyncio.gather(*questions)

    assert engine.asked == 3


async def test_all_are_told_why_there_is_no_answer(shared: SharedScrapes):
    target = a_target("http://127.0.0.1:1/metrics")

    gaps = await asyncio.gather(*(shared.fetch(target, LONG) for _ in range(2)))

    assert [gap.cause for gap in gaps if isinstance(gap, Gap)] == [Cause.UNREACHABLE] * 2
