"""Fixed addresses: one replica each."""

from collections.abc import Iterable

from adapter.fleet.assemble import Roster, Target
from adapter.fleet.units import Timestamp


class StaticTargets:
    """The addresses of ``source.static.urls``; nobody vouches for any of them."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._roster = Roster(tuple(Target(uid=url, name=url, url=url) for url in urls))

    async def roster(self, at: Timestamp) -> Roster:
        """Return the same targets every time."""
        del at
        return self._roster
