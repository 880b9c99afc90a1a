"""Fixed addresses: one replica each."""

from collections.abc import Iterable

from adapter.fleet.assemble import Roster, Target
from adapter.fleet.units import Timestamp
from adapter.policy.address import shown_address


class StaticTargets:
    """The addresses of ``source.static.urls``; nobody vouches for any of them."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._roster = Roster(tuple(_target(url) for url in urls))

    async def roster(self, at: Timestamp) -> Roster:
        """Return the same targets every time."""
        del at
        return self._roster


def _target(url: str) -> Target:
    """Return the target at ``url``, whose name is fit for logs, answers and the state on disk."""
    name = shown_address(url)
    return Target(uid=name, name=name, url=url)
