"""Public traces as curves, decks and requests: the files handed over, and their native formats."""

import csv
import gzip
import json
import math
import os
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

from adapter.controller.errors import AdapterError
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.synthetic import Curve, Deck, quantile_deck
from adapter.simulator.workload import Arrival

VARIABLE: Final = "LEADTIME_TRACES"
DEFAULT: Final = Path("../shared/traces")
"""Relative to the directory that the command is run in, which is the repository's."""


class TraceError(AdapterError):
    """A trace that is not there or cannot be read: names the file, the line and the cause."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A recorded load: when it began, how it went, and how long its requests are."""

    name: str
    begin: Timestamp
    curve: Curve
    deck: Deck
    remark: str
    """What is not original about it: to be said wherever its numbers are."""


def directory() -> Path:
    """Return where the traces are.

    Raises:
        TraceError: there is no such directory.
    """
    path = Path(os.environ.get(VARIABLE) or DEFAULT)
    if not path.is_dir():
        raise TraceError(
            f"{path}: no directory of traces: set {VARIABLE} to one, or play a synthetic load; "
            f"the traces are public data and not part of this repository"
        )
    return path


def trace(name: str, *, at: Path | None = None) -> Trace:
    """Return the trace called ``name`` from the directory ``at``, or the configured one.

    Raises:
        TraceError: no such trace, or its file is missing or damaged.
    """
    if name not in TRACES:
        raise TraceError(f"no trace {name!r}: there are {', '.join(TRACES)}")
    return TRACES[name](directory() if at is None else at)


def _azure_week(place: Path, kind: str, *, begin: str) -> Trace:
    points = [
        (row.number("timestamp_s"), row.number("requests_per_min") / 60)
        for row in rows(place / f"azure2024_{kind}_week_digitised.csv")
    ]
    deck = _deck(place / "azure2024_token_quantiles_digitised.csv", kind)
    remark = "digitised from published plots; minute noise and token correlation are ours"
    return Trace(f"azure-{kind}", _utc(begin), Curve(tuple(points)), deck, remark)


def _servegen(place: Path, model: str) -> Trace:
    found = list(rows(place / f"servegen_{model}_10min.csv"))
    curve = Curve(
        tuple((row.number("timestamp_s"), row.number("rate_rps")) for row in found),
        tuple(max(1.0, row.number("idc")) for row in found),
    )
    remark = "10-minute rates; token lengths cover a part of the clients"
    return Trace(
        f"servegen-{model}", _utc(_SOME_MONDAY), curve, servegen_deck(place, model), remark
    )


def servegen_deck(place: Path, model: str) -> Deck:
    """Return the request lengths of one of ServeGen's models, prompts and outputs independent."""
    return _deck(place / "servegen_token_quantiles.csv", model)


def _deck(path: Path, what: str) -> Deck:
    found = list(rows(path))
    prompts, outputs = (
        [(row.number("percentile") / 100, row.number(f"{what}_{side}_tokens")) for row in found]
        for side in ("input", "output")
    )
    return quantile_deck(prompts, outputs)


def _taxi(place: Path) -> Trace:
    points = [
        (row.number("timestamp_s"), row.number("requests") / 1800)
        for row in rows(place / "nyc_taxi_30min.csv")
    ]
    deck = _deck(place / "azure2024_token_quantiles_digitised.csv", "conv")
    remark = "taxi rides, not requests: a long curve with holidays, played with Azure's tokens"
    return Trace("nyc-taxi", _utc("2014-07-01"), Curve(tuple(points)), deck, remark)


_SOME_MONDAY: Final = "2024-05-13"
"""ServeGen does not say which weekday its traces begin on, only that it is midnight."""

TRACES: Final[Mapping[str, Callable[[Path], Trace]]] = {
    "azure-conv": lambda place: _azure_week(place, "conv", begin="2024-05-12"),
    "azure-code": lambda place: _azure_week(place, "code", begin="2024-05-10"),
    "servegen-m-small": lambda place: _servegen(place, "m-small"),
    "servegen-m-large": lambda place: _servegen(place, "m-large"),
    "nyc-taxi": _taxi,
}
"""By name; each reads its files from the directory that it is given."""


