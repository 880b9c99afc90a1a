"""Virtual time: order at equal moments, grids without drift, and a clock that may be wrong."""

import asyncio
import math

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda, SetClock, at_once
from tests.build import T0


def told(agenda: Agenda, name: str, log: list[tuple[str, float]]):
    return lambda at: log.append((name, at - T0))


def test_what_was_put_down_first_goes_first_at_equal_moments():
    agenda, log = Agenda(T0), []
    agenda.at(Timestamp(T0 + 5), told(agenda, "one", log))
    agenda.at(Timestamp(T0 + 2), told(agenda, "early", log))
    agenda.at(Timestamp(T0 + 5), told(agenda, "two", log))

    agenda.pass_until(Timestamp(T0 + 10))

    assert log == [("early", 2.0), ("one", 5.0), ("two", 5.0)]
    assert agenda.now() == T0 + 10


def test_a_scrape_precedes_a_tick_whatever_their_periods():
    """Registered first, done first: at 15 s and 30 s too, though the scrape was renewed later."""
    agenda, log = Agenda(T0), []
    agenda.every(Seconds(5.0), told(agenda, "scrape", log), first=T0)
    agenda.every(Seconds(15.0), told(agenda, "tick", log), first=T0)

    agenda.pass_until(Timestamp(T0 + 30))

    assert [name for name, at in log if at in (0.0, 15.0, 30.0)] == ["scrape", "tick"] * 3


def test_a_grid_does_not_drift():
    """0.1 s a million times is 100,000 s to the last bit, not the sum of a million roundings."""
    agenda, last = Agenda(Timestamp(0.0)), []
    agenda.every(Seconds(0.1), lambda at: last.__setitem__(slice(None), [at]), first=Timestamp(0.0))

    agenda.pass_until(Timestamp(10_000.0))

    assert last == [10_000.0]


def test_an_act_put_down_late_happens_now_and_does_not_turn_time_back():
    agenda, log = Agenda(T0), []
    agenda.pass_until(Timestamp(T0 + 10))
    agenda.at(Timestamp(T0 + 3), told(agenda, "late", log))

    agenda.step()

    assert log == [("late", 10.0)]


def test_an_empty_agenda_has_nothing_next():
    assert Agenda(T0).next == math.inf


def test_the_adapters_clock_may_be_wrong():
    agenda = Agenda(T0)
    clock = SetClock(agenda)
    clock.off = Seconds(-3600.0)

    asyncio.run(clock.sleep_until(Timestamp(T0 - 3590)))

    assert clock.now() == T0 - 3590
    assert agenda.now() == T0 + 10


async def _seven() -> int:
    return 7


def test_a_coroutine_that_waits_for_nothing_is_run_at_once():
    assert at_once(_seven()) == 7


def test_a_coroutine_that_waits_is_a_bug():
    with pytest.raises(AssertionError, match="waited"):
        at_once(asyncio.sleep(0))
