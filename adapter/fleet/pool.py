"""The samples of one replica, sorted by series and told apart by rank, copy and part."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from adapter.fleet.dialect import Dialect, Name
from adapter.fleet.exposition import REMEMBERED_SERIES, Sample, Series

Merge = Callable[[Iterable[float]], float]
"""How the parts of one rank make one value: ``sum`` or ``max``."""

LARGEST: Final = 2.0**53
"""Above this a float no longer counts by one: nothing that an engine counts gets there."""

_BUCKET_LABEL = "le"
_WORKERS_LOOKED_AT = 64
_NONE: Sequence[Sample] = ()


@dataclass(frozen=True, slots=True)
class Amounts:
    """One quantity by rank: every rank that reports it is in exactly one of the two."""

    values: Mapping[str, float]
    """Not negative and at most ``LARGEST``, in our unit."""

    faults: Mapping[str, str]
    """Why the number of this rank cannot be true."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a series belongs within its endpoint."""

    model: str | None
    """None where the series names none: it then belongs to every model."""

    rank: str
    """Values of the rank labels; empty where the series has none."""

    part: tuple[tuple[str, str], ...]
    """What else tells it from others of its name: parts add up, copies do not."""

    bound: float | None
    """The bucket's upper bound in the engine's unit; None for anything but a bucket."""


@dataclass(frozen=True, slots=True)
class Pool:
    """All samples of one replica and one model, once each."""

    dialect: Dialect
    by_series: Mapping[str, list[Sample]]
    duplicates: Mapping[str, str] = field(default_factory=dict)
    """Names of series that the text holds twice, with what was done about it."""

    @property
    def lingering(self) -> list[str]:
        """Return a warning when series of several workers stand here, some perhaps dead."""
        label = self.dialect.lingering_label
        workers = {
            sample.series.labels.get(label, "")
            for samples in self.by_series.values()
            for sample in samples[: _WORKERS_LOOKED_AT if label else 0]
        } - {""}
        return [
            f"series of several workers ({label}) stand here, and those of dead ones linger: "
            f"scrape each replica by itself"
            for _ in sorted(workers)[1:2]
        ]

    def of(self, series: str, where: Mapping[str, str]) -> Sequence[Sample]:
        """Return the samples of ``series`` that carry the labels ``where``; totals, not parts."""
        found = self.by_series.get(series, _NONE)
        for label, value in where.items():
            found = [sample for sample in found if sample.series.labels.get(label) == value]
        for label, total in self.dialect.total_labels.items():
            totals = [sample for sample in found if sample.series.labels.get(label, "") == total]
            found = totals or found
        return found

    def has(self, name: Name) -> bool:
        """Return whether ``name``, and what it is reckoned with, has any sample."""
        return all(
            one is None or (one.series in self.by_series and self.of(one.series, one.where))
            for one in (name, name.over, name.minus)
        )

    def amounts(self, name: Name, merge: Merge) -> Amounts:
        """Return what ``name`` says, by rank."""
        amounts = self._raw(name, merge)
        for other, reckon in ((name.over, _quotient), (name.minus, _difference)):
            if other is not None:
                amounts = _reckoned(amounts, self._raw(other, merge), reckon)
        return amounts

    def _raw(self, name: Name, merge: Merge) -> Amounts:
        cells: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        faults: dict[str, str] = {}
        for series, value in self.of(name.series, name.where):
            place = place_of(self.dialect, series)
            parts = cells.setdefault(place.rank, {})
            if 0.0 <= value <= LARGEST:
                parts[place.part] = max(value, parts.get(place.part, 0.0))
            else:
                faults[place.rank] = f"{_described(value)} in {described(series)}"
        values = {
            rank: merge(parts.values()) * name.unit
            for rank, parts in cells.items()
            if rank not in faults
        }
        return Amounts(values, faults)


def pool_of(samples: Iterable[Sample], dialect: Dialect) -> Pool:
    """Return ``samples`` sorted by series; of one that stands twice the first counts."""
    by_series: dict[str, list[Sample]] = {}
    first: dict[Series, float] = {}
    duplicates: dict[str, str] = {}
    for sample in samples:
        series, value = sample
        if series not in first:
            first[series] = value
            by_series.setdefault(series.name, []).append(sample)
        else:
            duplicates[series.name] = (
                f"{described(series)} stands twice, with {first[series]:g} and {value:g}: "
                f"the first counts, as in Prometheus"
            )
    return Pool(dialect, by_series, duplicates)


@lru_cache(maxsize=REMEMBERED_SERIES)
def place_of(dialect: Dialect, series: Series) -> Place:
    """Return where ``series`` belongs."""
    labels = series.labels
    apart = {
        _BUCKET_LABEL,
        *dialect.model_labels,
        *dialect.rank_labels,
        *dialect.copy_labels,
    }
    part = tuple((label, value) for label, value in labels.items() if label not in apart)
    rank = "/".join(labels[label] for label in dialect.rank_labels if labels.get(label))
    model = next((labels[label] for label in dialect.model_labels if label in labels), "")
    named = model if model and model not in dialect.nameless else None
    return Place(named, rank, part, _bound(labels.get(_BUCKET_LABEL, "")))


def _bound(text: str) -> float | None:
    try:
        bound = float(text)
    except ValueError:
        return None
    return None if math.isnan(bound) else bound


def described(series: Series) -> str:
    """Return ``series`` as a person would write it."""
    labels = ",".join(f'{label}="{value}"' for label, value in series.labels.items())
    return f"{series.name}{{{labels}}}" if labels else series.name


def _described(value: float) -> str:
    if math.isfinite(value):
        return f"impossible value {value:g}"
    return "NaN" if math.isnan(value) else f"{value:+}".replace("inf", "Inf")


def _reckoned(
    amounts: Amounts, others: Amounts, reckon: Callable[[float, float], float]
) -> Amounts:
    """Return ``amounts`` reckoned with ``others``, which may be the same for all ranks."""
    values: dict[str, float] = {}
    faults = dict(amounts.faults)
    for rank, value in amounts.values.items():
        known = rank if rank in others.values or rank in others.faults else ""
        if known in others.values:
            values[rank] = reckon(value, others.values[known])
        else:
            faults[rank] = others.faults.get(known, f"rank {rank!r} lacks the other half")
    return Amounts(values, faults)


def _quotient(value: float, by: float) -> float:
    return value / by if by > 0 else math.nan


def _difference(value: float, less: float) -> float:
    return value - less
