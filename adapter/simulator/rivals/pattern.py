"""A load's history in slots, and what its daily and weekly pattern says about the next hours."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from adapter.fleet.units import Seconds, Timestamp

SLOT: Final = Seconds(300.0)
DAY: Final = 288
"""Slots of a day."""

WEEK: Final = 7 * DAY
_KEPT: Final = 2 * WEEK


@dataclass(frozen=True, slots=True)
class Pattern:
    """Means of past slots, oldest first; the last one is still filling."""

    past: tuple[float, ...] = ()
    slot: int | None = None
    """Which slot fills now, counted from the Unix epoch; None before the first value."""

    total: float = 0.0
    count: int = 0

    def plus(self, at: Timestamp, value: float) -> "Pattern":
        """Return the pattern with one more value; slots without one repeat the latest mean."""
        slot = int(at // SLOT)
        if self.slot is None:
            return replace(self, slot=slot, total=value, count=1)
        if slot <= self.slot:
            return replace(self, total=self.total + value, count=self.count + 1)
        closed = self.total / self.count
        past = (*self.past, *[closed] * (slot - self.slot))[-_KEPT:]
        return Pattern(past, slot, value, 1)

    def highest(self, horizon: Seconds) -> float | None:
        """Return the most that the better of the two periods shows for the next ``horizon``.

        None before one whole day.
        """
        period = self._period()
        if period is None:
            return None
        ahead = range(int(horizon // SLOT) + 1)
        return max(self.past[-period + step % period] for step in ahead)

    def _period(self) -> int | None:
        """Return the period that would have told the last day best, of those with the history."""
        known = [period for period in (DAY, WEEK) if len(self.past) >= period]
        if len(self.past) < WEEK + DAY:
            return known[0] if known else None
        return min(known, key=lambda period: sum(self._misses(period)))

    def _misses(self, period: int) -> Iterable[float]:
        latest = self.past[-DAY:]
        before = self.past[-DAY - period : len(self.past) - period]
        return (abs(now - then) for now, then in zip(latest, before, strict=True))
