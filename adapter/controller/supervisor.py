"""One supervised loop per policy: started, restarted, replaced and stopped as the files say."""

import asyncio
import logging
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.controller.board import Board, PolicyKey, key_of
from adapter.controller.errors import SourceError
from adapter.controller.loop import Loop
from adapter.controller.ports import Clock, PolicyFiles, Sources, StateStore, Telemetry
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.policy.finding import Finding, Severity
from adapter.policy.load import PlacedPolicy, check_together, read_files
from adapter.scaling.duration import clock_time

POLL: Final = Seconds(1.0)
"""How often the policy files are compared with what runs."""

SMALL: Final = 16 * 1024
"""Bytes of policies that are read at once, in some 50 ms; more are left to a thread."""

FIRST_PAUSE, LONGEST_PAUSE = Seconds(1.0), Seconds(60.0)
"""Between a loop's crash and its next start; doubles while it keeps crashing."""

_EMPTIED: Final = (
    "no policy stands in it any more: if that is meant, delete the file; "
    "what stood there runs on for one further look"
)
_UNUSABLE: Final = "answered 503 with this reason, tried again every minute, told once"

_LEVELS: Final = {
    Severity.ERROR: logging.ERROR,
    Severity.WARNING: logging.WARNING,
    Severity.INFO: logging.INFO,
}

_Loaded = tuple[tuple[PlacedPolicy, ...], tuple[Finding, ...]]
"""The policies of one file, and what is wrong with it."""

_log = logging.getLogger("leadtime")


def offset_of(policy: Policy) -> Seconds:
    """Return where in the interval ``policy`` is looked at: drawn from what is looked at.

    A thousand engines of many policies are then not all asked, and not all read, at one moment.
    Policies that look at the same engines do so together: one answer serves them all.
    """
    spec = policy.spec
    target = spec.target and f"{policy.metadata.namespace}/{spec.target.model_dump_json()}"
    looked_at = f"{target}{spec.source.model_dump_json()}"
    return Seconds(zlib.crc32(looked_at.encode()) / 2**32 * spec.source.interval)


@dataclass(frozen=True, slots=True)
class World:
    """Everything a loop needs beside its policy."""

    sources: Sources
    store: StateStore
    board: Board
    clock: Clock
    telemetry: Telemetry
    offset: Callable[[Policy], Seconds | None] = offset_of
    """Where in its interval a policy is looked at; None: from its start on."""


@dataclass(frozen=True, slots=True)
class _Running:
    policy: Policy
    task: asyncio.Task[None]