def _utc(day: str) -> Timestamp:
    return Timestamp(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


@dataclass(frozen=True, slots=True)
class Client:
    """One of ServeGen's clients: windows of 10 minutes with a rate and the gaps' variation."""

    name: str
    windows: Mapping[float, tuple[float, float]]
    """By the seconds at which each begins: requests per second, and the gaps' coefficient."""

    @property
    def requests(self) -> float:
        """Return how many it sends in all, but for a constant."""
        return sum(rate for rate, _ in self.windows.values())


def clients(path: Path) -> tuple[Client, ...]:
    """Return the clients of a ServeGen file, by name."""
    windows: dict[str, dict[float, tuple[float, float]]] = {}
    for row in rows(path):
        of_client = windows.setdefault(row.text("client"), {})
        of_client[row.number("timestamp_s")] = (row.number("rate_rps"), row.number("cv"))
    return tuple(Client(name, windows[name]) for name in sorted(windows))


def some_clients(every: Iterable[Client], *, share: float, seed: int) -> tuple[Client, ...]:
    """Return whole clients that send about ``share`` of all requests, 0..1, drawn at random.

    A client that would overshoot is left out, so that one large one does not make the load.
    """
    drawn = sorted(every, key=lambda client: client.name)
    random.Random(seed).shuffle(drawn)
    room = share * sum(client.requests for client in drawn)
    chosen: list[Client] = []
    for client in drawn:
        if client.requests <= room:
            chosen.append(client)
            room -= client.requests
    return tuple(sorted(chosen, key=lambda client: client.name))


def together(chosen: Iterable[Client], *, length: Seconds, window: Seconds) -> Curve:
    """Return the load of ``chosen`` clients; a client without a window was silent in it.

    Independent renewal processes superpose: in the long run each has as its index of dispersion
    the square of its gaps' coefficient of variation, and counts add up with their rates.
    """
    many = tuple(chosen)
    points, dispersions = [], []
    for number in range(math.ceil(length / window)):
        after = number * window
        parts = [client.windows[after] for client in many if after in client.windows]
        rate = sum(part for part, _ in parts)
        points.append((after, rate))
        varied = sum(part * cv**2 for part, cv in parts)
        dispersions.append(max(1.0, varied / rate) if rate > 0 else 1.0)
    return Curve(tuple(points), tuple(dispersions))


def requests(path: Path) -> Iterator[Arrival]:
    """Yield the requests of a trace in one of the known formats, the first one at 0 s.

    Ours and LLMServingSim's (``timestamp_s``, ``input_tokens``, ``output_tokens``), Azure's
    (``TIMESTAMP``, ``ContextTokens``, ``GeneratedTokens``), BurstGPT's (``Timestamp``, ``Request
    tokens``, ``Response tokens``) as CSV, and Mooncake's JSON lines. A request without an answer
    counts as one token: its prompt was computed.

    Raises:
        TraceError: the format is none of these, or a row is damaged; names the line.
    """
    first: float | None = None
    latest = -math.inf
    for row in records(path):
        at, prompt, output = row.request()
        first = at if first is None else first
        if at < latest:
            raise row.error(f"{latest - at:g} s before the row above: expected rising times")
        latest = at
        yield Arrival(Seconds(at - first), prompt, output)


def deck_of(path: Path) -> Deck:
    """Return the lengths of all requests of a trace as a deck: correlated as they were."""
    return [(arrival.prompt_tokens, arrival.output_tokens) for arrival in requests(path)]


_FORMATS: Final = (
    ("timestamp_s", "input_tokens", "output_tokens", 1.0),
    ("TIMESTAMP", "ContextTokens", "GeneratedTokens", 1.0),
    ("Timestamp", "Request tokens", "Response tokens", 1.0),
    ("timestamp", "input_length", "output_length", 1e-3),
)
"""The columns of moment, prompt and output tokens, and the moment's unit in seconds."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a file, and where it stands."""

    path: Path
    line: int
    values: Mapping[str, object]

    def error(self, what: str) -> TraceError:
        """Return the error that says what is wrong with this row."""
        return TraceError(f"{self.path}:{self.line}: {what}")

    def text(self, column: str) -> str:
        """Return a value as it stands; raises TraceError where the column is missing."""
        value = self.values.get(column)
        if value is None:
            found = ", ".join(map(str, self.values))
            raise self.error(f"no value in column {column!r}; found the columns {found}")
        return str(value)

    def number(self, column: str) -> float:
        """Return a value that is finite and not negative; raises TraceError where it is none."""
        text = self.text(column)
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise self.error(f"{column} is {text!r}: expected a number, 0 or more")
        return value

    def request(self) -> tuple[float, int, int]:
        """Return moment in seconds, prompt and output tokens, each of these at least 1."""
        for moment, prompt, output, unit in _FORMATS:
            if moment in self.values:
                tokens = (max(1, round(self.number(column))) for column in (prompt, output))
                return self._moment(moment) * unit, *tokens  # type: ignore[return-value]
        known = "; ".join(", ".join(columns[:3]) for columns in _FORMATS)
        found = ", ".join(map(str, self.values))
        raise self.error(f"columns {found}: expected those of one format: {known}")

    def _moment(self, column: str) -> float:
        """Return a moment given as a number or as a date with a time of day, UTC."""
        text = self.text(column)
        try:
            moment = datetime.fromisoformat(text.strip()[:26])
        except ValueError:
            return self.number(column)
        return moment.replace(tzinfo=UTC).timestamp()


def rows(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file with a header, also of a gzipped one.

    Raises:
        TraceError: no such file, or a row with more or fewer values than the header.
    """
    with _opened(path) as file:
        reader = csv.DictReader(file)
        for values in reader:
            row = Row(path, reader.line_num, values)
            if None in values or None in values.values():
                raise row.error(f"expected {len(reader.fieldnames or ())} values as in the header")
            yield row


def records(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file, or the objects of JSON lines where its name says so.

    Raises:
        TraceError: no such file, or one that is damaged; names the line.
    """
    if ".json" not in path.name:
        yield from rows(path)
        return
    with _opened(path) as file:
        for line, text in enumerate(file, start=1):
            if text.strip():
                yield Row(path, line, _object(path, line, text))


def _object(path: Path, line: int, text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise TraceError(f"{path}:{line}: {error}: expected one JSON object per line") from error
    if not isinstance(found, dict):
        raise TraceError(f"{path}:{line}: {text[:40]!r}: expected a JSON object")
    return found


def _opened(path: Path) -> TextIO:
    try:
        if path.suffix == ".gz":
            return gzip.open(path, "rt", encoding="utf-8")
        return path.open(encoding="utf-8-sig", newline="")
    except OSError as error:
        raise TraceError(
            f"{path}: {error.strerror}: set {VARIABLE} to a directory that holds this trace"
        ) from error
