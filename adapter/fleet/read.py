"""One scrape's body to one reading of a replica, or to the reason why there is none."""

from collections.abc import Mapping
from typing import Final

from adapter.fleet.dialect import Dialect
from adapter.fleet.engines import ENGINES
from adapter.fleet.exposition import ExpositionError, Sample, cut_short, select
from adapter.fleet.gaps import (
    no_engine,
    no_values,
    not_metrics,
    other_engine,
    several_models,
    wrong_model,
)
from adapter.fleet.histogram import Histogram, together
from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.pool import Pool, place_of, pool_of
from adapter.fleet.reading import Gap, Rank, Reading
from adapter.fleet.translate import ONCE_PER_PROCESS, Absent, Found, find, find_ttft, total
from adapter.fleet.units import Timestamp

AUTO: Final = "auto"
"""Tell the engine from the names of its series."""

TTFT: Final = "ttft"
"""The key of the TTFT histogram beside the metrics' names."""

Present = Found[float] | Found[Histogram]


def read_exposition(
    body: bytes, *, engine: str, model: str | None, at: Timestamp, target: str
) -> Reading | Gap:
    """Return what ``body``, which arrived at ``at``, says of the replica behind ``target``.

    ``engine`` is the name of one in ENGINES or ``auto``; ``model`` is the engine's own name of
    the model and needed only where an endpoint serves several; ``target`` names the endpoint in
    the sentence of a gap. Never raises for anything that stands in ``body``.
    """
    dialect = _spoken(body, engine)
    if dialect is None:
        return _unspoken(body, engine, at=at, target=target)
    if cut_short(body):
        return not_metrics(at, target, found="the answer stops in the middle of a line: cut short")
    try:
        samples = select(body, dialect.wanted)
    except ExpositionError as error:
        return not_metrics(at, target, found=f"{error}: not a Prometheus exposition")
    chosen = _choose(samples, dialect, model=model, at=at, target=target)
    if isinstance(chosen, Gap):
        return chosen
    mine = (one for one in samples if place_of(dialect, one.series).model in (None, chosen))
    reading = _reading(pool_of(mine, dialect), at=at, model=chosen)
    empty = reading.ttft is None and not reading.values.keys() - ONCE_PER_PROCESS
    if not empty:
        return reading
    return no_values(at, target, dialect=dialect, faults=reading.warnings)


def _choose(
    samples: list[Sample], dialect: Dialect, *, model: str | None, at: Timestamp, target: str
) -> str | Gap | None:
    """Return the model to read, None if the engine names none, or why that is not clear."""
    models = _models(samples, dialect)
    if model is None and len(models) > 1:
        return several_models(at, target, found=models)
    if model is not None and models and model not in models:
        return wrong_model(at, target, model=model, found=models)
    return next((name for name in models if model in (None, name)), None)


def _spoken(body: bytes, engine: str) -> Dialect | None:
    for dialect, marks in _SPELLED:
        if engine in (AUTO, dialect.engine) and any(
            mark in body or body.startswith(mark[1:]) for mark in marks
        ):
            return dialect
    return None


_SPELLED: Final = tuple(
    (dialect.spelled(spelling.prefix), tuple(b"\n" + mark.encode() for mark in spelling.marks))
    for dialect in ENGINES
    for spelling in dialect.spellings
)


def _unspoken(body: bytes, engine: str, *, at: Timestamp, target: str) -> Gap:
    other = _spoken(body, AUTO)
    if other is not None:
        return other_engine(at, target, asked=engine, found=other.engine)
    asked = [dialect for dialect in ENGINES if engine in (AUTO, dialect.engine)]
    return no_engine(at, target, body=body, asked=asked)


def _models(samples: list[Sample], dialect: Dialect) -> set[str]:
    """Return the models that the endpoint serves; what an unloaded one leaves behind is none."""
    places = (
        place_of(dialect, sample.series)
        for sample in samples
        if sample.series.name in dialect.leading
    )
    return {place.model for place in places if place.model is not None}


def _reading(pool: Pool, *, at: Timestamp, model: str | None) -> Reading:
    dialect = pool.dialect
    metrics = {metric: find(metric, dialect.source_of(metric), pool) for metric in Metric}
    ttft = find_ttft(dialect.ttft, pool)
    named: dict[str, Present | Absent] = {str(metric): one for metric, one in metrics.items()}
    named[TTFT] = ttft
    there = {name: one for name, one in named.items() if isinstance(one, Found)}
    absent = {name: one for name, one in named.items() if isinstance(one, Absent)}
    faults = _faults(there)
    values = {metric: one for metric, one in metrics.items() if isinstance(one, Found)}
    histograms = ttft.by_rank if isinstance(ttft, Found) else {}
    return Reading(
        at=at,
        engine=dialect.engine,
        model=model,
        values={name: total(name, one) for name, one in values.items() if name not in faults},
        ttft=None if TTFT in faults else together(histograms.values()),
        ranks=_ranks(values, histograms),
        matched={name: one.matched for name, one in there.items()},
        missing={name: one.reason for name, one in absent.items()} | faults,
        unserved=frozenset(name for name, one in absent.items() if not one.served),
        warnings=_warnings(pool, there),
    )


_MAY_LACK_RANKS: Final = frozenset({*ONCE_PER_PROCESS, *COUNTERS, TTFT})
"""A registry shows a counter only once it has counted: a rank without one has counted nothing.
Growth still compares the same ranks only, so one that falls silent is not less work."""


def _faults(there: Mapping[str, Present]) -> dict[str, str]:
    """Return why each metric that is there has no usable value for the replica as a whole."""
    labelled = {
        rank
        for name, one in there.items()
        if name not in ONCE_PER_PROCESS
        for rank in one.ranks
        if rank
    }
    faults = {name: _fault(name, one, labelled) for name, one in there.items()}
    return {name: fault for name, fault in faults.items() if fault}


def _fault(name: str, one: Present, labelled: set[str]) -> str:
    if one.faults:
        return "; ".join(one.faults[rank] for rank in sorted(one.faults))
    silent = labelled - one.ranks
    if silent and name not in _MAY_LACK_RANKS and one.ranks != {""}:
        return f"rank {', '.join(sorted(silent))} does not report {one.matched}"
    return ""


def _ranks(
    values: Mapping[Metric, Found[float]], histograms: Mapping[str, Histogram]
) -> dict[str, Rank]:
    names = {rank for one in values.values() for rank in one.by_rank} | set(histograms)
    return {
        rank: Rank(
            {metric: one.by_rank[rank] for metric, one in values.items() if rank in one.by_rank},
            histograms.get(rank),
        )
        for rank in sorted(names)
    }


def _warnings(pool: Pool, there: Mapping[str, Present]) -> tuple[str, ...]:
    remarks = [remark for one in there.values() for remark in one.remarks]
    faults = [fault for one in there.values() for fault in one.faults.values()]
    found = [*pool.duplicates.values(), *remarks, *faults, *pool.lingering]
    return tuple(dict.fromkeys(found))
