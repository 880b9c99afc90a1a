"""The first tokens that a fleet produced between two scrapes, by bucket layout."""

from collections.abc import Sequence

from adapter.fleet.histogram import Histogram
from adapter.fleet.rates import first_tokens
from adapter.fleet.snapshot import Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.state import TtftPoint


def ttft_points(serving: Sequence[Replica], at: Timestamp) -> tuple[TtftPoint, ...]:
    """Return one point per bucket layout; none for a layout without an observation.

    ``serving`` leaves out the warming replicas: a first request that compiles is no load.
    """
    by_layout: dict[tuple[float, ...], list[Histogram]] = {}
    for replica in serving:
        if replica.reading is None or replica.previous is None:
            continue
        seen = first_tokens(replica.reading, replica.previous)
        if seen is not None and seen.count > 0:
            by_layout.setdefault(seen.bounds, []).append(seen)
    totals = [added_up(by_layout[bounds]) for bounds in sorted(by_layout)]
    return tuple(
        TtftPoint(at, total.bounds, total.counts, total.sum_seconds, serving=len(serving))
        for total in totals
    )


def added_up(parts: Sequence[Histogram | TtftPoint]) -> Histogram:
    """Return all ``parts``, at least one and of one bucket layout, as one histogram."""
    counts = tuple(map(sum, zip(*(part.counts for part in parts), strict=True)))
    return Histogram(parts[0].bounds, counts, sum(part.sum_seconds for part in parts))
