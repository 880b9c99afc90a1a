"""A live fleet: at each tick every target is asked, and none is waited for too long."""

import asyncio
from typing import Final, Protocol

from adapter.controller.ports import Clock
from adapter.fleet.assemble import FleetMemory, Roster, Target, assemble
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.sources.scrape import SMALL_BODY
from adapter.sources.targets import Fetch, Targets

PROMPT: Final = Seconds(0.15)
"""A tick waits this long for one target; engines need 7 to 50 ms. A later answer is not lost:
it is the target's sample at the next tick."""

PROMPT_AT_FIRST: Final = Seconds(1.0)
"""The same for the very first tick: a decision on half a fleet is worse than a late one."""

AT_ONCE: Final = 64
"""Targets asked at the same time, of those that still may be prompt."""


class Read(Protocol):
    """Turns a body into a reading; see ``fleet.read``."""

    def __call__(self, body: bytes, *, at: Timestamp, target: str) -> Reading | Gap:
        """Return the reading, or why the body is none."""
        ...


class LiveFleet:
    """The fleet behind one policy, as its targets report it.

    A target has at most one question open. One that is late, or timed out last time, holds up
    neither the tick nor the others: it is asked, and its answer is used when it comes. ``prompt``
    is how long a tick waits for one target.
    """

    def __init__(
        self,
        targets: Targets,
        fetch: Fetch,
        read: Read,
        *,
        clock: Clock,
        interval: Seconds,
        stale_after: Seconds,
        prompt: Seconds = PROMPT,
    ) -> None:
        self._targets, self._fetch, self._read, self._clock = targets, fetch, read, clock
        self._interval, self._stale_after, self._prompt = interval, stale_after, prompt
        self._samples: dict[str, Reading | Gap] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._memory = FleetMemory()

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Ask everyone, wait for the prompt, and return what is known at ``at``."""
        roster = await self._targets.roster(at)
        self._forget_all_but(roster)
        await self._ask_all(roster)
        fleet, self._memory = assemble(
            roster, self._samples, self._memory, at=at, stale_after=self._stale_after
        )
        return fleet

    async def close(self) -> None:
        """Drop the questions that are still open."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _forget_all_but(self, roster: Roster) -> None:
        present = {target.uid for target in roster.targets}
        for uid in self._asking.keys() - present:
            self._asking.pop(uid).cancel()
        self._samples = {uid: self._samples[uid] for uid in self._samples if uid in present}

    async def _ask_all(self, roster: Roster) -> None:
        """Open a question to every target that has none, and wait for the prompt ones."""
        loop = asyncio.get_running_loop()
        patience = self._prompt if self._memory.witnessed else PROMPT_AT_FIRST
        turns = []
        for target in roster.targets:
            if not self._free(target):
                continue
            if _hung(self._samples.get(target.uid)):
                asking = self._ask(target)
            else:
                turns.append(turn := loop.create_future())
                asking = self._ask_in_turn(target, turn, patience)
            self._asking[target.uid] = loop.create_task(asking)
        if turns:
            await asyncio.wait(turns, timeout=self._interval / 2)

    def _free(self, target: Target) -> bool:
        """Return whether no question to ``target`` is open; what a closed one died of is raised."""
        task = self._asking.get(target.uid)
        if task is None or not task.done():
            return task is None
        task.result()
        return True

    async def _ask_in_turn(
        self, target: Target, turn: "asyncio.Future[None]", patience: Seconds
    ) -> None:
        """Ask once a slot is free; the turn, and with it the slot, ends when patience does."""
        await self._slots.acquire()
        turn.add_done_callback(lambda _: self._slots.release())
        late = asyncio.get_running_loop().call_later(patience, _end, turn)
        try:
            await self._ask(target)
        finally:
            late.cancel()
            _end(turn)

    async def _ask(self, target: Target) -> None:
        body = await self._fetch(target)
        if isinstance(body, Gap):
            self._samples[target.uid] = body
        elif body is not None:
            at = self._clock.now()
            if len(body) > SMALL_BODY:
                sample = await asyncio.to_thread(self._read, body, at=at, target=target.name)
            else:
                sample = self._read(body, at=at, target=target.name)
            self._samples[target.uid] = sample


def _hung(sample: Reading | Gap | None) -> bool:
    return isinstance(sample, Gap) and sample.cause is Cause.TIMEOUT


def _end(turn: "asyncio.Future[None]") -> None:
    if not turn.done():
        turn.set_result(None)
