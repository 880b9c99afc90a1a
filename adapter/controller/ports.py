"""What the controller needs from the world, as it would like to ask for it."""

from typing import Protocol

from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Timestamp
from adapter.policy.document import Policy
from adapter.scaling.state import ScalingState


class Clock(Protocol):
    """The time, and a way to wait for it."""

    def now(self) -> Timestamp:
        """Return the current time."""
        ...

    async def sleep_until(self, moment: Timestamp) -> None:
        """Return once the clock reads ``moment`` or later."""
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


class PolicyFiles(Protocol):
    """Where policies come from, for the supervisor's reload."""

    async def read(self) -> dict[str, str]:
        """Return the text of every policy file by path; empty when there is none.

        Raises:
            SourceError: the directory cannot be read.
        """
        ...
