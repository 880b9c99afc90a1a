"""What was asked of the fleet in the past: offered work in bins of five minutes.

A source that knows the past, such as a Prometheus, makes ``WorkBin``s of five minutes on the grid
of ``BIN`` and hands them to ``WorkHistory.with_bins(..., keep=policy.spec.standby.history)``, once,
at the start. Bins that are there already stay: what was seen here is better than what is queried.
Coarser data is not stretched: a bin must start on the grid and last ``BIN`` seconds.
"""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ConfigDict, TypeAdapter, with_config

from adapter.fleet.units import Seconds, Timestamp

BIN: Final = Seconds(300.0)
HISTORY_VERSION: Final = 1

MOST_BINS: Final = 28 * 288
"""Four weeks, whatever the policy says: the least that shows each weekday four times."""

_REAL: Final = 0.2
"""Share of the median above which the neighbours of a zero say that it is a gap, not a night."""

_FLOAT_BYTES: Final = 4
_UNKNOWN: Final = math.nan


class HistoryError(ValueError):
    """A history that cannot be used: says why, and that it is begun anew."""


@dataclass(frozen=True, slots=True)
class WorkBin:
    """Work that arrived in ``seconds`` from ``start``; None: this was not counted."""

    start: Timestamp
    """On the grid: a multiple of ``BIN``."""

    seconds: Seconds
    prompt_tokens: float | None
    """Prompt tokens that were computed: without those from the prefix cache."""

    output_tokens: float | None
    requests: float | None
    """Requests that arrived, the waiting ones included."""

    masked: bool = False
    """Not to be believed: a gap of the scrape, or an outage of the fleet itself."""


