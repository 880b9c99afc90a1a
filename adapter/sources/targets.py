"""Who is asked, apart from how: every way to discover replicas stands behind this port."""

from typing import Protocol

from adapter.fleet.assemble import Roster, Target
from adapter.fleet.reading import Gap
from adapter.fleet.units import Timestamp


class Targets(Protocol):
    """Where a fleet's replicas come from: fixed addresses, a directory, pods, the demo."""

    async def roster(self, at: Timestamp) -> Roster:
        """Return who belongs to the fleet now.

        A world that cannot be asked is answered from memory: the last roster stands, and the
        targets' own silence shows what is wrong. Only a bug raises.
        """
        ...


class Fetch(Protocol):
    """Asks one target for its metrics."""

    async def __call__(self, target: Target) -> bytes | Gap | None:
        """Return the body, why there is none, or None when it did not change since last time.

        Bounded in time and size; never raises for what the target does.
        """
        ...
