"""What the kubelet asks: are the loops ticking, and is there anything to serve."""

from dataclasses import dataclass
from typing import Final

from adapter.controller.board import Board, Listing, PolicyKey
from adapter.controller.ports import Clock
from adapter.fleet.units import Seconds, Timestamp

LATE_AFTER_INTERVALS: Final = 1.5
START_UP: Final = Seconds(30.0)
"""What a first tick may take on top: the first scrape of a large fleet, a cold TLS session."""


@dataclass(frozen=True, slots=True)
class Health:
    """The answer of one probe."""

    good: bool
    text: str


class Probes:
    """Judges the board; remembers only since when it knows each policy."""

    def __init__(self, board: Board, *, clock: Clock) -> None:
        self._board, self._clock = board, clock
        self._seen: dict[PolicyKey, Timestamp] = {}

    def live(self) -> Health:
        """Return whether every loop ticks: a restart helps where one hangs.

        A policy whose loop failed is left out: its source cannot be read, or it crashed and is
        started again as it is; a restart would change nothing and take the other policies along.
        """
        now = self._clock.now()
        listings = self._board.all()
        self._seen = {listing.key: self._seen.get(listing.key, now) for listing in listings}
        late = [text for listing in listings if (text := self._lateness(listing, now))]
        return Health(not late, "\n".join(late) or "ok")

    def ready(self) -> Health:
        """Return whether there is a policy to serve.

        An engine or Prometheus that is away does not count: it would remove the adapter at the
        very moment when it has to hold the count.
        """
        if self._board.all():
            return Health(good=True, text="ok")
        return Health(good=False, text="no policy is loaded; see --policies and the log")

    def _lateness(self, listing: Listing, now: Timestamp) -> str:
        interval = listing.policy.spec.source.interval
        limit = interval * LATE_AFTER_INTERVALS
        last = listing.tick_at
        if last is None:
            last, limit = self._seen[listing.key], limit + START_UP
        age = now - last
        if listing.failure or age <= limit:
            return ""
        return (
            f"policy {listing.key}: no tick for {age:.1f} s, limit {limit:.1f} s "
            f"(interval {interval:g} s); its loop hangs, see the log"
        )
