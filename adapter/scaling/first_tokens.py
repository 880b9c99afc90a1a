"""The first tokens that a fleet produced between two scrapes, by bucket layout."""

import math
from collections.abc import Mapping, Sequence

from adapter.fleet.histogram import Histogram
from adapter.fleet.rates import Between
from adapter.fleet.snapshot import Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.state import TtftPoint


def ttft_points(
    serving: Sequence[Replica], at: Timestamp, *, passed: Mapping[str, Between]
) -> tuple[TtftPoint, ...]:
    """Return one point per bucket layout; none for a layout without an observation.

    ``passed`` is by UID what happened between the replicas' last two readings.

    ``serving`` leaves out the warming replicas: a first request that compiles is no load.
    """
    by_layout: dict[tuple[float, ...], list[Histogram]] = {}
    for replica in serving:
        between = passed.get(replica.uid)
        seen = None if between is None else between.first_tokens
        if seen is not None and seen.count > 0:
            by_layout.setdefault(seen.bounds, []).append(seen)
    return tuple(
        TtftPoint(
            at,
            bounds=bounds[:-1],
            counts=tuple(map(sum, zip(*(part.counts for part in by_layout[bounds]), strict=True))),
            sum_seconds=sum(part.sum_seconds for part in by_layout[bounds]),
            serving=len(serving),
        )
        for bounds in sorted(by_layout)
    )


def quantile(points: Sequence[TtftPoint], q: float) -> float:
    """Return the ``q`` quantile in seconds of ``points``: at least one, all of one layout.

    Beyond the last bucket it is ``inf``: more than we can say must not read as a small number.
    """
    counts = tuple(map(sum, zip(*(point.counts for point in points), strict=True)))
    total = sum(point.sum_seconds for point in points)
    return Histogram((*points[0].bounds, math.inf), counts, total).quantile(q) or 0.0
