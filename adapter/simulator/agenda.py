"""Virtual time: what is due when, in one order that is the same in every run."""

import heapq
import itertools
import math
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from adapter.fleet.units import Seconds, Timestamp

Act = Callable[[Timestamp], None]
"""What happens at a moment; it is told the moment."""

Result = TypeVar("Result")


class Agenda:
    """A clock that jumps from one due act to the next.

    At equal moments the one that was put down first goes first, and what repeats keeps its place:
    a scrape that was registered before a tick always precedes it, whatever their periods.
    """

    def __init__(self, start: Timestamp) -> None:
        self._now = start
        self._turns = itertools.count()
        self._due: list[tuple[Timestamp, int, Act]] = []

    @property
    def next(self) -> float:
        """Return when the next act is due; infinite when none is."""
        return self._due[0][0] if self._due else math.inf

    def now(self) -> Timestamp:
        """Return the moment of the present act, or of the last one."""
        return self._now

    def at(self, moment: Timestamp, act: Act) -> None:
        """Do ``act`` once, at ``moment``, or next if that is past."""
        heapq.heappush(self._due, (moment, next(self._turns), act))

    def every(self, period: Seconds, act: Act, *, first: Timestamp) -> None:
        """Do ``act`` at ``first`` and then for ever, on a grid that does not drift."""
        turn = next(self._turns)
        rounds = itertools.count(1)

        def again(moment: Timestamp) -> None:
            later = Timestamp(first + next(rounds) * period)
            heapq.heappush(self._due, (later, turn, again))
            act(moment)

        heapq.heappush(self._due, (first, turn, again))

    def step(self) -> None:
        """Do what is due next."""
        moment, _, act = heapq.heappop(self._due)
        self._now = max(self._now, moment)
        act(self._now)

    def pass_until(self, moment: Timestamp) -> None:
        """Do all that is due by ``moment``, and stand there."""
        while self.next <= moment:
            self.step()
        self._now = max(self._now, moment)


class SetClock:
    """The adapter's own clock: the agenda's time, and by how much it is wrong."""

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.off = Seconds(0.0)
        """How far it is ahead; a clock that is set jumps."""

    def now(self) -> Timestamp:
        """Return the time that the adapter reads."""
        return Timestamp(self._agenda.now() + self.off)

    async def sleep_until(self, moment: Timestamp) -> None:
        """Let time pass until ``moment``, with all that is due meanwhile."""
        self._agenda.pass_until(Timestamp(moment - self.off))


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Return what ``coroutine`` returns: on virtual time nobody waits for anybody."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    coroutine.close()
    raise AssertionError("a coroutine waited, but nothing in a simulation takes real time")
