"""What came of a run: who was served in time, and what it cost."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.presets import EnginePreset

TTFT: Final = Seconds(2.0)
"""What is promised unless a scenario says otherwise, before the prompt's own prefill."""

WINDOW: Final = Seconds(600.0)
"""The worst window of this length is reported beside the whole: an outage must not average out."""

_DAY: Final = 86_400.0
_GRAIN: Final = 1e-3
_HOUR: Final = 3600.0

_FINENESS: Final = 100.0
"""Buckets of the TTFT distribution per factor e: a quantile is right to 1 %."""

_LEAST_TTFT: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Objective:
    """What a request was promised: its first token within ``ttft`` + ``prefills`` x the prefill.

    The prefill is the one that its prompt takes on an idle engine: no fleet can keep an absolute
    promise for the longest prompts.
    """

    ttft: Seconds = TTFT
    prefills: float = 2.0
    per_token: Seconds | None = None
    """The mean time between tokens after the first; None: not promised."""

    per_token_from: int = 32
    """Output tokens from which the time between them is judged."""


@dataclass(frozen=True, slots=True)
class Window:
    """What came of the requests that arrived within ``WINDOW`` from ``begin``."""

    begin: Timestamp
    requests: int
    in_time: int


@dataclass(frozen=True, slots=True)
class Score:
    """One run. Requests that arrived before scoring began, and hours paid before, are left out."""

    requests: int
    in_time: int
    finished: int
    refused: int
    """Larger than the engine can hold."""

    lost: int
    """Cut off by a dead node or the end of a grace period."""

    unfinished: int
    """Still waiting or running when the run ended, a minute after the last arrival."""

    worst_window: float
    """The attainment of the worst 10 minutes, by arrival; 1.0 without requests."""

    ttft_p50: Seconds
    ttft_p99: Seconds
    """Of those that finished; NaN when nobody did."""

    paid_hours: float
    """Replica-hours from the node on: starting and draining included."""

    starts: int
    seconds: Seconds
    """The length of what is scored."""

    windows: tuple[Window, ...] = ()
    """Those with requests, in order: who was late when."""

    @property
    def attainment(self) -> float:
        """Return the share of the requests that were served in time, 0..1; 1.0 of none."""
        return self.in_time / self.requests if self.requests else 1.0

    @property
    def mean_replicas(self) -> float:
        """Return the replicas paid for, on average."""
        return self.paid_hours * _HOUR / self.seconds

    @property
    def starts_per_day(self) -> float:
        """Return the replicas started in a day."""
        return self.starts * _DAY / self.seconds


class Scorer:
    """Judges requests as they end; what it keeps does not grow with their number."""

    def __init__(self, objective: Objective, preset: EnginePreset, *, begin: Timestamp) -> None:
        """Judge what arrives from ``begin`` on."""
        self._objective, self._preset, self._begin = objective, preset, begin
        self._limits: dict[int, float] = {}
        """By prompt tokens: within how many seconds the first token is in time."""

        self._windows: dict[int, list[int]] = {}
        """By the number of the window: requests, and those in time."""

        self._ttfts: dict[int, int] = {}
        """By the rounded logarithm of the seconds: requests."""

        self._refused = self._lost = self._unfinished = 0

    def finish(self, requests: Iterable[Request]) -> None:
        """Judge ``requests``, which have all their tokens."""
        begin, ttfts, per_token = self._begin, self._ttfts, self._objective.per_token
        for request in requests:
            arrived_at, first_token_at = request.arrived_at, request.first_token_at
            if arrived_at < begin or first_token_at is None:
                continue
            ttft = first_token_at - arrived_at
            window = self._window(arrived_at)
            window[0] += 1
            if ttft <= self._limit(request.prompt_tokens) and (
                per_token is None or self._flows(request, per_token)
            ):
                window[1] += 1
            bucket = round(_FINENESS * math.log(max(_LEAST_TTFT, ttft)))
            ttfts[bucket] = ttfts.get(bucket, 0) + 1

    def refuse(self, at: Timestamp) -> None:
        """Count a request as too large for the engine."""
        self._refused += self._miss(at, 1)

    def lose(self, at: Timestamp, count: int) -> None:
        """Count ``count`` requests as cut off at ``at``, in that window."""
        self._lost += self._miss(at, count)

    def leave(self, at: Timestamp, count: int) -> None:
        """Count ``count`` requests as unfinished at the end, ``at``: in the last window.

        In a window of their own, which begins there, they would be its worst by construction.
        """
        self._unfinished += self._miss(Timestamp(max(self._begin, at - _GRAIN)), count)

    def score(self, *, paid: Seconds, starts: int, seconds: Seconds) -> Score:
        """Return what came of it; all three since scoring began."""
        windows = self._windows.values()
        return Score(
            requests=sum(every for every, _ in windows),
            in_time=sum(good for _, good in windows),
            finished=sum(self._ttfts.values()),
            refused=self._refused,
            lost=self._lost,
            unfinished=self._unfinished,
            worst_window=min((good / every for every, good in windows), default=1.0),
            ttft_p50=self._quantile(0.5),
            ttft_p99=self._quantile(0.99),
            paid_hours=paid / _HOUR,
            starts=starts,
            seconds=seconds,
            windows=tuple(
                Window(Timestamp(self._begin + number * WINDOW), *self._windows[number])
                for number in sorted(self._windows)
            ),
        )

    def _miss(self, at: Timestamp, count: int) -> int:
        """Note ``count`` requests that were not served, and return how many count."""
        if at < self._begin or not count:
            return 0
        self._window(at)[0] += count
        return count

    def _window(self, at: Timestamp) -> list[int]:
        number = int((at - self._begin) // WINDOW)
        window = self._windows.get(number)
        if window is None:
            window = self._windows[number] = [0, 0]
        return window

    def _limit(self, prompt_tokens: int) -> float:
        limit = self._limits.get(prompt_tokens)
        if limit is None:
            alone = self._preset.isolated_prefill_seconds(prompt_tokens)
            limit = self._objective.ttft + self._objective.prefills * alone
            self._limits[prompt_tokens] = limit
        return limit

    def _flows(self, request: Request, per_token: Seconds) -> bool:
        short = request.output_tokens < self._objective.per_token_from
        return short or seconds_per_token(request) <= per_token

    def _quantile(self, q: float) -> Seconds:
        rank, seen = q * sum(self._ttfts.values()), 0
        for bucket in sorted(self._ttfts):
            seen += self._ttfts[bucket]
            if seen >= rank:
                return Seconds(math.exp(bucket / _FINENESS))
        return Seconds(math.nan)


def seconds_per_token(request: Request) -> float:
    """Return the mean time between the tokens after the first; infinite when unfinished."""
    if request.first_token_at is None or request.finished_at is None:
        return math.inf
    return (request.finished_at - request.first_token_at) / max(1, request.output_tokens - 1)
