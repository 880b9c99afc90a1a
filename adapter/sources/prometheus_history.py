"""What was asked of a fleet in the past, out of a Prometheus: bins of five minutes.

A constant number of queries for each week, whatever the number of replicas: the sums are made
there. Requests that arrived are those that finished and the growth of what is in flight.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from adapter.fleet.dialect import Dialect, Name, Source
from adapter.fleet.engines import ENGINES
from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.read import AUTO
from adapter.fleet.units import Timestamp
from adapter.scaling.history import BIN, WorkBin
from adapter.sources.prometheus_api import PrometheusApi, Series
from adapter.sources.prometheus_series import COPY_LABELS, quoted, up_selector

CHUNK: Final = 2016
"""Bins a question: a week. Servers refuse more than 11,000 points a series."""

_ASKED: Final = (
    Metric.REQUESTS_FINISHED,
    Metric.PROMPT_TOKENS,
    Metric.CACHED_PROMPT_TOKENS,
    Metric.GENERATION_TOKENS,
    Metric.REQUESTS_RUNNING,
    Metric.REQUESTS_WAITING,
)

Column = Mapping[int, float]
"""A value by the number of the bin at whose end it holds."""


async def work_bins(
    api: PrometheusApi,
    *,
    engine: str,
    labels: Mapping[str, str],
    since: Timestamp,
    until: Timestamp,
    model: str | None = None,
    told: Callable[[float], None] = lambda _: None,
) -> tuple[WorkBin, ...]:
    """Return the whole bins between ``since`` and ``until``; ``told`` hears how far it is.

    A bin of which nothing is known is masked.

    Raises:
        PrometheusError: no answer, or not all of it.
    """
    first, last = math.ceil(since / BIN), math.floor(until / BIN)
    copies = _copies(await api.label_names(up_selector(labels), since=since))
    wanted = {metric: promql(metric, engine, labels, model, copies) for metric in _ASKED}
    columns: dict[Metric, dict[int, float]] = {metric: {} for metric in _ASKED}
    chunks = range(first, last, CHUNK)
    steps = len(chunks) * len(_ASKED)
    for chunk, start in enumerate(chunks):
        for place, (metric, query) in enumerate(wanted.items()):
            if query:
                span = (start, min(start + CHUNK, last))
                columns[metric] |= _column(await _asked(api, query, *span))
            told((chunk * len(_ASKED) + place + 1) / steps)
    return tuple(_bin(number, columns) for number in range(first, last))


def promql(
    metric: Metric,
    engine: str,
    labels: Mapping[str, str],
    model: str | None = None,
    copies: Iterable[str] = (),
) -> str:
    """Return the query for a metric of the whole fleet; empty where no such engine has it.

    Of several names the newest that is there counts, as in a scrape. Counters are what they grew
    by in a bin. ``copies`` are the labels that tell the Prometheus of a pair apart.
    """
    parts = []
    for dialect in (one for one in ENGINES if engine in (AUTO, one.engine)):
        for spelling in dialect.spellings:
            spelled = dialect.spelled(spelling.prefix)
            source = spelled.source_of(metric)
            if source is not None:
                written = _Written(metric in COUNTERS, spelled, labels, model, tuple(copies))
                parts.append(written.source(source))
    return " or ".join(parts)


class _Written:
    """Writes one metric of one dialect as PromQL."""

    def __init__(
        self,
        counter: bool,  # noqa: FBT001 - a fact of the metric
        dialect: Dialect,
        labels: Mapping[str, str],
        model: str | None,
        copies: tuple[str, ...],
    ) -> None:
        self._counter, self._dialect, self._labels = counter, dialect, labels
        self._model, self._copies = model, copies

    def source(self, source: Source) -> str:
        newest_first = self._first_of(source.names)
        if not source.plus:
            return newest_first
        more = [f"({self._first_of(names)} or vector(0))" for names in source.plus]
        return f"(({newest_first}) + {' + '.join(more)})"

    def _first_of(self, names: Iterable[Name]) -> str:
        return " or ".join(one for name in names for one in self._name(name))

    def _name(self, name: Name) -> Iterator[str]:
        for model in self._models():
            text = self._sum(name, model)
            if name.minus is not None:
                text = f"({text} - {self._sum(name.minus, model)})"
            yield text

    def _models(self) -> Iterator[dict[str, str]]:
        if self._model is None or not self._dialect.model_labels:
            yield {}
            return
        for label in self._dialect.model_labels:
            yield {label: self._model}

    def _sum(self, name: Name, model: Mapping[str, str]) -> str:
        equal = {**name.where, **model, **self._labels}
        matchers = [f"{label}={quoted(value)}" for label, value in equal.items()]
        matchers += [
            f'{label}=~"{total}|"'
            for label, total in self._dialect.total_labels.items()
            if label not in equal
        ]
        named = f'__name__="{name.series}"'
        series = f"{{{','.join([named, *matchers])}}}"
        amount = f"increase({series}[{BIN:.0f}s])" if self._counter else series
        same = sorted({*self._copies, *self._dialect.copy_labels})
        return f"sum(max without ({', '.join(same)}) ({amount}))" if same else f"sum({amount})"


def _copies(names: Iterable[str]) -> tuple[str, ...]:
    """Return the labels of a pair among those of ``up``; without it, those that are nothing else.

    Ray's workers have a ``replica`` of their own, which ``up`` does not carry.
    """
    there = set(names)
    return tuple(label for label in COPY_LABELS if label in there) if there else COPY_LABELS[:2]


async def _asked(api: PrometheusApi, query: str, first: int, last: int) -> tuple[Series, ...]:
    """Return the values at the ends of the bins, and at the begin of the first."""
    start, end = Timestamp(first * BIN), Timestamp(last * BIN)
    return await api.query_range(query, start=start, end=end, step=BIN)


def _column(found: Iterable[Series]) -> dict[int, float]:
    values = {round(at / BIN) - 1: float(text) for one in found for at, text in one.values}
    return {number: value for number, value in values.items() if math.isfinite(value)}


def _bin(number: int, columns: Mapping[Metric, Column]) -> WorkBin:
    prompts, cached = (
        columns[metric].get(number)
        for metric in (Metric.PROMPT_TOKENS, Metric.CACHED_PROMPT_TOKENS)
    )
    finished = columns[Metric.REQUESTS_FINISHED].get(number)
    return WorkBin(
        start=Timestamp(number * BIN),
        seconds=BIN,
        prompt_tokens=None if prompts is None else max(0.0, prompts - (cached or 0.0)),
        output_tokens=columns[Metric.GENERATION_TOKENS].get(number),
        requests=None if finished is None else max(0.0, finished + _grown(number, columns)),
        masked=finished is None,
    )


def _grown(number: int, columns: Mapping[Metric, Column]) -> float:
    """Return by how much what is in flight grew; what is not known at both ends did not."""
    return sum(
        column[number] - column[number - 1]
        for column in (columns[Metric.REQUESTS_RUNNING], columns[Metric.REQUESTS_WAITING])
        if number in column and number - 1 in column
    )
