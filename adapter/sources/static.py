"""Fixed addresses: one replica each."""

from collections import Counter
from collections.abc import Iterable, Iterator

from adapter.fleet.assemble import Roster, Target
from adapter.fleet.units import Timestamp
from adapter.policy.address import shown_address


class StaticTargets:
    """The addresses of ``source.static.urls``; nobody vouches for any of them."""

    def __init__(self, urls: Iterable[str]) -> None:
        self._roster = Roster(tuple(_targets(urls)))

    async def roster(self, at: Timestamp) -> Roster:
        """Return the same targets every time."""
        del at
        return self._roster


def _targets(urls: Iterable[str]) -> Iterator[Target]:
    """Yield the targets, under names that are fit for logs, answers and the state on disk.

    Addresses that differ in what is not shown, a value in the query, are told apart by number.
    """
    seen = Counter[str]()
    for url in urls:
        shown = shown_address(url)
        seen[shown] += 1
        name = shown if seen[shown] == 1 else f"{shown} ({seen[shown]})"
        yield Target(uid=name, name=name, url=url)
