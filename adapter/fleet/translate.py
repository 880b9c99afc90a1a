"""From an engine's words to canonical values, by rank and in all.

Three rules carry it. Of several names for a metric the newest that is there counts, alone. A value
that cannot be true (NaN, infinite, negative, a ratio above 1) makes its metric unknown for the
whole replica, and so does a rank that does not report it: a partial sum would look like less load.
What is unknown has a reason.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from adapter.fleet.dialect import Name, Source, histogram_series
from adapter.fleet.histogram import Histogram, together
from adapter.fleet.metrics import Metric
from adapter.fleet.pool import LARGEST, Amounts, Merge, Pool, place_of

Quantity = TypeVar("Quantity", float, Histogram)

RATIOS: Final = frozenset({Metric.KV_CACHE_USAGE, Metric.KV_CACHE_USAGE_PEAK})
"""Never added up: the parts of a rank make a maximum."""

ONCE_PER_PROCESS: Final = frozenset({Metric.PROCESS_START, Metric.MODEL_LOAD_SECONDS})
"""The latest or longest counts, and not every rank needs to say it."""

ROUNDING: Final = 1e-6
"""How far a ratio may stand above 1 by rounding."""


@dataclass(frozen=True, slots=True)
class Found(Generic[Quantity]):
    """One metric as the replica reports it."""

    names: tuple[Name, ...]
    """The names it was read from; more than one are parts of a sum."""

    by_rank: Mapping[str, Quantity]
    faults: Mapping[str, str]
    """Why the number of a rank cannot be used."""

    remarks: tuple[str, ...] = ()

    @property
    def matched(self) -> str:
        """Return what it was read from, as a formula of series."""
        return " + ".join(str(name) for name in self.names)

    @property
    def ranks(self) -> frozenset[str]:
        """Return every rank that has it, usable or not."""
        return frozenset(self.by_rank) | frozenset(self.faults)


@dataclass(frozen=True, slots=True)
class Absent:
    """One metric that the replica does not report."""

    reason: str
    served: bool
    """False when this engine, as it runs, never exports it: then absence is no fault."""


def find(metric: Metric, source: Source | None, pool: Pool) -> Found[float] | Absent:
    """Return ``metric`` by rank in its canonical unit, or why it is not there."""
    if source is None:
        return _NEVER
    names = _present(source, pool)
    if isinstance(names, Absent):
        return names
    merge: Merge = max if metric in RATIOS | ONCE_PER_PROCESS else sum
    amounts = pool.amounts(names[0], merge)
    for name in names[1:]:
        amounts = _added(amounts, pool.amounts(name, merge))
    values, faults = dict(amounts.values), dict(amounts.faults)
    for rank, value in amounts.values.items():
        if fault := _impossible(metric, value):
            faults[rank] = f"{fault} in {names[0]}"
            del values[rank]
        elif metric in RATIOS:
            values[rank] = min(value, 1.0)
    return Found(names, values, faults, _remarks(names, source))


def find_ttft(source: Source | None, pool: Pool) -> Found[Histogram] | Absent:
    """Return the TTFT histogram by rank, in seconds, or why there is none."""
    if source is None:
        return _NEVER
    for name in source.names:
        cells = _buckets(name, pool)
        if cells:
            return _histograms(name, source, cells, pool)
    return _not_there(source)


def total(metric: Metric, found: Found[float]) -> float:
    """Return the replica's value of ``metric`` from that of its ranks."""
    values = found.by_rank.values()
    if metric is Metric.KV_CACHE_USAGE:
        return sum(values) / len(values)
    return max(values) if metric in RATIOS | ONCE_PER_PROCESS else sum(values)


_NEVER: Final = Absent("this engine does not export it", served=False)


def _present(source: Source, pool: Pool) -> tuple[Name, ...] | Absent:
    """Return the newest name that is there, with that of each further part."""
    for series in source.hidden_by:
        if series in pool.by_series:
            return Absent(f"means nothing next to {series}", served=False)
    first = _newest(source.names, pool)
    if first is None:
        return _not_there(source)
    further = (_newest(names, pool) for names in source.plus)
    return (first, *(name for name in further if name is not None))


def _newest(names: tuple[Name, ...], pool: Pool) -> Name | None:
    for name in names:
        if pool.has(name):
            return name
    return None


def _not_there(source: Source) -> Absent:
    tried = ", ".join(
        f"{name} (since {name.since})" if name.since else str(name) for name in source.names
    )
    return Absent(f"no series: looked for {tried}", served=source.expected)


