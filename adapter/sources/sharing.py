"""One scrape for all who ask the same engine at the same moment."""

import asyncio
from dataclasses import dataclass

from adapter.fleet.assemble import Target
from adapter.fleet.reading import Gap
from adapter.fleet.units import Seconds
from adapter.sources.scrape import Scraper

_Question = tuple[str, str, Seconds]
"""The address with its credentials, the name that a gap is told under, and the timeout."""


@dataclass(slots=True)
class _Asked:
    task: asyncio.Task[bytes | Gap]
    waiting: int = 0


class SharedScrapes:
    """Lets several policies over one engine cost it one scrape.

    Only a question that is still open is shared: an answer that was there before somebody asked
    is never used, so nobody sees older data for it. Who leaves takes nobody along; the question
    is dropped with the last one.
    """

    def __init__(self, scraper: Scraper) -> None:
        self._scraper = scraper
        self._open: dict[_Question, _Asked] = {}

    async def fetch(self, target: Target, timeout: Seconds) -> bytes | Gap:
        """Return the body of ``target``, or why there is none; see ``Scraper.fetch``."""
        question = (target.url, target.name, timeout)
        asked = self._open.get(question)
        if asked is None:
            asked = _Asked(asyncio.create_task(self._scraper.fetch(target, timeout)))
            self._open[question] = asked
        asked.waiting += 1
        try:
            return await asyncio.shield(asked.task)
        finally:
            asked.waiting -= 1
            if not asked.waiting:
                asked.task.cancel()
                del self._open[question]
