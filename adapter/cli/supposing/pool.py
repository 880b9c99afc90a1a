"""The supposed pool on supposed time, decided on by the loop that production runs."""

import asyncio
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from adapter.cli.supposing.numbers import Supposed
from adapter.controller.board import Board
from adapter.controller.loop import Loop
from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision
from adapter.scaling.state import Carried, ScalingState

_LONG_AGO: Final = Seconds(86_400.0)
"""How long the pool has run: a whole scale-down delay without memory is another question."""

_OBSERVED: Final = 100.0
"""First tokens of a replica in one interval: enough for any quantile to be one of them."""

_BEYOND: Final = 2.0
"""What the slowest first tokens take, over the supposed quantile."""

_log = logging.getLogger("leadtime")


def decide(policy: Policy, supposed: Supposed, *, at: Timestamp) -> Decision:
    """Return what is decided at ``at`` on numbers that have stood for a while.

    What is published stays as supposed meanwhile: the question is what the next tick says.
    """
    spec, interval = policy.spec, policy.spec.source.interval
    ticks = max(2, math.ceil(supposed.stood_for / interval))
    began = Timestamp(at - ticks * interval)
    board, clock = Board(), _Clock(began)
    loop = Loop(
        board.list_policy(policy, {}),
        spec,
        interval=interval,
        source=_Pool(policy, supposed, began=began),
        store=_Pinned(supposed.published, began),
        board=board,
        clock=clock,
        telemetry=_Uncounted(),
    )

    async def all_ticks() -> Decision:
        for number in range(ticks):
            clock.time = Timestamp(began + number * interval)
            await loop.tick(clock.time)
        clock.time = at
        return await loop.tick(at)

    with _quiet(), asyncio.Runner() as runner:
        return runner.run(all_ticks())


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the loop's log to itself: the answer says all of it."""
    level = _log.level
    _log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        _log.setLevel(level)


class _Pool:
    """A source of one fleet whose gauges stand still while its engines work."""

    def __init__(self, policy: Policy, supposed: Supposed, *, began: Timestamp) -> None:
        self._supposed, self._began = supposed, began
        self._interval = policy.spec.source.interval
        engine = policy.spec.engine
        self._engine = "vllm" if engine == "auto" else str(engine)
        watched = policy.spec.signals.ttft
        self._quantile = watched.quantile if watched else 0.5
        self._load_time = policy.spec.load_time.default

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return the fleet at ``at``; what loads has just begun to."""
        began = Timestamp(self._began - _LONG_AGO)
        serving = [
            Replica(
                f"serving-{place:04}",
                f"serving {place + 1}",
                Phase.SERVING,
                self._reading(place, at),
                previous=self._reading(place, Timestamp(at - self._interval)),
                since=began,
            )
            for place in range(self._supposed.serving)
        ]
        asked = Gap(at, Cause.NOT_SCRAPED, "still loading")
        since = Timestamp(max(self._began, at - self._load_time))
        loading = [
            Replica(
                f"loading-{place:04}", f"loading {place + 1}", Phase.LOADING, asked, None, since
            )
            for place in range(self._supposed.loading)
        ]
        current = self._supposed.current
        return FleetSnapshot.of(
            at, (*serving, *loading), spec_replicas=current, status_replicas=current
        )

    async def close(self) -> None:
        """Hold nothing."""

    def _reading(self, place: int, at: Timestamp) -> Reading:
        """Return the gauges as supposed, and a heartbeat: this engine is busy, not stalled."""
        given = {
            Metric.REQUESTS_RUNNING: self._supposed.running,
            Metric.REQUESTS_WAITING: self._supposed.waiting,
            Metric.KV_CACHE_USAGE: self._supposed.kv,
        }
        values = {metric: each[place] for metric, each in given.items() if each is not None}
        missing = {str(m): "not among the numbers given" for m, each in given.items() if not each}
        ticks = (at - self._began) / self._interval + _LONG_AGO
        values[Metric.ENGINE_STEPS] = ticks
        values[Metric.PREEMPTIONS] = 0.0
        ttft = self._first_tokens(ticks)
        return Reading(
            at,
            self._engine,
            None,
            values,
            ttft=ttft,
            ranks={"": Rank(values, ttft)},
            missing=missing,
            unserved=frozenset() if ttft else frozenset({"ttft"}),
        )

    def _first_tokens(self, ticks: float) -> Histogram | None:
        """Return a histogram whose deltas have the supposed time at the watched quantile."""
        seconds = self._supposed.ttft
        if seconds is None:
            return None
        total = _OBSERVED * round(ticks)
        counts = (self._quantile * total, total, total)
        return Histogram((seconds, _BEYOND * seconds, math.inf), counts, seconds * total)


class _Pinned:
    """A memory of the windows that pass, while what is published stays."""

    def __init__(self, published: int, began: Timestamp) -> None:
        self._published = published
        self._state = ScalingState(
            started_at=Timestamp(began - _LONG_AGO),
            good_at=began,
            recommendations=((began, published),),
        )

    async def load(self, policy: str) -> ScalingState:
        """Return the memory with the count that is supposed to be published, and no lessons.

        Numbers that were made up teach nothing about what a replica carries.
        """
        del policy
        return replace(
            self._state, published=self._published, in_flight_peak=None, carried=Carried()
        )

    async def save(self, policy: str, state: ScalingState) -> None:
        """Keep the memory for the next tick."""
        del policy
        self._state = state


class _Clock:
    """Reads the moment that is being played."""

    def __init__(self, time: Timestamp) -> None:
        self.time = time

    def now(self) -> Timestamp:
        """Return the moment that is being played."""
        return self.time

    async def sleep_until(self, moment: Timestamp) -> None:
        """Go there at once."""
        self.time = moment


class _Uncounted:
    """Counts nothing: a question leaves no trace."""

    def ticked(self, policy: str, seconds: Seconds) -> None:
        """Count nothing."""

    def gap(self, policy: str, cause: Cause) -> None:
        """Count nothing."""

    def unsaved(self, policy: str) -> None:
        """Count nothing."""

    def crashed(self, policy: str) -> None:
        """Count nothing."""

    def reloaded(self, *, broken: int) -> None:
        """Count nothing."""

    def forget(self, policy: str) -> None:
        """Count nothing."""
