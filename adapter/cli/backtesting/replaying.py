"""A recording given to the loop once more: whether every decision is the same to the byte."""

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from adapter.cli.backtesting.inputs import BacktestUsageError, policy_of
from adapter.controller.board import key_of
from adapter.controller.loop import Loop
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Decision
from adapter.simulator.agenda import at_once
from adapter.simulator.autoscaler import adapter_of
from adapter.sources.recording import (
    Session,
    Tick,
    dump_decision,
    load_decision,
    read_recording,
)

RECORDED = (
    "Recorded, not played: fleet and queues are those that the recorded decisions made; "
    "after the first one that differs they are counterfactual."
)
"""Said in every form of output, as its like of a played load."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A decision as it was recorded, and as it is made now."""

    at: Timestamp
    recorded: int
    """The desired count."""

    now: int
    recorded_because: str
    now_because: str
    equal: bool
    """To the byte: counts, steps, words and all."""


@dataclass(frozen=True, slots=True)
class Replay:
    """A recording beside what the policy makes of it now."""

    policy: str
    name: str
    sessions: int
    pairs: tuple[Pair, ...]

    @property
    def differing(self) -> tuple[Pair, ...]:
        """Return the decisions that are not equal to the byte."""
        return tuple(pair for pair in self.pairs if not pair.equal)

    @property
    def miscounted(self) -> tuple[Pair, ...]:
        """Return the decisions with another desired count."""
        return tuple(pair for pair in self.pairs if pair.recorded != pair.now)

    @property
    def hours(self) -> tuple[float, float]:
        """Return the replica-hours that were desired, recorded and now, while it was recorded."""
        recorded = now = 0.0
        for pair, seconds in zip(self.pairs, _lasting(self.pairs), strict=True):
            recorded += pair.recorded * seconds
            now += pair.now * seconds
        return recorded / 3600, now / 3600

    @property
    def stretches(self) -> tuple[tuple[Pair, ...], ...]:
        """Return the runs of decisions with one other count for one recorded count."""
        runs = groupby(self.pairs, key=lambda pair: (pair.recorded, pair.now))
        return tuple(tuple(run) for (recorded, now), run in runs if recorded != now)


def replay(arguments: argparse.Namespace) -> Replay:
    """Return what the policy decides on a recording.

    Raises:
        AdapterError: policy or recording cannot be read, or do not belong together.
    """
    policy, path = policy_of(arguments), Path(arguments.recording)
    name = str(key_of(policy))
    sessions, pairs = 0, []
    tape = _Tape()
    loop: Loop | None = None
    for found in read_recording(path):
        if isinstance(found, Session):
            _insist(found, name, path)
            sessions += 1
            loop, _ = adapter_of(policy, tape, tape, state=found.state)
        elif loop is not None:
            pairs.append(_pair(loop, tape, found))
    if not pairs:
        raise BacktestUsageError(f"{path}: no decision in it: record for longer")
    return Replay(name, path.name, sessions, tuple(pairs))


def _insist(session: Session, name: str, path: Path) -> None:
    if session.policy != name:
        raise BacktestUsageError(
            f"{path}: recorded of policy {session.policy}, and the file given is {name}: "
            f"give the policy that was recorded, or its next version under the same name"
        )


def _pair(loop: Loop, tape: "_Tape", tick: Tick) -> Pair:
    tape.fleet = tick.fleet
    decision = at_once(loop.tick(tick.fleet.at))
    data = dump_decision(decision)
    if data == tick.decision:
        return _same(decision)
    recorded = load_decision(tick.decision)
    return Pair(
        at=tick.fleet.at,
        recorded=recorded.desired,
        now=decision.desired,
        recorded_because=_because(recorded),
        now_because=_because(decision),
        equal=False,
    )


def _same(decision: Decision) -> Pair:
    because = _because(decision)
    return Pair(decision.at, decision.desired, decision.desired, because, because, equal=True)


def _because(decision: Decision) -> str:
    return decision.refusal or decision.because


def _lasting(pairs: Sequence[Pair]) -> Iterator[Seconds]:
    """Yield how long each decision stood: to the next one, but through no pause of the recorder."""
    steps = [later.at - one.at for one, later in pairwise(pairs)]
    usual = sorted(steps)[len(steps) // 2] if steps else math.nan
    for step in steps:
        yield Seconds(min(step, 3 * usual))
    yield Seconds(usual if steps else 0.0)


class _Tape:
    """What is on the recording now, as a source and as its clock."""

    fleet: FleetSnapshot

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return the recorded fleet."""
        del at
        return self.fleet

    async def close(self) -> None:
        """Do nothing."""

    def now(self) -> Timestamp:
        """Return the moment of the recorded fleet."""
        return self.fleet.at

    async def sleep_until(self, moment: Timestamp) -> None:
        """Do nothing: the recording tells the time."""