class Supervisor:
    """Keeps what runs equal to what the policy files say.

    A broken file changes nothing: its policies run on as they were last good, and the board, the
    log and a metric say so. A file that is gone takes its policies with it.
    """

    def __init__(self, files: PolicyFiles, world: World) -> None:
        self._files, self._world = files, world
        self._contents: dict[str, bytes] = {}
        self._good: dict[str, tuple[PlacedPolicy, ...]] = {}
        self._wanted: dict[PolicyKey, Policy] = {}
        self._running: dict[PolicyKey, _Running] = {}
        self._unreadable = ""
        self._emptied: frozenset[str] = frozenset()

    async def load(self) -> tuple[Finding, ...]:
        """Read the files and list their policies, without starting a loop; return all findings.

        Raises:
            SourceError: the files cannot be read.
        """
        contents = await self._files.read()
        findings = await self._take(contents)
        self._contents = contents
        return findings

    async def run(self) -> None:
        """Run the loops, and follow the files, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                await self._reconcile(tasks)
                await self._world.clock.sleep_until(Timestamp(self._world.clock.now() + POLL))
                await self._reload()

    async def _reload(self) -> None:
        try:
            contents = await self._files.read()
        except SourceError as error:
            if str(error) != self._unreadable:
                _log.error("policies=unreadable error=%r note='what runs stays'", str(error))
            self._unreadable = str(error)
            return
        self._unreadable = ""
        changed = contents != self._contents
        if changed or self._emptied:
            for finding in await self._take(contents):
                if changed:
                    _log.log(_LEVELS[finding.severity], "%s", self._line(finding))
            self._contents = contents

    async def _take(self, contents: Mapping[str, bytes]) -> tuple[Finding, ...]:
        """List what the files say; where one is broken, what it last said while it was not."""
        if sum(map(len, contents.values())) > SMALL:
            loaded = await asyncio.to_thread(_loaded, contents)
        else:
            loaded = _loaded(contents)
        broken = {path: _first_error(findings) for path, (_, findings) in loaded.items()}
        self._emptied = frozenset(self._just_emptied(loaded, broken))
        stays = {path for path, error in broken.items() if error} | self._emptied
        self._good = {
            path: _merged(placed, self._good.get(path, ()) if path in stays else ())
            for path, (placed, _) in loaded.items()
        }
        together = [one for placed in self._good.values() for one in placed]
        problems = {path: self._line(error) for path, error in broken.items() if error}
        self._list(together, {**problems, **dict.fromkeys(self._emptied, _EMPTIED)})
        self._world.telemetry.reloaded(broken=sum(error is not None for error in broken.values()))
        found = [finding for _, findings in loaded.values() for finding in findings]
        return tuple(sorted({*found, *check_together(together)}))

    def _just_emptied(
        self, loaded: Mapping[str, _Loaded], broken: Mapping[str, Finding | None]
    ) -> Iterator[str]:
        """Yield the files that held policies at the last look and hold nothing now.

        Such a file is more likely half written than meant: its policies get one look more.
        """
        for path, (placed, _) in loaded.items():
            gone = not placed and broken[path] is None and self._good.get(path)
            if gone and path not in self._emptied:
                _log.warning("file=%s emptied note=%r", path, _EMPTIED)
                yield path

    def _line(self, finding: Finding) -> str:
        """Return ``finding`` with its fix, and with what an error means for what runs."""
        place = f"{finding.file}:{finding.line}:{finding.column}"
        line = f"{place}: {finding.code} {finding.sentence}"
        if finding.fix:
            line += f"; fix: {finding.fix}"
        if finding.severity is not Severity.ERROR:
            return line
        if self._good.get(finding.file):
            return f"{line}; the previous version stays in force"
        return f"{line}; not served until it is mended"

    def _list(self, together: Iterable[PlacedPolicy], problems: Mapping[str, str]) -> None:
        """Put on the board what is wanted; of two policies with one name, the first."""
        wanted: dict[PolicyKey, PlacedPolicy] = {}
        for placed in together:
            wanted.setdefault(key_of(placed.policy), placed)
        for key in self._wanted.keys() - wanted.keys():
            self._world.board.withdraw(key)
            _log.warning("policy=%s withdrawn note='no file holds it any more'", key)
        for key, placed in wanted.items():
            file = placed.source.file
            if self._wanted.get(key) != placed.policy:
                self._world.board.list_policy(placed.policy, {})
                _log.info("policy=%s file=%s loaded", key, file)
            self._world.board.report(key, problems.get(file, ""))
        self._wanted = {key: placed.policy for key, placed in wanted.items()}

    async def _reconcile(self, tasks: asyncio.TaskGroup) -> None:
        """Stop the loops whose policy is gone or another, then start those that are missing."""
        for key, running in tuple(self._running.items()):
            if self._wanted.get(key) != running.policy:
                running.task.cancel()
                await asyncio.wait((running.task,))
                del self._running[key]
            if key not in self._wanted:
                self._world.telemetry.forget(str(key))
        for key, policy in self._wanted.items():
            if key not in self._running:
                task = tasks.create_task(self._keep_running(key, policy), name=f"loop {key}")
                self._running[key] = _Running(policy, task)

    async def _keep_running(self, key: PolicyKey, policy: Policy) -> None:
        """Run the loop of one policy; what ends it costs that policy a pause, and no other one."""
        clock, board = self._world.clock, self._world.board
        pause, told = FIRST_PAUSE, ""
        while True:
            began = clock.now()
            try:
                await self._run_once(key, policy)
            except SourceError as error:
                board.fail(key, str(error))
                if str(error) != told:
                    told = str(error)
                    _log.error("policy=%s source=unusable error=%r note=%r", key, told, _UNUSABLE)
            except Exception as error:
                self._world.telemetry.crashed(str(key))
                board.fail(key, _crash(error, clock.now(), pause))
                _log.exception("policy=%s loop=crashed restart_in=%gs", key, pause)
            if clock.now() - began > LONGEST_PAUSE:
                pause = FIRST_PAUSE
            await clock.sleep_until(Timestamp(clock.now() + pause))
            pause = Seconds(min(2 * pause, LONGEST_PAUSE))

    async def _run_once(self, key: PolicyKey, policy: Policy) -> None:
        world = self._world
        source = world.sources.open(policy)
        try:
            await Loop(
                key,
                policy.spec,
                interval=policy.spec.source.interval,
                source=source,
                store=world.store,
                board=world.board,
                clock=world.clock,
                telemetry=world.telemetry,
            ).run(offset=world.offset(policy))
        finally:
            await source.close()


def _crash(error: Exception, at: Timestamp, pause: Seconds) -> str:
    """Return what the wire says of a crash: its kind only, for its words may hold anything."""
    return (
        f"its loop failed at {clock_time(at)} ({type(error).__name__}) "
        f"and starts again in {pause:g} s; the adapter's log has the traceback"
    )


def _loaded(contents: Mapping[str, bytes]) -> dict[str, _Loaded]:
    return {path: read_files({path: data}) for path, data in sorted(contents.items())}


def _first_error(findings: Iterable[Finding]) -> Finding | None:
    return next((found for found in findings if found.severity is Severity.ERROR), None)


def _merged(
    now: tuple[PlacedPolicy, ...], before: tuple[PlacedPolicy, ...]
) -> tuple[PlacedPolicy, ...]:
    """Return ``now`` and whatever of ``before`` it does not speak of."""
    spoken = {key_of(placed.policy) for placed in now}
    return (*now, *(placed for placed in before if key_of(placed.policy) not in spoken))
