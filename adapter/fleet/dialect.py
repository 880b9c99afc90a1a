"""What an engine file declares: under which names, in which releases, each metric is exposed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from adapter.fleet.metrics import Metric


@dataclass(frozen=True)
class Name:
    """One name that a metric has or had."""

    series: str
    """The series, or for a histogram the name without ``_bucket``."""

    where: Mapping[str, str] = field(default_factory=dict)
    """Labels that a sample must carry to count."""

    since: str = ""
    """The first release known to expose it; empty: every release looked at."""

    until: str = ""
    """The release that removes it; empty while it is current. Anything else warns."""

    unit: float = 1.0
    """What one of its units is in ours: 1e-6 for microseconds."""

    over: "Name | None" = None
    """Divide by this one: used blocks over all blocks."""

    minus: "Name | None" = None
    """Subtract this one: a gauge that includes another."""

    caution: str = ""
    """What to know when this is the name that was found; a warning of the reading."""

    def __str__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        labels = ",".join(f'{label}="{value}"' for label, value in self.where.items())
        text = f"{self.series}{{{labels}}}" if labels else self.series
        if self.over is not None:
            return f"{text} / {self.over}"
        return text if self.minus is None else f"{text} - {self.minus}"


@dataclass(frozen=True, slots=True)
class Source:
    """Where one metric is read."""

    names: tuple[Name, ...]
    """Newest first: the first that is there counts; two of them are never added up."""

    plus: tuple[tuple[Name, ...], ...] = ()
    """Further parts of the same quantity, added where they are there; each newest first."""

    expected: bool = True
    """False where releases, flags or backends of this engine lack it: absence is no fault."""

    hidden_by: tuple[str, ...] = ()
    """Series next to which this number is meaningless, so that it counts as not exported."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """A way that the names' common prefix is written: relabelings and wrappers change it."""

    prefix: str
    marks: tuple[str, ...]
    """Starts of series that prove this spelling is in use."""


@dataclass(frozen=True, eq=False)
class Dialect:
    """An engine's vocabulary; compares by identity."""

    engine: str
    spellings: tuple[Spelling, ...]
    """The first is how the names below are written; the first whose mark is there is used."""

    sources: Mapping[Metric, Source]
    """A metric without an entry is one that this engine never exports."""

    ttft: Source | None = None
    """The histogram of the time to first token; None where the engine has none."""

    model_labels: tuple[str, ...] = ("model_name",)
    """Labels that name the model, newest first; empty where the engine names none."""

    nameless: frozenset[str] = frozenset()
    """Values of the model label that name no model."""

    rank_labels: tuple[str, ...] = ()
    """Labels that tell data-parallel ranks, or workers behind one endpoint, apart."""

    copy_labels: frozenset[str] = frozenset()
    """Labels whose series are copies of one quantity: they are not added up."""

    total_labels: Mapping[str, str] = field(default_factory=dict)
    """Labels with the value that marks a total: the other values are its parts."""

    lingering_label: str = ""
    """A label of workers whose series outlive them; several values warn."""

    hint: str = ""
    """The usual cause of an answer without its series."""

    def source_of(self, metric: Metric) -> Source | None:
        """Return where ``metric`` is read; the fullest rank's usage from where the usage is."""
        same = Metric.KV_CACHE_USAGE if metric is Metric.KV_CACHE_USAGE_PEAK else metric
        return self.sources.get(same)

    def spelled(self, prefix: str) -> "Dialect":
        """Return the same dialect with its names' prefix written as ``prefix``."""
        usual = self.spellings[0].prefix
        if prefix == usual:
            return self
        swap = _Respelling(usual, prefix)
        sources = {metric: swap.source(source) for metric, source in self.sources.items()}
        ttft = None if self.ttft is None else swap.source(self.ttft)
        return replace(self, sources=sources, ttft=ttft)

    @cached_property
    def wanted(self) -> frozenset[str]:
        """Every series that is read."""
        found: set[str] = set()
        for source in self.sources.values():
            found.update(source.hidden_by)
            for name in _all_names(source):
                found.update(_series(name))
        for name in self.ttft.names if self.ttft else ():
            found.update(histogram_series(name.series))
        return frozenset(found)

    @cached_property
    def leading(self) -> frozenset[str]:
        """The series that prove a model or a rank to be there: no optional parts."""
        names = [name for source in self.sources.values() for name in source.names]
        leading = {name.series for name in names}
        for name in self.ttft.names if self.ttft else ():
            leading.update(histogram_series(name.series))
        return frozenset(leading)


def histogram_series(stem: str) -> tuple[str, str, str]:
    """Return the series of a histogram; Triton's manual shows buckets without their suffix."""
    return (f"{stem}_bucket", stem, f"{stem}_sum")


@dataclass(frozen=True, slots=True)
class _Respelling:
    usual: str
    prefix: str

    def source(self, source: Source) -> Source:
        return replace(
            source,
            names=tuple(map(self.name, source.names)),
            plus=tuple(tuple(map(self.name, names)) for names in source.plus),
            hidden_by=tuple(map(self.series, source.hidden_by)),
        )

    def name(self, name: Name) -> Name:
        over = None if name.over is None else self.name(name.over)
        minus = None if name.minus is None else self.name(name.minus)
        return replace(name, series=self.series(name.series), over=over, minus=minus)

    def series(self, series: str) -> str:
        rest = series.removeprefix(self.usual)
        return series if rest == series else self.prefix + rest


def _all_names(source: Source) -> Iterator[Name]:
    yield from source.names
    for names in source.plus:
        yield from names


def _series(name: Name) -> Iterator[str]:
    yield name.series
    for other in (name.over, name.minus):
        if other is not None:
            yield from _series(other)