def _remarks(names: tuple[Name, ...], source: Source) -> tuple[str, ...]:
    """Return what the person who runs the engine should know about ``names``."""
    remarks = [f"{name}: {name.caution}" for name in names if name.caution]
    for name in names:
        if name.until:
            newer = next(
                one for part in (source.names, *source.plus) if name in part for one in part
            )
            remarks.append(
                f"{name} is deprecated: {newer.series} replaces it since {newer.since}, and "
                f"{name.until} removes it; both are read"
            )
    return tuple(remarks)


def _added(amounts: Amounts, more: Amounts) -> Amounts:
    """Return ``amounts`` with ``more`` of the same ranks on top."""
    values = {rank: value + more.values.get(rank, 0.0) for rank, value in amounts.values.items()}
    faults = {rank: fault for rank, fault in more.faults.items() if rank in values}
    kept = {rank: value for rank, value in values.items() if rank not in faults}
    return Amounts(kept, {**amounts.faults, **faults})


def _impossible(metric: Metric, value: float) -> str:
    if not math.isfinite(value):
        return "a division by zero"
    if value < 0:
        return f"impossible value {value:g}"
    if metric in RATIOS and value > 1.0 + ROUNDING:
        return f"impossible ratio {value:g}"
    return ""


_Cells = dict[str, dict[tuple[tuple[str, str], ...], dict[float, float]]]
"""Rank, part, upper bound in our unit: the cumulative count."""


def _buckets(name: Name, pool: Pool) -> _Cells:
    suffixed, bare, _ = histogram_series(name.series)
    cells: _Cells = {}
    for sample in pool.of(suffixed, name.where) or pool.of(bare, name.where):
        place = place_of(pool.dialect, sample.series)
        if place.bound is not None:
            counts = cells.setdefault(place.rank, {}).setdefault(place.part, {})
            bound = place.bound * name.unit
            counts[bound] = max(sample.value, counts.get(bound, -math.inf))
    return cells


def _histograms(name: Name, source: Source, cells: _Cells, pool: Pool) -> Found[Histogram]:
    *_, sum_series = histogram_series(name.series)
    sums = pool.amounts(Name(sum_series, name.where, unit=name.unit), sum).values
    by_rank: dict[str, Histogram] = {}
    faults: dict[str, str] = {}
    for rank, parts in cells.items():
        try:
            buckets = _merged([_histogram(counts) for counts in parts.values()])
            by_rank[rank] = Histogram(buckets.bounds, buckets.counts, sums.get(rank, 0.0))
        except ValueError as error:
            faults[rank] = f"{error} in {name}"
    remarks = [] if sums.keys() >= cells.keys() else [f"{sum_series} is missing: read as 0 s"]
    layouts = {tuple(sorted(counts)) for parts in cells.values() for counts in parts.values()}
    if len(layouts) > 1:
        remarks.append(f"{name} has {len(layouts)} bucket layouts: read in the bounds they share")
        by_rank, faults = _of_one_layout(by_rank, faults, name)
    return Found((name,), by_rank, faults, (*_remarks((name,), source), *remarks))


def _of_one_layout(
    by_rank: dict[str, Histogram], faults: dict[str, str], name: Name
) -> tuple[dict[str, Histogram], dict[str, str]]:
    """Return ``by_rank``, or a fault for each rank when no bound is common to all of them."""
    try:
        _merged(list(by_rank.values()))
    except ValueError as error:
        return {}, {**faults, **dict.fromkeys(by_rank, f"{error} in {name}")}
    return by_rank, faults


def _merged(histograms: Sequence[Histogram]) -> Histogram:
    """Return all ``histograms`` together.

    Raises:
        ValueError: they share no bound but infinity: every quantile would be infinite.
    """
    both = together(histograms)
    if both is None or len(both.bounds) < min(2, *(len(one.bounds) for one in histograms)):
        raise ValueError("bucket layouts without a common bound")
    return both


def _histogram(counts: Mapping[float, float]) -> Histogram:
    bounds = tuple(sorted(counts))
    cumulative = tuple(counts[bound] for bound in bounds)
    _check_buckets(bounds, cumulative)
    return Histogram(bounds, cumulative, 0.0)


def _check_buckets(bounds: Sequence[float], counts: Sequence[float]) -> None:
    """Raise ValueError with the reason when the buckets cannot be true."""
    if bounds[-1] != math.inf:
        raise ValueError("no +Inf bucket")
    if not all(0.0 <= count <= LARGEST for count in counts):
        raise ValueError("a bucket that is NaN, negative or beyond counting")
    if list(counts) != sorted(counts):
        raise ValueError("cumulative buckets that fall")
