"""The memory of each policy as one file, so that a restart resumes where it stopped."""

import asyncio
import logging
import os
import threading
from pathlib import Path

from adapter.controller.errors import SourceError
from adapter.scaling.state import ScalingState, dump_state, load_state

_log = logging.getLogger("leadtime")


class StateFiles:
    """``NAMESPACE/NAME.json`` under one directory, each replaced as a whole.

    What this process saved last is kept in memory too: a full disk then costs the memory of a
    restart, not that of the next tick.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, ScalingState] = {}
        self._writing = threading.Lock()

    async def load(self, policy: str) -> ScalingState:
        """Return what was saved for ``policy``; a file of no use is put aside, never guessed at."""
        if policy not in self._known:
            self._known[policy] = await asyncio.to_thread(self._load, policy)
        return self._known[policy]

    async def save(self, policy: str, state: ScalingState) -> None:
        """Replace the file of ``policy``.

        Raises:
            SourceError: it could not be written; what was saved before is still whole.
        """
        self._known[policy] = state
        try:
            await asyncio.to_thread(self._replace, self._path(policy), dump_state(state))
        except OSError as error:
            raise SourceError(
                f"state of policy {policy}: {self._path(policy)} could not be written "
                f"({error.strerror}): a restart now would forget; free the disk or fix its mode"
            ) from error

    def _load(self, policy: str) -> ScalingState:
        path = self._path(policy)
        try:
            return load_state(path.read_bytes())
        except FileNotFoundError:
            return ScalingState()
        except (OSError, ValueError) as error:
            aside = path.with_suffix(".json.unusable")
            kept = _moved(path, aside)
            _log.error(
                "policy=%s state=unusable file=%s kept=%s error=%r note=%r",
                policy,
                path,
                kept,
                " ".join(str(error).split()),
                "starting without memory: what runs is kept for one full scale-down delay",
            )
            return ScalingState()

    def _replace(self, path: Path, data: bytes) -> None:
        """Write whole or not at all; one writer at a time, so that an older tick never wins."""
        with self._writing:
            path.parent.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".json.new")
            with new.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)

    def _path(self, policy: str) -> Path:
        return self._directory / f"{policy}.json"


def _moved(path: Path, aside: Path) -> Path:
    """Return where the file of no use is now: aside, or where it was if it cannot be moved."""
    try:
        return path.replace(aside)
    except OSError:
        return path


class MemoryStates:
    """Forgets at the end of the process: for ``serve`` without ``--state``, and for trials."""

    def __init__(self) -> None:
        self._states: dict[str, ScalingState] = {}

    async def load(self, policy: str) -> ScalingState:
        """Return what was saved for ``policy`` in this process, or a fresh state."""
        return self._states.get(policy, ScalingState())

    async def save(self, policy: str, state: ScalingState) -> None:
        """Remember ``state`` until the process ends."""
        self._states[policy] = state
