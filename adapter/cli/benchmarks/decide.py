"""How long one decision takes: a whole tick of the loop, of which only the scrape is left out."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from adapter.cli.benchmarks.engine_text import engine_text
from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.stopwatch import cpu_seconds
from adapter.controller.board import Board
from adapter.controller.loop import Loop
from adapter.fleet.assemble import FleetMemory, Roster, Target, assemble
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.serving.telemetry import Meters
from adapter.sources.clock import SystemClock
from adapter.sources.state_file import MemoryStates

SIZES: Final = (7, 100, 1000)
"""Replicas: a small pool, a large one, and more than anyone runs of one model."""

ALIKE: Final = 10
"""So many different engines; the others are like them, because reading 1,000 takes a while."""

ROUNDS: Final = 24
"""Ticks with readings of their own: the two minutes that the TTFT window looks back on."""

INTERVAL: Final = Seconds(5.0)
BEGIN: Final = Timestamp(1.8e9)


def measure(sizes: Sequence[int] = SIZES, *, within: float = 1.0) -> tuple[Figure, ...]:
    """Return microseconds of CPU per tick for each fleet size, measured for ``within`` s each."""
    rounds = [_readings(number) for number in range(ROUNDS)]
    return tuple(
        Figure(f"tickOf{size}ReplicasMicroseconds", 1e6 * _tick(size, rounds, within=within))
        for size in sizes
    )


def _readings(number: int) -> tuple[Reading, ...]:
    """Return what the engines say in the ``number``-th round."""
    at = Timestamp(BEGIN + number * INTERVAL)
    found = [
        read_exposition(
            engine_text("llama-70b", engine=engine, scrape=number),
            engine="vllm",
            model=None,
            at=at,
            target=f"engine {engine}",
        )
        for engine in range(ALIKE)
    ]
    return tuple(reading for reading in found if not isinstance(reading, Gap))


def _tick(size: int, rounds: Sequence[tuple[Reading, ...]], *, within: float) -> float:
    """Return the CPU seconds of one tick, of as many whole passes over ``rounds`` as fit."""
    fleets = _fleets(size, rounds)
    clock, board = SystemClock(), Board()
    meters = Meters(board, clock=clock)

    async def all_ticks() -> None:
        policy = _policy(size)
        loop = Loop(
            board.list_policy(policy, {}),
            policy.spec,
            interval=INTERVAL,
            source=_Recorded(fleets),
            store=MemoryStates(),
            board=board,
            clock=clock,
            telemetry=meters,
        )
        for at in fleets:
            await loop.tick(at)

    with asyncio.Runner() as runner:
        return cpu_seconds(lambda: runner.run(all_ticks()), within=within) / len(fleets)


def _fleets(size: int, rounds: Sequence[tuple[Reading, ...]]) -> dict[Timestamp, FleetSnapshot]:
    """Return a snapshot of ``size`` replicas for each round, by its time."""
    targets = [Target(f"{number:04}", f"engine-{number:04}", "") for number in range(size)]
    roster, memory = Roster(tuple(targets)), FleetMemory()
    fleets = {}
    for readings in rounds:
        at = readings[0].at
        samples = {
            target.uid: readings[number % len(readings)] for number, target in enumerate(targets)
        }
        fleet, memory = assemble(roster, samples, memory, at=at, stale_after=Seconds(15.0))
        fleets[at] = fleet
    return fleets


class _Recorded:
    """A source that has read everything already."""

    def __init__(self, fleets: Mapping[Timestamp, FleetSnapshot]) -> None:
        self._fleets = fleets

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        return self._fleets[at]

    async def close(self) -> None:
        pass


def _policy(size: int) -> Policy:
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": "bench"},
            "spec": {
                "source": {"static": {"urls": ["http://127.0.0.1:1/"], "interval": "5s"}},
                "replicas": {"min": 1, "max": 2 * size},
            },
        }
    )
