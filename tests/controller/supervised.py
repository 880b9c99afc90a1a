"""A running supervisor over fakes, on a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from adapter.controller.board import Board
from adapter.controller.ports import Sources
from adapter.controller.supervisor import Supervisor, World
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Timestamp
from tests.build import T0, a_fleet, serving
from tests.fakes import FakeFiles, FakeSource, FakeSources, FakeStore, FakeTelemetry


class SharedClock:
    """A clock on which many tasks sleep; a test moves it and the sleepers follow in order."""

    def __init__(self) -> None:
        self.time = T0
        self.sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> Timestamp:
        return Timestamp(self.time)

    async def sleep_until(self, moment: Timestamp) -> None:
        woken = asyncio.Event()
        self.sleepers.append((moment, woken))
        await woken.wait()

    async def pass_by(self, seconds: float) -> None:
        end = self.time + seconds
        await settle()
        while due := sorted(
            (entry for entry in self.sleepers if entry[0] <= end), key=lambda entry: entry[0]
        ):
            moment, woken = due[0]
            self.sleepers.remove(due[0])
            self.time = Timestamp(max(self.time, moment))
            woken.set()
            await settle()
        self.time = Timestamp(end)


async def settle() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


def busy(at: Timestamp) -> FleetSnapshot:
    return a_fleet(*serving(2, at=at, running=16), at=at)


class Supervised:
    def __init__(self, files: FakeFiles, sources: Sources | None = None) -> None:
        self.files, self.clock, self.board = files, SharedClock(), Board()
        self.opening = FakeSources(lambda _: FakeSource(busy))
        self.store, self.telemetry = FakeStore(), FakeTelemetry()
        world = World(
            sources=sources or self.opening,
            store=self.store,
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        self.supervisor = Supervisor(files, world)

    def served(self) -> dict[str, int | None]:
        """Return what each listed policy publishes."""
        return {
            str(listing.key): listing.decision.published if listing.decision else None
            for listing in self.board.all()
        }


@asynccontextmanager
async def supervised(files: FakeFiles, sources: Sources | None = None) -> AsyncIterator[Supervised]:
    running = Supervised(files, sources)
    await running.supervisor.load()
    task = asyncio.create_task(running.supervisor.run())
    await settle()
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.wait({task})
