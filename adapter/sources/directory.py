"""A directory of recorded dumps: every ``*.prom`` file in it is one replica."""

import asyncio
import errno
import stat
from pathlib import Path

from adapter.controller.ports import Clock
from adapter.fleet.assemble import Roster, Target
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Timestamp
from adapter.sources.scrape import BODY_LIMIT

_Mark = tuple[int, int, int]
"""Inode, size and time of the last change: equal marks, equal content."""


class RecordedTargets:
    """The dumps in one directory, and the way to read them.

    A file that changed is a new reading, taken when the change is noticed; one that did not
    change says nothing new and stays what it was, for a recording does not grow stale. A file
    that is gone is a replica that is gone. Where there is no dump at all, the directory itself
    stands in the roster, so that the answer names what is missing.
    """

    def __init__(self, directory: Path, clock: Clock, *, body_limit: int = BODY_LIMIT) -> None:
        self._directory, self._clock, self._limit = directory, clock, body_limit
        self._marks: dict[str, _Mark] = {}
        self._roster = Roster((_target(directory),))

    async def roster(self, at: Timestamp) -> Roster:
        """Return a target for every dump; while the directory cannot be read, the last ones."""
        del at
        try:
            paths = await asyncio.to_thread(_dumps_in, self._directory)
        except OSError:
            return self._roster
        self._roster = Roster(tuple(_target(path) for path in paths or (self._directory,)))
        listed = {target.uid for target in self._roster.targets}
        self._marks = {uid: mark for uid, mark in self._marks.items() if uid in listed}
        return self._roster

    async def fetch(self, target: Target) -> bytes | Gap | None:
        """Return the dump, None if it is the one already returned, or why it cannot be read."""
        try:
            mark, body = await asyncio.to_thread(
                _read_changed, Path(target.url), self._marks.get(target.uid), self._limit + 1
            )
        except IsADirectoryError:
            detail = f"{target.name}: no *.prom file in this directory; put one dump per replica"
            return Gap(self._clock.now(), Cause.UNREACHABLE, detail)
        except OSError as error:
            self._marks.pop(target.uid, None)
            detail = f"{target.name}: cannot be read ({error.strerror})"
            return Gap(self._clock.now(), Cause.UNREACHABLE, detail)
        self._marks[target.uid] = mark
        if body is not None and len(body) > self._limit:
            detail = f"{target.name}: over {self._limit / 1024 / 1024:g} MiB, and was not read on"
            return Gap(self._clock.now(), Cause.TOO_LARGE, detail)
        return body


def _target(path: Path) -> Target:
    return Target(uid=str(path), name=str(path), url=str(path))


def _dumps_in(directory: Path) -> list[Path]:
    return [path for path in directory.iterdir() if path.suffix == ".prom"]


def _read_changed(path: Path, known: _Mark | None, size: int) -> tuple[_Mark, bytes | None]:
    facts = path.stat()
    if stat.S_ISFIFO(facts.st_mode):
        raise OSError(errno.EINVAL, "a pipe is no recorded dump")
    mark = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
    with path.open("rb") as dump:
        return mark, None if mark == known else dump.read(size)
