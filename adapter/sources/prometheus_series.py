"""Series of a Prometheus → per replica the exposition that a scrape of it gave.

A series in a store carries the engine's own labels and those that the scrape added. The latter
are what the target's ``up`` carries, so what is left over is the engine's: with it the text of a
scrape is written again, and read by the one reader there is.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.engines import ENGINES
from adapter.fleet.read import AUTO
from adapter.fleet.units import Timestamp
from adapter.policy.document import PrometheusSource
from adapter.sources.prometheus_api import Series

UP: Final = "up"

COPY_LABELS: Final = ("prometheus_replica", "prometheus", "replica", "__replica__")
"""What tells the series of one Prometheus of a pair from the other's."""

_ADDED: Final = frozenset(
    {"job", "instance", "namespace", "pod", "container", "endpoint", "service", "node", "cluster"}
)
"""What a scrape usually adds: for stores that hold no ``up`` of the target."""

_PLACES: Final = ("cluster", "namespace")
"""Beside its own label these tell replicas apart: StatefulSets repeat the names of their pods."""

_SAME_SCRAPE: Final = 0.75
"""Share of the time between two scrapes: a sample that is older stopped one scrape ago."""

_ALONE: Final = 1.0
"""Seconds that take the place of the above where there was only one scrape."""

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scrape:
    """One scrape of one replica, as the store remembers it."""

    at: Timestamp
    """When it was scraped, by the clock of the one who did."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a store knows of one replica."""

    uid: str
    name: str
    job: str
    up: bool | None
    """Whether its last scrape succeeded; None where the store holds no ``up`` of it."""

    latest: Scrape | None
    """None: nothing in the window."""

    previous: Scrape | None


def series_names(engine: str) -> tuple[str, ...]:
    """Return every series that is read of ``engine``, in each of its spellings."""
    dialects = [one for one in ENGINES if engine in (AUTO, one.engine)]
    spelled = [one.spelled(spelling.prefix) for one in dialects for spelling in one.spellings]
    return tuple(sorted({name for dialect in spelled for name in dialect.wanted}))


def selector(names: Sequence[str], labels: Mapping[str, str]) -> str:
    """Return the PromQL that selects ``names`` with exactly these ``labels``."""
    matchers = [f'__name__=~"{"|".join(names)}"', *_matchers(labels)]
    return "{" + ",".join(matchers) + "}"


def up_selector(labels: Mapping[str, str]) -> str:
    """Return the PromQL that selects the ``up`` of the targets with ``labels``."""
    return f"{UP}{{{','.join(_matchers(labels))}}}"


def check_labels(source: PrometheusSource) -> None:
    """Refuse what cannot be a label: it would change the question.

    Raises:
        ValueError: names the first.
    """
    for label in (*source.labels, *filter(None, [source.replica_label])):
        if not _LABEL.fullmatch(label):
            raise ValueError(
                f"{label!r} in source.prometheus is no label: letters, digits and _, no digit first"
            )


_LABEL: Final = re.compile("[a-zA-Z_][a-zA-Z0-9_]*")


def _matchers(labels: Mapping[str, str]) -> list[str]:
    return [f"{label}={quoted(value)}" for label, value in sorted(labels.items())]