@with_config(ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", extra="forbid"))
@dataclass(frozen=True, slots=True)
class WorkHistory:
    """Bins in a row, packed: four weeks are 97 kB, where floats in tuples were eight times that.

    Each column holds little-endian 32-bit floats, NaN where nothing is known. Immutable; equal
    bins are equal bytes.
    """

    version: int = HISTORY_VERSION
    first: int = 0
    """Number of the first bin: its start is ``first * BIN``."""

    prompt_tokens: bytes = b""
    output_tokens: bytes = b""
    requests: bytes = b""

    def __len__(self) -> int:
        """Return the bins from the first to the last, the masked ones included."""
        return len(self.requests) // _FLOAT_BYTES

    @property
    def end(self) -> Timestamp:
        """Return when the last bin ended."""
        return Timestamp((self.first + len(self)) * BIN)

    def with_bins(
        self, bins: Iterable[WorkBin], *, keep: Seconds, until: Timestamp | None = None
    ) -> "WorkHistory":
        """Return this history and ``bins``; what is known here already stays as it is.

        Masked bins are left out, so that a later source may still fill them. Nothing older than
        ``keep`` before the end is kept, nor anything that ends after ``until``.

        Raises:
            HistoryError: a bin is not on the grid, or holds what is no amount.
        """
        found: dict[int, WorkBin] = {}
        for one in bins:
            number = _number(one)
            if not one.masked and (until is None or (number + 1) * BIN <= until):
                found.setdefault(number, one)
        if not found:
            return self
        last, end = max(found), self.first + len(self)
        if len(self) and min(found) >= end and last - end < bins_of(keep):
            return self._followed_by([found.get(number) for number in range(end, last + 1)], keep)
        return self._mixed_with(found, keep)

    def _followed_by(self, later: Sequence[WorkBin | None], keep: Seconds) -> "WorkHistory":
        """Return this history with ``later`` right after it: nothing is unpacked for one bin."""
        surplus = max(0, len(self) + len(later) - bins_of(keep))
        own = (self.prompt_tokens, self.output_tokens, self.requests)
        columns = (
            (column + _pack(amounts))[surplus * _FLOAT_BYTES :]
            for column, amounts in zip(own, _columns(later), strict=True)
        )
        return WorkHistory(HISTORY_VERSION, self.first + surplus, *columns)

    def _mixed_with(self, found: Mapping[int, WorkBin], keep: Seconds) -> "WorkHistory":
        """Return this history with ``found`` where nothing is known."""
        last = max([*found, self.first + len(self) - 1] if len(self) else found)
        oldest = min([*found, self.first] if len(self) else found)
        first = max(oldest, last + 1 - bins_of(keep))
        given = _columns([found.get(number) for number in range(first, last + 1)])
        own = (self.prompt_tokens, self.output_tokens, self.requests)
        columns = (
            _pack(_merged(_unpack(column), self.first, amounts, first))
            for column, amounts in zip(own, given, strict=True)
        )
        return WorkHistory(HISTORY_VERSION, first, *columns)

    def bins(self) -> tuple[WorkBin, ...]:
        """Return the bins one by one; those of which nothing is known are masked."""
        columns = zip(
            _unpack(self.prompt_tokens),
            _unpack(self.output_tokens),
            _unpack(self.requests),
            strict=True,
        )
        return tuple(
            WorkBin(
                Timestamp((self.first + place) * BIN),
                BIN,
                prompts,
                outputs,
                requests,
                masked=prompts is None and outputs is None and requests is None,
            )
            for place, (prompts, outputs, requests) in enumerate(columns)
        )

    def offered(self) -> list[float | None]:
        """Return the work of each bin, None where it is not to be believed.

        Requests, because those that wait count in the bin in which they came; where the engine
        counts none, tokens.
        """
        requests = _unpack(self.requests)
        if all(amount is None for amount in requests):
            prompts, outputs = _unpack(self.prompt_tokens), _unpack(self.output_tokens)
            requests = [
                None if p is None or o is None else p + o
                for p, o in zip(prompts, outputs, strict=True)
            ]
        return believed(requests)


def bins_of(keep: Seconds) -> int:
    """Return how many bins ``keep`` is, at least one and at the most four weeks of them."""
    return max(1, min(MOST_BINS, math.ceil(keep / BIN)))


def believed(values: Sequence[float | None]) -> list[float | None]:
    """Return ``values`` without the zeros that stand between two busy neighbours.

    A quiet night fades out and in; work that stops and comes back at its level was not seen, or
    not let in.
    """
    told = list(values)
    if 0.0 not in told:
        return told
    busy = sorted(value for value in told if value)
    level = _REAL * busy[len(busy) // 2] if busy else math.inf
    place = 0
    while place < len(told):
        if told[place] != 0.0:
            place += 1
            continue
        end = place
        while end < len(told) and told[end] == 0.0:
            end += 1
        around = (told[place - 1] if place else None, told[end] if end < len(told) else None)
        if all(value is not None and value > level for value in around):
            told[place:end] = [None] * (end - place)
        place = end
    return told


def dump_history(history: WorkHistory) -> bytes:
    """Return ``history`` as JSON."""
    return _ADAPTER.dump_json(history)


def load_history(data: bytes) -> WorkHistory:
    """Return the history in ``data``.

    Raises:
        HistoryError: not a history, of another layout, or with columns that do not match.
    """
    try:
        history = _ADAPTER.validate_json(data)
    except ValueError as error:
        raise HistoryError(
            f"the history of offered work is damaged ({' '.join(str(error).split())[:120]}): "
            "it begins anew, and the daily curve with it"
        ) from error
    return trusted(history)


def trusted(history: WorkHistory, at: Timestamp | None = None) -> WorkHistory:
    """Return ``history`` if it is whole, and does not end after ``at``.

    Raises:
        HistoryError: it is not, or it does: then the clock was set back.
    """
    columns = (history.prompt_tokens, history.output_tokens, history.requests)
    if history.version != HISTORY_VERSION:
        raise HistoryError(
            f"the history of offered work has version {history.version}, this release reads "
            f"{HISTORY_VERSION}: it begins anew"
        )
    size = len(history.requests)
    if any(len(column) != size for column in columns) or size % _FLOAT_BYTES:
        raise HistoryError(
            f"the history of offered work has columns of {len(columns[0])}, {len(columns[1])} and "
            f"{size} bytes: it begins anew"
        )
    if len(history) > MOST_BINS or any(_bad(column) for column in columns):
        raise HistoryError(
            "the history of offered work holds more than four weeks, or amounts below 0: "
            "it begins anew"
        )
    if at is not None and history.end > at + BIN:
        raise HistoryError(
            f"the history of offered work ends {round(history.end - at)} s ahead of the clock, "
            "which was set back: it begins anew"
        )
    return history


def _number(one: WorkBin) -> int:
    """Return the place of ``one`` on the grid."""
    number, past = divmod(one.start, BIN)
    if past or one.seconds != BIN:
        raise HistoryError(
            f"a bin of {one.seconds:g} s at {one.start:.0f} is not on the grid: make bins of "
            f"{BIN:g} s that start at multiples of it"
        )
    amounts = (one.prompt_tokens, one.output_tokens, one.requests)
    if any(amount is not None and not 0 <= amount < math.inf for amount in amounts):
        raise HistoryError(f"the bin at {one.start:.0f} holds {amounts}: amounts are 0 or more")
    return int(number)


def _columns(bins: Sequence[WorkBin | None]) -> tuple[list[float | None], ...]:
    return (
        [None if one is None else one.prompt_tokens for one in bins],
        [None if one is None else one.output_tokens for one in bins],
        [None if one is None else one.requests for one in bins],
    )


def _merged(
    own: Sequence[float | None], own_first: int, other: Sequence[float | None], first: int
) -> list[float | None]:
    """Return ``own`` where it is known and ``other`` elsewhere, from the bin ``first``."""
    merged = list(other)
    for place in range(max(own_first, first), own_first + len(own)):
        known = own[place - own_first]
        if known is not None:
            merged[place - first] = known
    return merged


def _pack(values: Sequence[float | None]) -> bytes:
    told = [_UNKNOWN if value is None else value for value in values]
    return struct.pack(f"<{len(told)}f", *told)


def _unpack(column: bytes) -> list[float | None]:
    found = struct.unpack(f"<{len(column) // _FLOAT_BYTES}f", column)
    return [None if value != value else value for value in found]  # noqa: PLR0124 - NaN only


def _bad(column: bytes) -> bool:
    return any(value is not None and not 0 <= value < math.inf for value in _unpack(column))


_ADAPTER = TypeAdapter(WorkHistory)
