"""A measured number, and what was promised of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One number; its name ends with its unit."""

    name: str
    """In camelCase, like ``warmMegabytesPerSecond``."""

    value: float
    at_most: float | None = None
    at_least: float | None = None
    """The promise; None where there is none."""

    @property
    def kept(self) -> bool:
        """Return whether every promise is kept; true where there is none."""
        high_enough = self.at_least is None or self.value >= self.at_least
        return high_enough and (self.at_most is None or self.value <= self.at_most)