def quoted(value: str) -> str:
    """Return ``value`` as PromQL and expositions write one."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def remembered(
    ups: Iterable[Series],
    found: Iterable[Series],
    *,
    replica_label: str | None,
    jobs: frozenset[str] = frozenset(),
) -> tuple[Remembered, ...]:
    """Return the replicas that ``ups`` and the series ``found`` tell of, sorted.

    ``jobs`` are those that engines were seen in before. Of targets without a series of an engine
    only such count whose job has engines; while nobody knows of any, such that are down.
    """
    targets = _Targets(replica_label)
    for one in ups:
        targets.add_up(one)
    for one in found:
        targets.add(one)
    return targets.replicas(jobs)


@dataclass(slots=True)
class _Own:
    """A series as the engine wrote it, with what was seen of it."""

    key: str
    values: tuple[tuple[float, str], ...]


class _Targets:
    """What is gathered of each replica, by the Prometheus of the pair that saw it."""

    def __init__(self, replica_label: str | None) -> None:
        self._label = replica_label
        self._ups: dict[tuple[str, str], list[dict[str, str]]] = {}
        self._states: dict[str, dict[str, bool]] = {}
        """By replica and job: a sidecar that is up says nothing of the engine beside it."""

        self._names: dict[str, str] = {}
        self._engine_jobs: dict[str, str] = {}
        self._seen: dict[str, dict[Labels, list[_Own]]] = {}

    def add_up(self, series: Series) -> None:
        """Take a target's ``up``: its labels, and whether any of a pair reaches it."""
        labels = {label: value for label, value in series.metric.items() if label != "__name__"}
        uid = self._replica(labels)
        if uid is None or series.value is None:
            return
        self._ups.setdefault(_address(labels), []).append(labels)
        states, job = self._states.setdefault(uid, {}), labels.get("job", "")
        states[job] = states.get(job, False) or float(series.value[1]) == 1.0

    def add(self, series: Series) -> None:
        """Take a series of an engine."""
        labels = dict(series.metric)
        name = labels.pop("__name__", "")
        uid = self._replica(labels)
        if uid is None or not series.values:
            return
        self._engine_jobs.setdefault(uid, labels.get("job", ""))
        added = self._added(labels)
        own = {label: value for label, value in labels.items() if label not in added}
        for label in [label for label in own if label.startswith("exported_")]:
            if label.removeprefix("exported_") in added:
                own[label.removeprefix("exported_")] = own.pop(label)
        copy = tuple((label, labels[label]) for label in COPY_LABELS if label in added & {*labels})
        text = ",".join(f"{label}={quoted(value)}" for label, value in sorted(own.items()))
        seen = self._seen.setdefault(uid, {}).setdefault(copy, [])
        seen.append(_Own(f"{name}{{{text}}}", series.values))

    def replicas(self, jobs: frozenset[str]) -> tuple[Remembered, ...]:
        """Return what was gathered, without the targets that are gone or no engines."""
        told = {job for states in self._states.values() for job in states}
        engines = jobs | set(self._engine_jobs.values())
        uids = {
            uid for uid in self._seen if uid in self._states or self._engine_jobs[uid] not in told
        }
        for uid, states in self._states.items():
            if engines & states.keys() or (not engines and not any(states.values())):
                uids.add(uid)
        return tuple(self._remembered(uid, engines) for uid in sorted(uids))

    def _remembered(self, uid: str, engines: set[str] | frozenset[str]) -> Remembered:
        states = self._states.get(uid, {})
        of_engines = {job: up for job, up in states.items() if job in engines} or states
        job = self._engine_jobs.get(uid, min(of_engines, default=""))
        latest, previous = _scrapes(self._seen.get(uid, {}))
        up = any(of_engines.values()) if states else None
        return Remembered(uid, self._names[uid], job, up, latest, previous)

    def _replica(self, labels: Mapping[str, str]) -> str | None:
        """Return which replica a series is of; None where no label tells."""
        candidates = ("pod", "instance") if self._label is None else (self._label,)
        name = next((labels[label] for label in candidates if labels.get(label)), None)
        if name is None:
            return None
        uid = "/".join([*(labels[place] for place in _PLACES if labels.get(place)), name])
        self._names[uid] = name
        return uid

    def _added(self, labels: Mapping[str, str]) -> frozenset[str]:
        """Return the labels of a series that its scrape added."""
        for target in self._ups.get(_address(labels), ()):
            if target.items() <= labels.items():
                return frozenset(target)
        copies = set(COPY_LABELS)
        if "WorkerId" in labels:
            copies.discard("replica")  # Ray's own: there it tells workers apart
        return _ADDED | copies | ({self._label} if self._label else set())


def _address(labels: Mapping[str, str]) -> tuple[str, str]:
    return labels.get("job", ""), labels.get("instance", "")


def _scrapes(copies: Mapping[Labels, list[_Own]]) -> tuple[Scrape | None, Scrape | None]:
    """Return the last two scrapes, of the copy that is newest."""
    if not copies:
        return None, None
    newest = max(sorted(copies), key=lambda copy: max(one.values[-1][0] for one in copies[copy]))
    series = copies[newest]
    at = max(one.values[-1][0] for one in series)
    earlier = [
        one.values[-2][0] for one in series if one.values[-1][0] == at and len(one.values) > 1
    ]
    before = max(earlier, default=None)
    reach = _ALONE if before is None else _SAME_SCRAPE * (at - before)
    latest = _scrape(series, at, reach)
    return latest, None if before is None else _scrape(series, before, reach)


def _scrape(series: Iterable[_Own], at: float, reach: float) -> Scrape:
    """Return the text of the scrape at ``at``: what was last seen well before belongs to others."""
    lines = []
    for one in series:
        value = next((text for when, text in reversed(one.values) if when <= at), None)
        when = next((when for when, _ in reversed(one.values) if when <= at), None)
        if value is not None and when is not None and when > at - reach:
            lines.append(f"{one.key} {value}\n")
    return Scrape(Timestamp(at), "".join(sorted(lines)).encode())
