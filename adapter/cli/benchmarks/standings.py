"""The cells of a course together: how each policy did over its seeds, the best first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from adapter.simulator.matrix import Cell, Course, Outcome

Race = tuple[Course, ...]
"""Courses that differ in their seeds alone."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a policy did in a race, under a fault or without."""

    policy: str
    fault: str | None
    outcomes: tuple[Outcome, ...]
    """One for each seed."""

    @property
    def good(self) -> bool:
        """Return whether it met the objective on every seed."""
        return all(outcome.good for outcome in self.outcomes)

    @property
    def attainment(self) -> float:
        """Return the mean share in time."""
        return self._mean([outcome.attainment for outcome in self.outcomes])

    @property
    def worst_window(self) -> float:
        """Return the least of the seeds' worst ten minutes."""
        return min(outcome.worst_window for outcome in self.outcomes)

    @property
    def paid_hours(self) -> float:
        """Return the mean replica-hours."""
        return self._mean([outcome.paid_hours for outcome in self.outcomes])

    @property
    def ratio(self) -> float:
        """Return the mean of what was paid over the bound."""
        return self._mean([outcome.ratio for outcome in self.outcomes])

    @property
    def rank(self) -> tuple[bool, float]:
        """Return what sorts: the cheapest that met it, then who missed it by whom they served."""
        return not self.good, self.ratio if self.good else -self.attainment

    def _mean(self, values: list[float]) -> float:
        return math.fsum(values) / len(values)


def races(outcomes: Mapping[Cell, Outcome]) -> dict[Race, list[Standing]]:
    """Return the standings of each race, races and policies in the order of play."""
    played: dict[Course, dict[tuple[str, str | None], dict[Course, Outcome]]] = {}
    for cell, outcome in outcomes.items():
        entries = played.setdefault(replace(cell.course, seed=0), {})
        entries.setdefault((cell.policy, cell.fault), {})[cell.course] = outcome
    return {
        tuple(next(iter(entries.values()))): [
            Standing(policy, fault, tuple(runs.values()))
            for (policy, fault), runs in entries.items()
        ]
        for entries in played.values()
    }
