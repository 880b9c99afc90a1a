"""Fake ports for every room's tests: small, documented, no patching."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from adapter.controller.errors import SourceError
from adapter.fleet.assemble import Roster, Target
from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.state import ScalingState
from tests.build import T0


class FakeClock:
    """A clock that moves only when somebody sleeps, and ends the sleeper at ``stop_at``.

    ``jumps`` sets the clock by so many seconds during the n-th sleep (0 is the first).
    """

    def __init__(
        self,
        *,
        start: float = T0,
        stop_at: float = float("inf"),
        jumps: dict[int, float] | None = None,
    ) -> None:
        self.time, self._stop_at, self._jumps = start, stop_at, jumps or {}
        self.slept: list[float] = []

    def now(self) -> Timestamp:
        return Timestamp(self.time)

    def pass_by(self, seconds: float) -> None:
        """Let time pass while the code under test is busy."""
        self.time += seconds

    async def sleep_until(self, moment: Timestamp) -> None:
        if moment >= self._stop_at:
            raise asyncio.CancelledError
        self.slept.append(max(0.0, moment - self.time))
        self.time = max(self.time, moment) + self._jumps.get(len(self.slept) - 1, 0.0)
        await asyncio.sleep(0)


class FakeSource:
    """Answers with the given snapshots in turn, then with the last one for ever.

    A snapshot may be an exception, which is raised, or a function of the time.
    """

    def __init__(
        self, *snapshots: FleetSnapshot | Exception | Callable[[Timestamp], FleetSnapshot]
    ) -> None:
        self._snapshots = list(snapshots)
        self.asked: list[float] = []
        self.closed = False

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        self.asked.append(at)
        index = min(len(self.asked), len(self._snapshots)) - 1
        found = self._snapshots[index]
        if isinstance(found, Exception):
            raise found
        return found(at) if callable(found) else found

    async def close(self) -> None:
        self.closed = True


class FakeSources:
    """Opens the source that ``make`` returns, and remembers for which policies."""

    def __init__(self, make: Callable[[Policy], FakeSource]) -> None:
        self._make = make
        self.opened: list[tuple[Policy, FakeSource]] = []

    def open(self, policy: Policy) -> FakeSource:
        source = self._make(policy)
        self.opened.append((policy, source))
        return source


class FakeStore:
    """Keeps states in memory; ``broken`` makes every save fail, as a full disk would."""

    def __init__(self) -> None:
        self.states: dict[str, ScalingState] = {}
        self.broken = False

    async def load(self, policy: str) -> ScalingState:
        return self.states.get(policy, ScalingState())

    async def save(self, policy: str, state: ScalingState) -> None:
        self.states[policy] = state
        if self.broken:
            raise SourceError(f"state of policy {policy}: disk full")


class FakeFiles:
    """Policy files that a test writes; ``broken`` makes the directory unreadable."""

    def __init__(self, **texts: str) -> None:
        self.texts = {f"{name}.yaml": text for name, text in texts.items()}
        self.broken = False
        self.reads = 0

    async def read(self) -> dict[str, bytes]:
        self.reads += 1
        if self.broken:
            raise SourceError("policies: /policies cannot be read (Permission denied)")
        return {name: text.encode() for name, text in self.texts.items()}


@dataclass
class FakeTelemetry:
    """Counts what it is told."""

    ticks: Counter[str] = field(default_factory=Counter)
    gaps: Counter[tuple[str, Cause]] = field(default_factory=Counter)
    unsaved_ticks: Counter[str] = field(default_factory=Counter)
    crashes: Counter[str] = field(default_factory=Counter)
    reloads: list[int] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def ticked(self, policy: str, seconds: Seconds) -> None:
        assert seconds >= 0
        self.ticks[policy] += 1

    def gap(self, policy: str, cause: Cause) -> None:
        self.gaps[policy, cause] += 1

    def unsaved(self, policy: str) -> None:
        self.unsaved_ticks[policy] += 1

    def crashed(self, policy: str) -> None:
        self.crashes[policy] += 1

    def reloaded(self, *, broken: int) -> None:
        self.reloads.append(broken)

    def forget(self, policy: str) -> None:
        self.forgotten.append(policy)


class FakeTargets:
    """A roster that a test changes."""

    def __init__(self, targets: Iterable[Target] = ()) -> None:
        self.targets = tuple(targets)

    async def roster(self, at: Timestamp) -> Roster:
        return Roster(self.targets)


def a_target(uid: str, **facts: object) -> Target:
    """Return a target that nobody vouches for, unless ``facts`` say otherwise."""
    return Target(uid=uid, name=uid, url=uid, **facts)  # type: ignore[arg-type]


async def until(true: Callable[[], bool | Awaitable[bool]], *, steps: int = 1000) -> None:
    """Let the other tasks run until ``true``; fail after so many turns of the event loop."""
    for _ in range(steps):
        found = true()
        if found is True or (not isinstance(found, bool) and await found):
            return
        await asyncio.sleep(0)
    raise AssertionError("it did not become true")
