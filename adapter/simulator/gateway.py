"""What stands in front of the pool counts: requests that came, those under way, the last minute."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.score import Scorer, seconds_per_token

RECENT: Final = Seconds(60.0)
"""Rates and quantiles are those of the last minute, as dashboards and endpoint pickers have it."""

_QUANTILE: Final = 0.9


@dataclass(slots=True)
class Totals:
    """Since the beginning."""

    requests: int = 0
    """That arrived, the refused ones included."""

    refused: int = 0
    """Larger than an engine can hold."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    """Of the answers to come, not those generated yet."""

    finished: int = 0
    lost: int = 0
    """Cut off by a dead node or the end of a grace period."""


@dataclass(frozen=True, slots=True)
class Minute:
    """The last minute; None of no request."""

    requests_per_second: float
    prompt_tokens_mean: float | None
    output_tokens_mean: float | None
    ttft_p90: Seconds | None
    """Of the requests that finished."""

    seconds_per_token_p90: Seconds | None


class Gateway:
    """Counts for all; remembers the last minute only for those who asked for it beforehand."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self.totals = Totals()
        self._watched = False
        self._came: deque[tuple[Timestamp, int, int, int]] = deque()
        self._went: deque[Request] = deque()

    @property
    def in_flight(self) -> int:
        """Return the requests taken in and not known to have ended."""
        totals = self.totals
        return totals.requests - totals.refused - totals.finished - totals.lost

    def watch(self) -> None:
        """Remember the last minute from now on."""
        self._watched = True

    def note(self, at: Timestamp) -> None:
        """Note the totals at ``at``: the minute's rates are differences to the oldest note."""
        if self._watched:
            totals = self.totals
            self._came.append((at, totals.requests, totals.prompt_tokens, totals.output_tokens))
            while len(self._came) > 1 and self._came[1][0] <= at - RECENT:
                self._came.popleft()
            while self._went and _ended(self._went[0]) <= at - RECENT:
                self._went.popleft()

    def refuse(self, at: Timestamp) -> None:
        """Note a request that is larger than an engine can hold."""
        self.totals.refused += 1
        self._scorer.refuse(at)

    def finish(self, requests: Sequence[Request]) -> None:
        """Note ``requests``, which have all their tokens."""
        self.totals.finished += len(requests)
        self._scorer.finish(requests)
        if self._watched:
            self._went.extend(requests)

    def lose(self, at: Timestamp, count: int) -> None:
        """Note that ``count`` requests were cut off."""
        self.totals.lost += count
        self._scorer.lose(at, count)

    def minute(self, at: Timestamp) -> Minute:
        """Return what the last minute was like."""
        self.note(at)
        (since, came, prompt, output), now = self._came[0], self._came[-1]
        requests = now[1] - came
        return Minute(
            requests_per_second=requests / (at - since) if at > since else 0.0,
            prompt_tokens_mean=(now[2] - prompt) / requests if requests else None,
            output_tokens_mean=(now[3] - output) / requests if requests else None,
            ttft_p90=_p90([(r.first_token_at or math.inf) - r.arrived_at for r in self._went]),
            seconds_per_token_p90=_p90([seconds_per_token(r) for r in self._went]),
        )


def _ended(request: Request) -> float:
    return math.inf if request.finished_at is None else request.finished_at


def _p90(values: list[float]) -> Seconds | None:
    if not values:
        return None
    return Seconds(sorted(values)[math.ceil(_QUANTILE * len(values)) - 1])
