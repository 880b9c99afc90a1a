"""A latency histogram as engines export it, and quantiles of what came between two of them."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add, lt, sub


@dataclass(frozen=True, slots=True)
class Histogram:
    """Cumulative counts per upper bound, in seconds.

    ``bounds`` rise strictly and end with ``inf``; ``counts`` never fall along them.
    Two histograms subtract only when their bounds are equal: releases and flags change layouts.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum_seconds: float

    @property
    def count(self) -> float:
        """Return how many observations there are in all."""
        return self.counts[-1] if self.counts else 0.0

    def plus(self, other: "Histogram") -> "Histogram":
        """Return both together, in the bounds that both have.

        Cumulative counts at a shared bound add up exactly, so layouts of two releases mix
        without a wrong count; only resolution is lost, down to "more than we can say".
        """
        sum_seconds = self.sum_seconds + other.sum_seconds
        if self.bounds == other.bounds:
            return Histogram(self.bounds, tuple(map(add, self.counts, other.counts)), sum_seconds)
        shared = self._at_bounds_of(other)
        others = other._at_bounds_of(self)
        counts = tuple(shared[bound] + others[bound] for bound in shared)
        return Histogram(tuple(shared), counts, sum_seconds)

    def minus(self, earlier: "Histogram") -> "Histogram | None":
        """Return what was observed since ``earlier``, or None after a reset or a new layout."""
        if self.bounds != earlier.bounds or self.fell_since(earlier):
            return None
        counts = tuple(map(sub, self.counts, earlier.counts))
        return Histogram(self.bounds, counts, max(0.0, self.sum_seconds - earlier.sum_seconds))

    def fell_since(self, earlier: "Histogram") -> bool:
        """Return whether a count is lower than in ``earlier``, of the same layout: a reset."""
        return self.bounds == earlier.bounds and any(map(lt, self.counts, earlier.counts))

    def quantile(self, q: float) -> float | None:
        """Return the ``q`` quantile in seconds, or None without an observation.

        Linear inside a bucket, as Prometheus' ``histogram_quantile``; what lies beyond the
        last finite bound is ``inf``: "more than we can say" must not read as a small number.
        """
        if self.count <= 0:
            return None
        rank = q * self.count
        lower, below = 0.0, 0.0
        for bound, count in zip(self.bounds, self.counts, strict=True):
            if count >= rank and count > below:
                if math.isinf(bound):
                    return math.inf
                return lower + (bound - lower) * max(0.0, rank - below) / (count - below)
            lower, below = bound, count
        return math.inf

    def _at_bounds_of(self, other: "Histogram") -> dict[float, float]:
        kept = set(other.bounds)
        return {
            bound: count
            for bound, count in zip(self.bounds, self.counts, strict=True)
            if bound in kept
        }


def together(histograms: Iterable[Histogram]) -> Histogram | None:
    """Return the sum of all ``histograms``, or None of none."""
    total: Histogram | None = None
    for histogram in histograms:
        total = histogram if total is None else total.plus(histogram)
    return total
