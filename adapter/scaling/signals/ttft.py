"""TTFT trend: the windowed quantile projected one load time ahead; it only ever raises."""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from typing import Final

from pydantic import Field

from adapter.scaling.carrying import carried_at
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

KEEPS_UP: Final = 0.9
"""Arrivals over what the fleet can finish, below which a queue is being worked off. A first token
tells of the moment its request arrived: after a burst the late ones come when help is there."""

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
        if not points:
            never = view.unserved("ttft")
            quiet = f"no first token in {self.window:g} s"
            because = "the engine exports no time to first token" if never else quiet
            return Demand("ttft", None, because, unserved=never)
        seen = self._seen(points, view)
        projected = self._projected(points, seen, view)
        said = (
            f"p{100 * self.quantile:g} {_seconds(seen)}, {_seconds(projected)} in {view.lead:g} s"
        )
        numbers = {"ttft_seconds": seen, "projected_ttft_seconds": projected}
        evidence = {name: number for name, number in numbers.items() if math.isfinite(number)}
        if projected <= self.objective:
            because = f"{said}: within {self.objective:g} s"
            return Demand("ttft", None, because, evidence=evidence)
        excuse = _excuse(view) or ("" if seen > self.objective else _carries(view))
        if excuse:
            return Demand("ttft", None, f"{said}, but {excuse}", evidence=evidence)
        ratio = min(projected / self.objective, MOST)
        serving = min(point.serving for point in points)
        return Demand(
            "ttft",
            serving * ratio,
            f"{said}, objective {self.objective:g} s: {serving} serving x {ratio:.2f}",
            evidence=evidence,
        )

    def _seen(self, points: Sequence[TtftPoint], view: View) -> float:
        """Return the quantile of the window, or of its last quarter where that is better.

        What is over is over: a long window remembers an hour that no replica cures any more.
        """
        newest = [point for point in points if view.at - point.at < self.window / 4]
        return min(quantile(part, self.quantile) for part in (points, newest) if part)

    def _projected(self, points: Sequence[TtftPoint], seen: float, view: View) -> float:
        """Return the quantile one lead time ahead, in seconds; ``seen`` where there is no trend."""
        width = self.window / SLICES
        slices: dict[int, list[TtftPoint]] = {}
        for point in points:
            slices.setdefault(int((view.at - point.at) / width), []).append(point)
        line = [(-width * age, quantile(part, self.quantile)) for age, part in slices.items()]
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


def _excuse(view: View) -> str:
    """Return why slow first tokens are no lack of replicas; empty when they are."""
    load = view.in_flight / (view.target * len(view.serving)) if view.serving else 0.0
    if load < LOADED and not view.queued_lately:
        return f"{load:.0%} of the target in flight: long prompts, not load"
    if view.flow is None or not view.flow.settled:
        return ""
    supply = view.flow.capacity * len(view.serving)
    if view.flow.arriving > KEEPS_UP * supply:
        return ""
    return (
        f"{view.flow.arriving:.3g} requests/s arrive and {supply:.3g} can be served: "
        f"it is the backlog's past"
    )


def _carries(view: View) -> str:
    """Return why a trend alone proves nothing: the arriving work is within what was learned."""
    if view.offered is None or not view.carried.levels:
        return ""
    supply = carried_at(view.carried, len(view.serving)) * len(view.serving)
    if view.offered.rate > supply:
        return ""
    unit = view.offered.unit
    return f"{view.offered.rate:.4g} {unit}/s arrive and {supply:.4g} are carried: it is noise"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if math.isfinite(value) else "beyond the last bucket"
