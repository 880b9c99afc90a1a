import asyncio
import contextlib
import math
from collections.abc import AsyncIterator

import pytest

from adapter.fleet.units import Timestamp
from adapter.simulator.clock import SharedClock

START = Timestamp(1000.0)


@contextlib.asynccontextmanager
async def running(clock: SharedClock) -> AsyncIterator[SharedClock]:
    pace = asyncio.create_task(clock.run())
    try:
        yield clock
    finally:
        pace.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await pace


@pytest.fixture
async def clock():
    async with running(SharedClock(START, speed=math.inf)) as clock:
        yield clock


async def test_an_hour_passes_at_once_when_nobody_works(clock):
    """Infinite speed: 3,600 virtual seconds take no wall time worth naming."""
    await clock.sleep_until(Timestamp(START + 3600))

    assert clock.now() == START + 3600
    assert clock.elapsed == 3600


async def test_a_moment_that_is_past_does_not_wait(clock):
    await clock.sleep_until(Timestamp(START - 5))

    assert clock.now() == START


async def test_time_stands_still_while_a_member_works(clock):
    """One sleeper every second, one that works for a while at second 3: both agree on the time."""
    heard = []

    async def works_at_three() -> None:
        await clock.sleep_until(Timestamp(START + 3))
        for _ in range(50):
            await asyncio.sleep(0)
        heard.append(("worked", clock.elapsed))

    async def ticks() -> None:
        for second in range(1, 6):
            await clock.sleep_until(Timestamp(START + second))
            heard.append(("tick", clock.elapsed))

    await asyncio.gather(ticks(), works_at_three())

    assert heard == [
        ("tick", 1),
        ("tick", 2),
        ("worked", 3),
        ("tick", 3),
        ("tick", 4),
        ("tick", 5),
    ]


async def test_equal_moments_wake_in_the_order_of_lying_down(clock):
    heard = []

    async def sleeper(name: str) -> None:
        await clock.sleep_until(Timestamp(START + 1))
        heard.append(name)

    await asyncio.gather(*(sleeper(name) for name in "abc"))

    assert heard == ["a", "b", "c"]


async def test_a_member_that_ends_no_longer_stops_time(clock):
    async def short() -> None:
        await clock.sleep_until(Timestamp(START + 1))

    await asyncio.create_task(short())
    await clock.sleep_until(Timestamp(START + 2))

    assert clock.elapsed == 2


async def test_a_sleeper_that_is_cancelled_no_longer_stops_time(clock):
    sleeper = asyncio.create_task(clock.sleep_until(Timestamp(START + 1)))
    await asyncio.sleep(0)

    sleeper.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await sleeper
    async with asyncio.timeout(5):
        await clock.sleep_until(Timestamp(START + 5))

    assert clock.elapsed == 5


async def test_cancelling_a_sleeper_in_the_moment_of_its_alarm_is_harmless():
    """The alarm is cancelled but its task has not run yet when the clock comes to it."""
    clock = SharedClock(START, speed=math.inf)
    sleeper = asyncio.create_task(clock.sleep_until(Timestamp(START + 1)))
    await asyncio.sleep(0)
    async with running(clock):
        await asyncio.sleep(0)
        sleeper.cancel()

        async with asyncio.timeout(5):
            await clock.sleep_until(Timestamp(START + 2))

    assert sleeper.cancelled()
    assert clock.elapsed == 2


async def test_someone_who_joins_during_the_wait_is_not_overslept():
    """The pace waits for second 1,000; a newcomer wants second 1 and gets it first."""
    async with running(SharedClock(START, speed=50.0)) as clock:
        late = asyncio.create_task(clock.sleep_until(Timestamp(START + 1000)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)

        late_first = asyncio.wait(
            {late, asyncio.create_task(clock.sleep_until(Timestamp(START + 1)))},
            return_when=asyncio.FIRST_COMPLETED,
        )
        done, _ = await asyncio.wait_for(late_first, timeout=5)

        assert late not in done
        assert clock.elapsed == 1
        late.cancel()


async def test_a_finite_speed_waits_for_the_wall():
    """40 virtual seconds at 400 times the speed take at least 0.1 s."""
    wall = asyncio.get_running_loop().time
    async with running(SharedClock(START, speed=400.0)) as clock:
        begun = wall()

        await clock.sleep_until(Timestamp(START + 40))

    assert wall() - begun >= 0.099
