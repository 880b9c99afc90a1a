"""A recording: every snapshot and what was decided on it, one JSON line each, and back.

A session begins with a line of the policy and the memory that it began with. What readings have
in common (which series they came from, bounds of buckets) is written once, as a shape, and a
reading of the tick before is told as such: a tick costs some 500 bytes a replica. Numbers come
back to the last bit.
"""

import gzip
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from adapter.controller.errors import AdapterError
from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot, Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Decision
from adapter.scaling.state import ScalingState, dump_state, load_state

RECORDING_VERSION: Final = 1
"""Raised when the layout changes; an older or newer layout is refused, not guessed at."""

Json = dict[str, Any]
"""As it stands in a line; nothing of it leaves this module."""

_FLEET: Final = TypeAdapter(FleetSnapshot)
_REPLICA: Final = TypeAdapter(Replica)
_READING: Final = TypeAdapter(Reading)
_GAP: Final = TypeAdapter(Gap)
_DECISION: Final = TypeAdapter(Decision)

_NOTHING: Final = Gap(Timestamp(0.0), Cause.NOT_SCRAPED, "")
"""Stands in a replica's place for its sample, which is written apart."""


class RecordingError(AdapterError):
    """A recording that cannot be read: names the file, the line and the cause. The user's."""


@dataclass(frozen=True, slots=True)
class Session:
    """A loop was started: with this memory, for this policy."""

    policy: str
    """``namespace/name``."""

    state: ScalingState


@dataclass(frozen=True, slots=True)
class Tick:
    """What was seen, and what was decided on it."""

    fleet: FleetSnapshot
    decision: bytes
    """As ``dump_decision`` has it: compared byte for byte."""


def dump_decision(decision: Decision) -> bytes:
    """Return ``decision`` as JSON."""
    return _DECISION.dump_json(decision)


def load_decision(data: bytes) -> Decision:
    """Return the decision in ``data``; raises ValueError where it is none."""
    return _DECISION.validate_json(data)


@dataclass(slots=True)
class Writer:
    """Turns sessions and ticks into lines; it remembers what it need not write again."""

    _shapes: dict[str, int] = field(default_factory=dict)
    _latest: dict[str, Reading] = field(default_factory=dict)

    def session(self, session: Session) -> str:
        """Return the line that begins a session; from here on everything is written anew."""
        self._shapes.clear()
        self._latest.clear()
        line = {
            "recording": RECORDING_VERSION,
            "policy": session.policy,
            "state": json.loads(dump_state(session.state)),
        }
        return _line(line)

    def tick(self, fleet: FleetSnapshot, decision: Decision) -> str:
        """Return the lines of one tick: shapes that are new, then the tick itself."""
        before = len(self._shapes)
        document = _FLEET.dump_python(replace(fleet, replicas=()), mode="json")
        document["replicas"] = [self._replica(replica) for replica in fleet.replicas]
        self._latest = {r.uid: r.sample for r in fleet.replicas if isinstance(r.sample, Reading)}
        shapes = "".join(
            _line({"shape": number, **json.loads(text)})
            for text, number in self._shapes.items()
            if number >= before
        )
        text = json.dumps(document, separators=_TIGHT)
        return f'{shapes}{{"fleet":{text},"decision":{dump_decision(decision).decode()}}}\n'

    def _replica(self, replica: Replica) -> Json:
        bare = replace(replica, sample=_NOTHING, previous=None)
        document: Json = _REPLICA.dump_python(bare, mode="json")
        if isinstance(replica.sample, Gap):
            document["sample"] = {"gap": _GAP.dump_python(replica.sample, mode="json")}
        else:
            document["sample"] = self._reading(replica.sample)
        if replica.previous is not None:
            known = self._latest.get(replica.uid) == replica.previous
            document["previous"] = _BEFORE if known else self._reading(replica.previous)
        return document

    def _reading(self, reading: Reading) -> Json:
        bare = replace(reading, at=Timestamp(0.0), values={}, ttft=None, ranks={})
        shape = _READING.dump_python(bare, mode="json")
        shape["unserved"] = sorted(shape["unserved"])
        document = {
            "of": shape,
            "metrics": list(reading.values),
            "bounds": _finite(reading.ttft),
            "ranks": {name: [list(r.values), _finite(r.ttft)] for name, r in reading.ranks.items()},
        }
        text = json.dumps(document, separators=_TIGHT)
        return {
            "shape": self._shapes.setdefault(text, len(self._shapes)),
            "at": reading.at,
            "values": list(reading.values.values()),
            "ttft": _counts(reading.ttft),
            "ranks": [_rank(rank, reading) for rank in reading.ranks.values()],
        }


_TIGHT: Final = (",", ":")
_BEFORE: Final = "before"
"""In a replica's place of ``previous``: the reading that was its sample in the tick before."""


def _line(document: Json) -> str:
    return json.dumps(document, separators=_TIGHT) + "\n"


def _rank(rank: Rank, reading: Reading) -> list[object]:
    """Return values and TTFT of a rank: mostly those of the whole, which are not repeated."""
    alike = all(reading.values.get(metric) == value for metric, value in rank.values.items())
    return [
        None if alike else list(rank.values.values()),
        True if rank.ttft == reading.ttft else _counts(rank.ttft),
    ]


