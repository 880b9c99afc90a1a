"""Records what the loops of a process see and decide, without being in their way.

It stands between the loop and three of its ports. A recording that cannot be written is said
once, and nothing else changes.
"""

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

from adapter.controller.board import Board, PolicyKey, key_of
from adapter.controller.ports import FleetSource, Sources, StateStore
from adapter.controller.supervisor import World
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision
from adapter.scaling.state import ScalingState
from adapter.sources.recording import Session, Writer

_log = logging.getLogger("leadtime")


class Recorder:
    """Appends to ``NAMESPACE/NAME.jsonl`` below a directory, one file for each policy."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._tapes: dict[str, _Tape] = {}
        self._seen: dict[str, FleetSnapshot] = {}
        self._states: dict[str, ScalingState] = {}

    def begin(self, policy: str) -> None:
        """Begin a session: what is seen next is the first of it."""
        self._tape(policy).ended = True
        self._seen.pop(policy, None)
        self._states.pop(policy, None)

    def saw(self, policy: str, fleet: FleetSnapshot) -> None:
        """Remember what the decision to come is about."""
        self._seen[policy] = fleet

    def began_with(self, policy: str, state: ScalingState) -> None:
        """Remember the memory that a session begins with; later ones follow from it."""
        self._states.setdefault(policy, state)

    def decided(self, policy: str, decision: Decision) -> None:
        """Write a tick; what was never seen, and a decision on it, are none."""
        fleet = self._seen.pop(policy, None)
        if fleet is not None:
            session = Session(policy, self._states.get(policy, ScalingState()))
            self._tape(policy).write(session, fleet, decision)

    def close(self) -> None:
        """Close the files."""
        for tape in self._tapes.values():
            tape.close()

    def _tape(self, policy: str) -> "_Tape":
        tape = self._tapes.get(policy)
        if tape is None:
            tape = self._tapes[policy] = _Tape(self._directory / f"{policy}.jsonl")
        return tape


class _Tape:
    """The file of one policy."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._writer = Writer()
        self._broken = False
        self.ended = True
        """Whether the next tick begins a session."""

    def write(self, session: Session, fleet: FleetSnapshot, decision: Decision) -> None:
        """Append a tick, after the line of its session where that is new."""
        if self._broken:
            return
        text = self._writer.session(session) if self.ended else ""
        text += self._writer.tick(fleet, decision)
        try:
            if self._file is None:
                self._file = _opened(self._path)
            self._file.write(text)
            self._file.flush()
        except OSError as error:
            self._broken = True
            _log.error(_LOST, session.policy, self._path, error.strerror)
        self.ended = False

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._file is not None:
            self._file.close()


def _opened(path: Path) -> TextIO:
    """Open ``path`` to append, without the half of a line that a killed process left there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        end = file.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - _LOOK)
            file.seek(begin)
            newline = file.read(end - begin).rfind(b"\n")
            end = begin + newline + 1
            if newline >= 0:
                break
        file.truncate(end)
    return path.open("a", encoding="utf-8")


_LOOK: Final = 65_536
_LOST: Final = "policy=%s recording=lost file=%s error=%r note='not recorded until restarted'"


def recorded(world: World, recorder: Recorder) -> World:
    """Return ``world`` with its sources and its store recorded; its board is recorded already."""
    return replace(
        world,
        sources=RecordedSources(world.sources, recorder),
        store=RecordedStates(world.store, recorder),
    )


class RecordedSources:
    """Sources whose snapshots are recorded."""

    def __init__(self, inner: Sources, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    def open(self, policy: Policy) -> FleetSource:
        """Return the source of ``policy``; raises SourceError as the inner ones do."""
        source, name = self._inner.open(policy), str(key_of(policy))
        self._recorder.begin(name)
        return RecordedSource(source, name, self._recorder)


class RecordedSource:
    """One source whose snapshots are recorded."""

    def __init__(self, inner: FleetSource, policy: str, recorder: Recorder) -> None:
        self._inner, self._policy, self._recorder = inner, policy, recorder

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return what the inner one tells."""
        fleet = await self._inner.snapshot(at)
        self._recorder.saw(self._policy, fleet)
        return fleet

    async def close(self) -> None:
        """Close the inner one."""
        await self._inner.close()


class RecordedStates:
    """A store of which the first memory of a session is recorded."""

    def __init__(self, inner: StateStore, recorder: Recorder) -> None:
        self._inner, self._recorder = inner, recorder

    async def load(self, policy: str) -> ScalingState:
        """Return what the inner one remembers."""
        state = await self._inner.load(policy)
        self._recorder.began_with(policy, state)
        return state

    async def save(self, policy: str, state: ScalingState) -> None:
        """Save with the inner one; raises SourceError as it does."""
        await self._inner.save(policy, state)


class RecordedBoard(Board):
    """A board whose posts are recorded."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def post(self, key: PolicyKey, decision: Decision, tick_at: Timestamp) -> None:
        """Post, and record."""
        super().post(key, decision, tick_at)
        self._recorder.decided(str(key), decision)
