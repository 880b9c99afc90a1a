"""From what is named on a command line to a load: a shipped one, a known trace, or any file."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator import traces
from adapter.simulator.backtest.history import OUTPUT_TOKENS, PROMPT_TOKENS
from adapter.simulator.backtest.load import Bin, Drawn, Load, Requests, of_bins
from adapter.simulator.stretches import KNOWN
from adapter.simulator.synthetic import DAY, SCENARIOS, Steady
from adapter.simulator.traces import Row, TraceError
from adapter.simulator.world import SUNDAY

_UNDATED: Final = (
    "The file tells no date: it is played as if it began on Monday 2024-05-13, 00:00 UTC."
)
_MONDAY: Final = Timestamp(SUNDAY + DAY)
_DATED: Final = 1e9
"""Seconds from which a moment is a date (2001) and no time since some begin."""


def open_load(what: str, *, form: str | None = None) -> Load:
    """Return the load in the file ``what``, or the one that is shipped or known by that name.

    ``form`` is one of ``FORMATS``; None: told from the columns.

    Raises:
        TraceError: neither a file nor a name, not of the format, or damaged; says which.
    """
    path = Path(what)
    if not path.exists() and "/" not in what and what in KNOWN:
        return _named(what)
    if not path.is_file():
        raise TraceError(
            f"{what}: no such file, and no load of that name; there are {', '.join(KNOWN)}"
        )
    try:
        return FORMATS[form or _told_by(path)](path)
    except ValueError as error:
        raise TraceError(str(error)) from error


def _named(name: str) -> Drawn:
    if name in SCENARIOS:
        one = SCENARIOS[name]
        remarks = ("A synthetic load: no real traffic is in it.",)
        return Drawn(name, _MONDAY, one.length, one.rates, one.decks, remarks=remarks)
    found = traces.trace(name)
    remarks = (f"{found.name}: {found.remark}.",)
    curve, deck = found.curve, Steady(found.deck)
    return Drawn(found.name, found.begin, curve.length, curve, deck, remarks=remarks)


def _told_by(path: Path) -> str:
    """Return the format that the columns of the first row are of."""
    columns = next((set(row.values) for row in islice(traces.records(path), 1)), set())
    if not columns:
        raise TraceError(f"{path}: holds no row: expected a header and rows, or JSON lines")
    if {"start_s", "seconds"} <= columns:
        return "bins"
    return "rates" if columns & {"requests_per_min", "rate_rps"} else "requests"


def _requests(path: Path) -> Requests:
    every = tuple(traces.requests(path))
    if not every:
        raise TraceError(f"{path}: holds no request: there is nothing to play")
    first = next(traces.records(path)).request()[0]
    begin, remarks = _dated(first)
    last = Seconds(every[-1].after + 1.0)
    return Requests(path.name, begin, every, last, remarks)


def _rates(path: Path) -> Drawn:
    """Return the load of a file with a rate in each row: Azure's weeks, ServeGen's fortnights."""
    found = [(row.number("timestamp_s"), row) for row in traces.records(path)]
    if len(found) < 2:  # noqa: PLR2004 - a row alone tells no width
        raise TraceError(f"{path}: {len(found)} rows: expected two or more, they tell the step")
    begin, remarks = _dated(found[0][0])
    widths = [later - at for (at, _), (later, _) in pairwise(found)]
    for (at, row), width in zip(found[1:], widths, strict=True):
        if width <= 0:
            raise row.error(f"timestamp_s {at:g} is no later than the row before it")
    bins = [
        _rated(row, Timestamp(begin + at - found[0][0]), Seconds(width))
        for (at, row), width in zip(found, (*widths, widths[-1]), strict=True)
    ]
    return of_bins(path.name, bins, remarks=(*remarks, _AROUND_MEANS))


def _rated(row: Row, start: Timestamp, seconds: Seconds) -> Bin:
    if "requests_per_min" in row.values:
        minutes = seconds / 60
        return Bin(
            start,
            seconds,
            row.number("requests_per_min") * minutes,
            row.number("input_tokens_per_min") * minutes,
            row.number("output_tokens_per_min") * minutes,
        )
    requests = row.number("rate_rps") * seconds
    prompt, output = (_mean(row, side, usual) for side, usual in _SIDES)
    return Bin(start, seconds, requests, requests * prompt, requests * output)


_SIDES: Final = (
    ("input_tokens_mean", PROMPT_TOKENS),
    ("output_tokens_mean", OUTPUT_TOKENS),
)
_AROUND_MEANS: Final = (
    "Lengths are drawn around the means of each bin: the file tells no distribution."
)


def _mean(row: Row, column: str, usual: float) -> float:
    """Return the mean length that a row tells, or the usual one where it tells none."""
    return row.number(column) if row.values.get(column) else usual


def _bins(path: Path) -> Drawn:
    """Return the load of a file as ``Bin`` has it; ``masked`` may be left out."""
    found = list(_binned(path))
    if not found:
        raise TraceError(f"{path}: holds no row: there is nothing to play")
    begin, remarks = _dated(found[0].start)
    moved = [
        Bin(
            Timestamp(one.start - found[0].start + begin),
            one.seconds,
            one.requests,
            one.prompt_tokens,
            one.output_tokens,
            one.masked,
        )
        for one in found
    ]
    return of_bins(path.name, moved, remarks=(*remarks, _AROUND_MEANS))


def _binned(path: Path) -> Iterator[Bin]:
    for row in traces.records(path):
        seconds = row.number("seconds")
        if seconds <= 0:
            raise row.error("seconds is 0: expected the length of the bin")
        yield Bin(
            Timestamp(row.number("start_s")),
            Seconds(seconds),
            row.number("requests"),
            row.number("prompt_tokens"),
            row.number("output_tokens"),
            masked=str(row.values.get("masked", "")).strip().lower() in _TRUE,
        )


_TRUE: Final = {"1", "true", "yes"}


def _dated(first: float) -> tuple[Timestamp, tuple[str, ...]]:
    """Return when a file begins whose first moment is ``first``, and what is to be said of it."""
    return (Timestamp(first), ()) if first >= _DATED else (_MONDAY, (_UNDATED,))


FORMATS: Final[Mapping[str, Callable[[Path], Load]]] = {
    "requests": _requests,
    "rates": _rates,
    "bins": _bins,
}
"""By name: single requests (ours, Azure's, BurstGPT's, Mooncake's), a rate in each row (the
digitised Azure weeks, ServeGen), or bins with ``start_s, seconds, requests, prompt_tokens,
output_tokens`` and optionally ``masked``."""
