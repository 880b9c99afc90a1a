import time

from adapter.fleet.units import Timestamp
from adapter.sources.clock import SystemClock


def test_it_is_now():
    """Within a minute of what the machine says: the epoch and the unit are right."""
    assert abs(SystemClock().now() - time.time()) < 60


async def test_a_moment_to_come_is_waited_for():
    clock = SystemClock()
    began = time.monotonic()

    await clock.sleep_until(Timestamp(clock.now() + 0.05))

    assert time.monotonic() - began > 0.04


async def test_a_moment_that_has_passed_is_not_waited_for():
    """It ends at all: the clock is an hour past it."""
    clock = SystemClock()

    await clock.sleep_until(Timestamp(clock.now() - 3600))
