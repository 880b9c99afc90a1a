"""A log's requests given to a simulated engine, and how far its answers are from the log's."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from adapter.fleet.units import Timestamp
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.presets import EnginePreset
from adapter.simulator.request_log import LoggedRequest


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model says of one logged request, in seconds from its arrival."""

    ttft: float
    e2e: float

    def tpot(self, tokens: int) -> float:
        """Return the seconds per token after the first of ``tokens``, 2 or more."""
        return (self.e2e - self.ttft) / (tokens - 1)


@dataclass(frozen=True, slots=True)
class Spread:
    """Nearest-rank percentiles over the requests, in seconds; NaN where there is none."""

    p50: float
    p90: float
    p99: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Spread":
        """Return the percentiles of ``values``."""
        ranked = sorted(values) or [math.nan]
        return cls(*(ranked[math.ceil(q * len(ranked)) - 1] for q in (0.5, 0.9, 0.99)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """A log and its replay, request by request."""

    requests: int
    log_ttft: Spread
    model_ttft: Spread
    log_tpot: Spread
    model_tpot: Spread
    ttft_error: float
    """Mean over the requests of how far the first token is off, as a share of the log's TTFT."""

    e2e_error: float
    """The same of the last token: the mean absolute percentage error, as a ratio."""


def compare(log: Sequence[LoggedRequest], preset: EnginePreset, *, skip: int = 0) -> Comparison:
    """Return how ``preset`` answers ``log``, judged without the first ``skip`` requests."""
    judged, answers = log[skip:], replay(log, preset)[skip:]
    pairs = list(zip(judged, answers, strict=True))
    timed = [(one, answer) for one, answer in pairs if one.tpot is not None]
    return Comparison(
        requests=len(judged),
        log_ttft=Spread.of([one.ttft for one in judged]),
        model_ttft=Spread.of([answer.ttft for answer in answers]),
        log_tpot=Spread.of([one.tpot for one, _ in timed if one.tpot is not None]),
        model_tpot=Spread.of([answer.tpot(one.output_tokens) for one, answer in timed]),
        ttft_error=fmean(abs(answer.ttft / one.ttft - 1) for one, answer in pairs),
        e2e_error=fmean(abs(answer.e2e / one.e2e - 1) for one, answer in pairs),
    )


def replay(log: Sequence[LoggedRequest], preset: EnginePreset) -> list[Answer]:
    """Return how ``preset`` answers each request of ``log``, which is in the order of arrival.

    Raises:
        ValueError: a request is larger than the preset's KV cache.
    """
    engine, requests = SimulatedEngine(preset), []
    for one in log:
        moment = Timestamp(one.at - log[0].at)
        requests.append(Request(moment, one.input_tokens, one.output_tokens, one.cached_tokens))
        engine.submit(requests[-1])
    engine.advance(math.inf)
    return [_answer(request) for request in requests]


def _answer(request: Request) -> Answer:
    if request.first_token_at is None or request.finished_at is None:
        raise AssertionError("an engine that ran to the end has answered everything")
    begin = request.arrived_at
    return Answer(request.first_token_at - begin, request.finished_at - begin)