def _finite(histogram: Histogram | None) -> list[float]:
    """Return the bounds without infinity, which has no place in JSON and is always the last."""
    bounds = () if histogram is None else histogram.bounds
    return [bound for bound in bounds if math.isfinite(bound)]


def _counts(histogram: Histogram | None) -> list[object] | None:
    return None if histogram is None else [histogram.counts, histogram.sum_seconds]


def read_recording(path: Path) -> Iterator[Session | Tick]:
    """Yield what a recording holds, in its order; a file that ends in ``.gz`` is unpacked.

    A last line that was not finished, of a process that was killed, is left out.

    Raises:
        RecordingError: it cannot be read, or a line is none of a recording; names it.
    """
    reader = _Reader(path)
    try:
        with _opened(path) as file:
            for number, text in enumerate(file, start=1):
                if text.endswith("\n"):
                    found = reader.line(number, text)
                    if found is not None:
                        yield found
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RecordingError(f"{path}: {reason}: {_EXPECTED}") from error
    if not reader.began:
        raise RecordingError(f"{path}: holds no line of a recording: {_EXPECTED}")


_EXPECTED: Final = "expected what `leadtime serve --record DIR` writes"


def _opened(path: Path) -> Any:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


class _Reader:
    """Turns lines back; it remembers what the writer did not write again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._shapes: dict[int, _Shape] = {}
        self._latest: dict[str, Reading] = {}
        self.began = False

    def line(self, number: int, text: str) -> Session | Tick | None:
        """Return what stands in a line; None of a shape, which is remembered."""
        try:
            document = json.loads(text)
            return self._document(document, text)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            what = " ".join(str(error).split())[:200] or type(error).__name__
            raise RecordingError(f"{self._path}:{number}: {what}: {_EXPECTED}") from error

    def _document(self, document: Json, text: str) -> Session | Tick | None:
        if "recording" in document:
            return self._session(document)
        if not self.began:
            raise ValueError("a tick before the line of its session")
        if "shape" in document:
            self._shapes[document["shape"]] = _Shape.of(document)
            return None
        return self._tick(document, text)

    def _session(self, document: Json) -> Session:
        version = document["recording"]
        if version != RECORDING_VERSION:
            raise ValueError(f"recording of version {version}, this release reads 1")
        self.began = True
        self._shapes, self._latest = {}, {}
        return Session(str(document["policy"]), load_state(json.dumps(document["state"]).encode()))

    def _tick(self, document: Json, text: str) -> Tick:
        fleet: Json = document["fleet"]
        replicas = tuple(self._replica(each) for each in fleet.pop("replicas"))
        snapshot = _FLEET.validate_python({**fleet, "replicas": ()})
        self._latest = {r.uid: r.sample for r in replicas if isinstance(r.sample, Reading)}
        begin = text.index(_DECIDED) + len(_DECIDED)
        return Tick(replace(snapshot, replicas=replicas), text[begin:-2].encode())

    def _replica(self, document: Json) -> Replica:
        sample, previous = document["sample"], document["previous"]
        bare = _REPLICA.validate_python(
            {**document, "sample": _NOTHING, "previous": None}, strict=False
        )
        read = _GAP.validate_python(sample["gap"]) if "gap" in sample else self._reading(sample)
        before = None
        if previous is not None:
            before = self._latest[bare.uid] if previous == _BEFORE else self._reading(previous)
        return replace(bare, sample=read, previous=before)

    def _reading(self, document: Json) -> Reading:
        shape = self._shapes[document["shape"]]
        values = dict(zip(shape.whole.metrics, document["values"], strict=True))
        ttft = _histogram(shape.whole.bounds, document["ttft"])
        told = zip(shape.ranks.items(), document["ranks"], strict=True)
        ranks = {name: _ranked(of, rank, values, ttft) for (name, of), rank in told}
        return replace(
            shape.of_reading, at=Timestamp(document["at"]), values=values, ttft=ttft, ranks=ranks
        )


_DECIDED: Final = ',"decision":'


@dataclass(frozen=True, slots=True)
class _Part:
    """Which metrics a rank, or the whole of a reading, has values of, and its buckets."""

    metrics: tuple[Metric, ...]
    bounds: tuple[float, ...]

    @classmethod
    def of(cls, metrics: list[str], bounds: list[float]) -> "_Part":
        return cls(tuple(Metric(name) for name in metrics), (*bounds, math.inf))


@dataclass(frozen=True, slots=True)
class _Shape:
    of_reading: Reading
    whole: _Part
    ranks: Mapping[str, _Part]

    @classmethod
    def of(cls, document: Json) -> "_Shape":
        return cls(
            _READING.validate_python(document["of"]),
            _Part.of(document["metrics"], document["bounds"]),
            {name: _Part.of(*part) for name, part in document["ranks"].items()},
        )


def _histogram(bounds: tuple[float, ...], written: list[Any] | None) -> Histogram | None:
    if written is None:
        return None
    counts, total = written
    if len(counts) != len(bounds):
        raise ValueError(f"{len(counts)} buckets where the shape has {len(bounds)}")
    return Histogram(bounds, tuple(counts), total)


def _ranked(
    part: _Part, written: list[Any], whole: Mapping[Metric, float], ttft: Histogram | None
) -> Rank:
    values, counts = written
    if values is None:
        told = {metric: whole[metric] for metric in part.metrics}
    else:
        told = dict(zip(part.metrics, values, strict=True))
    return Rank(told, ttft if counts is True else _histogram(part.bounds, counts))
