"""TTFT trend: the windowed quantile projected one load time ahead; it only ever raises."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final

from pydantic import Field

from adapter.scaling.demand import Demand
from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.first_tokens import quantile
from adapter.scaling.section import Section
from adapter.scaling.state import TtftPoint
from adapter.scaling.view import View

MOST: Final = 2.0
"""The most that TTFT alone may multiply the serving replicas by: it says that, not by how much."""

LOADED: Final = 0.5
"""In flight over target from which a slow first token is load rather than a long prompt."""

SLICES: Final = 8
"""Parts of the window that the trend is drawn through: a tick alone has too few first tokens."""

AGREE: Final = 0.75
"""Share of the slopes between slices that must point one way before it is called a trend."""


class TtftSection(Section):
    """``signals.ttft:``."""

    objective: PositiveDuration = default_duration("2s")
    """The time to first token that users are promised."""

    quantile: float = Field(default=0.95, gt=0, lt=1)
    """Which quantile the promise is about."""

    window: PositiveDuration = default_duration("2m")
    """How much of the recent past the quantile and its trend are taken from."""

    def demand(self, view: View) -> Demand:
        """Return more than what serves when the objective will be missed for want of replicas.

        Silence of this signal is no fault: nobody got a first token, or nobody asked for one.
        """
        points = _one_layout([p for p in view.first_tokens if 0 <= view.at - p.at < self.window])
        seen = quantile(points, self.quantile)
        if seen is None:
            never = view.unserved("ttft")
            because = (
                "the engine exports no time to first token"
                if never
                else f"no first token in {self.window:g} s"
            )
            return Demand("ttft", None, because, unserved=never)
        projected = self._projected(points, seen, view)
        evidence = {"ttft_seconds": seen, "projected_ttft_seconds": projected}
        said = (
            f"p{100 * self.quantile:g} {_seconds(seen)}, {_seconds(projected)} in {view.lead:g} s"
        )
        if projected <= self.objective:
            because = f"{said}: within {self.objective:g} s"
            return Demand("ttft", None, because, evidence=_finite(evidence))
        load = view.in_flight / (view.target * len(view.serving)) if view.serving else 0.0
        if load < LOADED and not view.queued_lately:
            because = f"{said}, but {load:.0%} of the target in flight: long prompts, not load"
            return Demand("ttft", None, because, evidence=_finite(evidence))
        ratio = min(projected / self.objective, MOST)
        serving = min(point.serving for point in points)
        return Demand(
            "ttft",
            serving * ratio,
            f"{said}, objective {self.objective:g} s: {serving} serving x {ratio:.2f}",
            evidence=_finite(evidence),
        )

    def _projected(self, points: Sequence[TtftPoint], seen: float, view: View) -> float:
        """Return the quantile one lead time ahead, in seconds; ``seen`` where there is no trend."""
        width = self.window / SLICES
        slices: dict[int, list[TtftPoint]] = {}
        for point in points:
            slices.setdefault(int((view.at - point.at) / width), []).append(point)
        line = [
            (-width * age, level)
            for age, part in slices.items()
            if (level := quantile(part, self.quantile)) is not None
        ]
        if any(math.isinf(level) for _, level in line):
            return seen
        slope = trend(line)
        if slope == 0:
            return seen
        level_now = median(level - slope * x for x, level in line)
        return max(0.0, level_now + slope * view.lead)


def trend(line: Sequence[tuple[float, float]]) -> float:
    """Return the Theil-Sen slope of ``line``, or 0 where its points do not agree on one.

    The median of the slopes between all pairs; a single outlier does not move it. Fewer than
    three points are no trend, and slopes that point both ways are noise: projected over several
    minutes, noise would order replicas.
    """
    if len(line) < 3:  # noqa: PLR2004 - two points agree with any slope
        return 0.0
    slopes = [(b - a) / (t - s) for (s, a), (t, b) in combinations(line, 2)]
    agreeing = max(sum(slope > 0 for slope in slopes), sum(slope < 0 for slope in slopes))
    return median(slopes) if agreeing >= AGREE * len(slopes) else 0.0


def _one_layout(points: Sequence[TtftPoint]) -> list[TtftPoint]:
    """Return the points of the bucket layout with the most observations.

    Layouts change with releases and flags; in the bounds that two of them share, a quantile
    could fall beyond the last one and read as an endless wait.
    """
    seen: dict[tuple[float, ...], float] = {}
    for point in points:
        seen[point.bounds] = seen.get(point.bounds, 0.0) + point.counts[-1]
    layout = max(seen, key=lambda bounds: (seen[bounds], bounds), default=())
    return [point for point in points if point.bounds == layout]


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else "beyond the last bucket"


def _finite(evidence: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in evidence.items() if math.isfinite(value)}
