"""Virtual time that several tasks share: it stands still while any of them is at work."""

import asyncio
import contextlib
import itertools
from dataclasses import dataclass

from adapter.fleet.units import Seconds, Timestamp


@dataclass(frozen=True, slots=True)
class _Sleeper:
    task: asyncio.Task[object]
    moment: Timestamp
    turn: int
    """Who lay down first wakes first: equal moments have one order, the same in every run."""

    alarm: asyncio.Future[None]


class SharedClock:
    """A ``Clock`` that moves only while every task that sleeps on it is asleep.

    A slow machine therefore makes time lag behind the wall, and never makes a scrape look late:
    what happens, and in which order, depends on the sleepers alone and not on how fast they run.
    A task joins by its first ``sleep_until`` and leaves by ending.
    """

    def __init__(self, start: Timestamp, *, speed: float) -> None:
        """Begin at ``start``; ``speed`` is virtual seconds per second, ``inf`` does not wait."""
        self._start = start
        self._now = start
        self._speed = speed
        self._turns = itertools.count()
        self._members: set[asyncio.Task[object]] = set()
        self._asleep: dict[asyncio.Task[object], _Sleeper] = {}
        self._news = asyncio.Event()

    @property
    def elapsed(self) -> Seconds:
        """Return how far time has come since the start."""
        return Seconds(self._now - self._start)

    def now(self) -> Timestamp:
        """Return the current time."""
        return self._now

    async def sleep_until(self, moment: Timestamp) -> None:
        """Return once the clock reads ``moment`` or later."""
        if moment <= self._now:
            return
        task = _current_task()
        self._join(task)
        alarm = asyncio.get_running_loop().create_future()
        self._asleep[task] = _Sleeper(task, moment, next(self._turns), alarm)
        self._news.set()
        try:
            await alarm
        finally:
            self._asleep.pop(task, None)
            self._news.set()

    async def run(self) -> None:
        """Move time until cancelled, one sleeper after the other, no faster than the speed."""
        wall = asyncio.get_running_loop().time
        begun = wall()
        while True:
            first = self._first()
            if first is None:
                await self._change(None)
                continue
            left = begun + (first.moment - self._start) / self._speed - wall()
            if left > 0:
                await self._change(left)
            else:
                self._wake(first)

    async def _change(self, timeout: float | None) -> None:
        """Wait until someone lies down, wakes or leaves, but no longer than ``timeout``."""
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._news.wait()

    def _first(self) -> _Sleeper | None:
        """Return who wakes next; None while anybody is awake."""
        if not self._asleep or len(self._asleep) < len(self._members):
            return None
        return min(self._asleep.values(), key=lambda sleeper: (sleeper.moment, sleeper.turn))

    def _wake(self, sleeper: _Sleeper) -> None:
        self._now = sleeper.moment
        del self._asleep[sleeper.task]
        if not sleeper.alarm.done():
            sleeper.alarm.set_result(None)

    def _join(self, task: asyncio.Task[object]) -> None:
        if task not in self._members:
            self._members.add(task)
            task.add_done_callback(self._leave)

    def _leave(self, task: asyncio.Task[object]) -> None:
        self._members.discard(task)
        self._news.set()


def _current_task() -> asyncio.Task[object]:
    task = asyncio.current_task()
    if task is None:
        raise AssertionError("a coroutine always runs inside a task")
    return task
