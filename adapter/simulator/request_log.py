"""A log of real requests, one CSV row each: the measure of the engine model."""

import csv
import io
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from adapter.controller.errors import AdapterError

MOST_BYTES: Final = 64 * 2**20
"""A million requests and more; what is larger is not a log of one engine."""

FEWEST_REQUESTS: Final = 30
"""Below that, percentiles say nothing and a fit follows the noise."""

_NEEDED: Final = ("timestamp_s", "input_tokens", "output_tokens", "ttft_s", "e2e_s")
_OPTIONAL: Final = ("queue_s", "cached_tokens")
_MOST_TOKENS: Final = 10_000_000
_SHOWN_PROBLEMS: Final = 20


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """What a client or the engine wrote down of one request."""

    at: float
    """When the engine received it, in seconds from any origin."""

    input_tokens: int
    output_tokens: int
    ttft: float
    """Seconds from ``at`` to the first token."""

    e2e: float
    """Seconds from ``at`` to the last token."""

    queue: float | None = None
    """Seconds of ``ttft`` spent waiting for the batch; None where the log does not say."""

    cached_tokens: int = 0
    """Of the input, found in the prefix cache."""

    @property
    def tpot(self) -> float | None:
        """Return the seconds per output token after the first; None without a second one."""
        if self.output_tokens < 2:  # noqa: PLR2004 - a second token is what there is to time
            return None
        return (self.e2e - self.ttft) / (self.output_tokens - 1)


class RequestLogError(AdapterError):
    """The log cannot be used: one sentence for each fault, with its line. The user's to mend."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = tuple(problems[:_SHOWN_PROBLEMS])
        if len(problems) > _SHOWN_PROBLEMS:
            self.problems += (f"and {len(problems) - _SHOWN_PROBLEMS} more lines like these",)
        super().__init__("\n".join(self.problems))


def read_log(text: bytes, *, name: str) -> tuple[LoggedRequest, ...]:
    """Return the requests in the order of arrival; ``name`` is the file's, for the sentences.

    Columns, in any order, others are ignored: timestamp_s, input_tokens, output_tokens, ttft_s,
    e2e_s; optional queue_s and cached_tokens.

    Raises:
        RequestLogError: every line that cannot be used, with the reason.
    """
    rows = _rows(text, name)
    columns = next(rows, (1, []))[1]
    missing = [column for column in _NEEDED if column not in columns]
    if missing:
        raise RequestLogError(
            [f"{name}:1: no column {', '.join(missing)}; expected a header with {_HEADER}"]
        )
    requests, problems = [], []
    for line, cells in rows:
        try:
            requests.append(_request(dict(zip(columns, cells, strict=False))))
        except ValueError as error:
            problems.append(f"{name}:{line}: {error}")
    if not problems and len(requests) < FEWEST_REQUESTS:
        problems.append(
            f"{name}: {len(requests)} requests; a fit needs {FEWEST_REQUESTS} or more: log longer"
        )
    if problems:
        raise RequestLogError(problems)
    return tuple(sorted(requests, key=lambda request: request.at))


_HEADER: Final = f"{','.join(_NEEDED)} (optional: {', '.join(_OPTIONAL)})"


def _rows(text: bytes, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank with its line, the header first."""
    if len(text) > MOST_BYTES:
        raise RequestLogError([f"{name}: more than {MOST_BYTES >> 20} MiB; give a part of it"])
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise RequestLogError([f"{name}:{line}: not UTF-8 text; expected CSV"]) from error
    reader = csv.reader(io.StringIO(decoded, newline=""), strict=True)
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield reader.line_num, [cell.strip() for cell in cells]
    except csv.Error as error:
        raise RequestLogError([f"{name}:{reader.line_num}: {error}; expected CSV"]) from error


def _request(row: Mapping[str, str]) -> LoggedRequest:
    request = LoggedRequest(
        at=_number(row, "timestamp_s", least=-math.inf),
        input_tokens=_tokens(row, "input_tokens"),
        output_tokens=_tokens(row, "output_tokens"),
        ttft=_number(row, "ttft_s"),
        e2e=_number(row, "e2e_s"),
        queue=_number(row, "queue_s") if row.get("queue_s") else None,
        cached_tokens=_tokens(row, "cached_tokens", least=0) if row.get("cached_tokens") else 0,
    )
    if request.ttft == 0:
        raise ValueError("ttft_s is 0; expected the seconds to the first token")
    if request.e2e < request.ttft:
        raise ValueError(f"e2e_s {request.e2e:g} is shorter than ttft_s {request.ttft:g}")
    if request.queue is not None and request.queue > request.ttft:
        raise ValueError(f"queue_s {request.queue:g} is longer than ttft_s {request.ttft:g}")
    if request.cached_tokens > request.input_tokens:
        raise ValueError(f"cached_tokens {request.cached_tokens} is more than input_tokens")
    return request


def _number(row: Mapping[str, str], column: str, *, least: float = 0.0) -> float:
    text = row.get(column, "")
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text!r}, expected a number") from None
    if not math.isfinite(number) or number < least:
        raise ValueError(f"{column} is {text}, expected a number from 0 up")
    return number


def _tokens(row: Mapping[str, str], column: str, *, least: int = 1) -> int:
    number = _number(row, column)
    if not number.is_integer() or not least <= number <= _MOST_TOKENS:
        raise ValueError(f"{column} is {row[column]}, expected a whole number from {least} up")
    return int(number)
