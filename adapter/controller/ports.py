"""What the controller needs from the world, as it would like to ask for it."""

from typing import Protocol

from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.state import ScalingState


class Clock(Protocol):
    """The time, and a way to wait for it."""

    def now(self) -> Timestamp:
        """Return the current time."""
        ...

    async def sleep_until(self, moment: Timestamp) -> None:
        """Return once the clock reads ``moment``, or as much time has truly passed.

        The second half matters when the clock is set back by an hour: nobody waits for it.
        """
        ...


class FleetSource(Protocol):
    """Where snapshots come from: live replicas, a recording, or the simulator."""

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Return the fleet as known at ``at``; missing data is part of it, only a bug raises."""
        ...

    async def close(self) -> None:
        """Give back connections and tasks; the source is not used again."""
        ...


class Sources(Protocol):
    """Makes the source that a policy asks for."""

    def open(self, policy: Policy) -> FleetSource:
        """Return a source for ``policy``.

        Raises:
            SourceError: this build cannot read that kind of source; says which it can.
        """
        ...


class StateStore(Protocol):
    """Where a policy's memory survives a restart or a change of leader."""

    async def load(self, policy: str) -> ScalingState:
        """Return the remembered state of ``namespace/name``, or a fresh one."""
        ...

    async def save(self, policy: str, state: ScalingState) -> None:
        """Remember ``state``.

        Raises:
            SourceError: it could not be written; the loop goes on and says so.
        """
        ...


class Telemetry(Protocol):
    """What the adapter counts about itself; ``policy`` is ``namespace/name``."""

    def ticked(self, policy: str, seconds: Seconds) -> None:
        """Count a finished tick and how long it took."""
        ...

    def gap(self, policy: str, cause: Cause) -> None:
        """Count a replica that had no reading in one tick."""
        ...

    def unsaved(self, policy: str) -> None:
        """Count a tick whose state could not be stored."""
        ...

    def crashed(self, policy: str) -> None:
        """Count a loop that died of a bug and was started again."""
        ...

    def reloaded(self, *, broken: int) -> None:
        """Record a reload, and how many policy files are broken after it."""
        ...

    def forget(self, policy: str) -> None:
        """Drop the series of a policy that is gone."""
        ...


class PolicyFiles(Protocol):
    """Where policies come from, for the supervisor's reload."""

    async def read(self) -> dict[str, bytes]:
        """Return the content of every policy file by path; empty when there is none.

        Raises:
            SourceError: the directory cannot be read.
        """
        ...
