"""Numbers of the recent past, for the rules that average or take the extreme of them."""

from dataclasses import dataclass
from statistics import fmean

from adapter.fleet.units import Seconds, Timestamp


@dataclass(frozen=True, slots=True)
class Window:
    """Moments with a number each, oldest first."""

    entries: tuple[tuple[Timestamp, float], ...] = ()

    def plus(self, at: Timestamp, number: float, *, keep: Seconds) -> "Window":
        """Return the window with one more number, without what is ``keep`` old or older."""
        kept = tuple(entry for entry in self.entries if entry[0] > at - keep)
        return Window((*kept, (at, number)))

    def after(self, moment: float) -> tuple[float, ...]:
        """Return the numbers younger than ``moment``."""
        return tuple(number for at, number in self.entries if at > moment)

    def mean(self, moment: float) -> float | None:
        """Return the mean of the numbers younger than ``moment``; None of none."""
        numbers = self.after(moment)
        return fmean(numbers) if numbers else None
