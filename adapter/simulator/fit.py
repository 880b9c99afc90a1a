"""An engine's preset from a log of its requests.

The search is over the logarithms of the step law's parameters: all are above 0, and a factor
means the same for each. What it minimizes is how far first and last tokens are off, as a ratio.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from statistics import fmean, geometric_mean, median, mode
from typing import Final

from adapter.simulator.presets import EnginePreset
from adapter.simulator.replay import Answer, Comparison, compare, replay
from adapter.simulator.request_log import LoggedRequest
from adapter.simulator.simplex import Point, minimize

MOST_FITTED: Final = 2000
"""Requests that the search replays, the first ones: it takes seconds, and more teach no more."""

LAW: Final = ("a", "b", "c", "e", "alpha")
"""What a log of one engine determines; beta is too small beside alpha to show in one."""

_PROPORTIONS: Final = ("b", "e")
"""What is taken from other engines, as a share of a."""

_EVALUATIONS: Final = 300
_STEP: Final = 0.4
_ROUNDS: Final = 2
"""Searches, each from the best of the one before: a simplex that shrank early starts anew."""

_RATIOS: Final = {"b": 1e-3, "c": 7e-6, "e": 0.3, "alpha": 4e-3}
"""The other parameters over a, about the middle of the presets: where the search begins."""

_PINNED: Final = 0.5
"""Share of the moments with a queue at which the batch has one size, when seats are short."""

_WAITING: Final = 0.1
"""Share of the moments with a queue below which a queue is a burst, and no limit."""

_ROOMY: Final = 2.0
"""KV cache over what was used at the most, where the log does not show its end."""

_FITS: Final = 1.02
"""KV cache over the largest request: an engine admits up to 99 % of it."""

_USUAL_SEATS: Final = 256
_USUAL_BATCH: Final = 2048
"""vLLM's defaults on GPUs below 70 GiB."""

_DIGITS: Final = 4
"""Significant digits of a parameter: what is printed is what was judged."""


class Short(StrEnum):
    """What requests waited for."""

    SEATS = "seats"
    KV_CACHE = "KV cache"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the engine was started with."""

    kv_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    short: Short
    """KV_CACHE: its size shows in the log, and is fitted. What was not short is roomy."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """A log's later part, foretold from its first part and from other logs."""

    preset: EnginePreset
    calibrated_on: int
    """Requests that were looked at; they are not in the comparison."""

    comparison: Comparison


def limits_of(log: Sequence[LoggedRequest]) -> Limits:
    """Return what the log shows of the engine's limits; where it shows nothing, roomy ones.

    While requests wait, something is full: seats when the batch has mostly one size, else the KV
    cache. Without ``queue_s`` nobody is known to wait.
    """
    seen = log[:MOST_FITTED]
    patience = _patience(seen)
    batches = [_batch(seen, moment, patience=patience) for moment in _moments(seen)]
    queued = [batch for batch in batches if batch.queued]
    short = _short(batches, queued)
    largest_batch = max(batch.running for batch in batches)
    seats = _usual_size(queued) if short is Short.SEATS else max(_USUAL_SEATS, largest_batch)
    if short is Short.KV_CACHE:
        tokens = median(batch.tokens for batch in queued)
    else:
        tokens = _ROOMY * max(batch.tokens for batch in batches)
    largest = max(request.input_tokens + request.output_tokens for request in log)
    return Limits(
        kv_tokens=math.ceil(max(tokens, _FITS * largest)),
        max_num_seqs=seats,
        max_num_batched_tokens=max(_USUAL_BATCH, seats),
        short=short,
    )


def fit(log: Sequence[LoggedRequest], limits: Limits, *, name: str, source: str) -> EnginePreset:
    """Return the preset whose replay is nearest to ``log``; seconds of work, nothing random."""
    preset = _first_guess(log, limits, name=name, source=source)
    for _ in range(_ROUNDS):
        preset = _refit(log, preset, free=(*LAW, *_sizes(limits)), scored=MOST_FITTED)
    return preset


def predict(
    log: Sequence[LoggedRequest], limits: Limits, *, others: Sequence[EnginePreset], name: str
) -> Prediction:
    """Return how well the model foretells ``log`` when it was fitted to ``others``.

    What a sequence and a step with prefill cost beside a step's least is theirs; that least, and
    what tokens cost to read and to compute, are calibrated on the log's first third.
    """
    scored = len(log[:MOST_FITTED]) // 3
    guess = _first_guess(log, limits, name=name, source="calibrated on a third of a log")
    theirs = {
        field: guess.a * geometric_mean(getattr(one, field) / one.a for one in others)
        for field in _PROPORTIONS
    }
    preset = _with(guess, theirs)
    free = ("a", "c", "alpha", *_sizes(limits))
    for _ in range(_ROUNDS):
        preset = _refit(log, preset, free=free, scored=scored, tied=_PROPORTIONS)
    return Prediction(preset, scored, compare(log, preset, skip=scored))


def _sizes(limits: Limits) -> tuple[str, ...]:
    return ("kv_tokens",) if limits.short is Short.KV_CACHE else ()


def _refit(
    log: Sequence[LoggedRequest],
    start: EnginePreset,
    *,
    free: Sequence[str],
    scored: int,
    tied: Sequence[str] = (),
) -> EnginePreset:
    """Return ``start`` with its ``free`` parameters where the first ``scored`` fit best.

    Those that are ``tied`` keep their proportion to a. A step is never shorter than e, so an a
    below it says nothing, and is raised to it.

    Raises:
        ValueError: a request of the log does not fit ``start``'s KV cache.
    """
    replayed = log[:MOST_FITTED]
    replay(replayed, start)  # what does not fit, says so here and not as an infinite cost
    origin = [math.log(getattr(start, field)) for field in free]

    def cost(point: Point) -> float:
        try:
            answers = replay(replayed, _preset_at(start, free, point, tied=tied))
        except ValueError:  # the KV cache is too small for some request of the log
            return math.inf
        return _distance(replayed[:scored], answers)

    best = minimize(cost, origin, step=_STEP, evaluations=_EVALUATIONS)
    found = _preset_at(start, free, best, tied=tied)
    return replace(found, a=max(found.a, found.e))


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the engine held at one moment, as far as the log tells."""

    running: int
    queued: int
    tokens: float


def _short(batches: Sequence[_Batch], queued: Sequence[_Batch]) -> Short:
    if len(queued) < _WAITING * len(batches):
        return Short.NOTHING
    usual = _usual_size(queued)
    pinned = sum(abs(batch.running - usual) <= 1 for batch in queued)
    return Short.SEATS if pinned >= _PINNED * len(queued) else Short.KV_CACHE


def _usual_size(batches: Sequence[_Batch]) -> int:
    return mode(batch.running for batch in batches)


def _patience(log: Sequence[LoggedRequest]) -> float:
    """Return the seconds in the queue that may be the rest of a step, and no want of room.

    Most prefills take no longer, and a step that has one in it takes about as long.
    """
    prefills = sorted(request.ttft - (request.queue or 0.0) for request in log)
    return prefills[len(prefills) * 9 // 10]


def _moments(log: Sequence[LoggedRequest]) -> list[float]:
    """Return up to 500 moments at which first tokens came."""
    moments = sorted(request.at + request.ttft for request in log)
    return moments[:: math.ceil(len(moments) / 500)]


def _batch(log: Sequence[LoggedRequest], moment: float, *, patience: float) -> _Batch:
    running = queued = 0
    tokens = 0.0
    for request in log:
        since = moment - request.at
        if 0 <= since < (request.queue or 0.0):
            queued += (request.queue or 0.0) > patience
        elif (request.queue or 0.0) <= since < request.e2e:
            running += 1
            written = max(0.0, since - request.ttft) / max(1e-9, request.e2e - request.ttft)
            tokens += request.input_tokens + written * request.output_tokens
    return _Batch(running, queued, tokens)


def _first_guess(
    log: Sequence[LoggedRequest], limits: Limits, *, name: str, source: str
) -> EnginePreset:
    """Return presets' proportions on the scale of the fastest decode in the log."""
    paces = sorted(request.tpot for request in log if request.tpot is not None)
    a = max(1e-4, paces[len(paces) // 20] if paces else min(request.ttft for request in log))
    law = {field: a * ratio for field, ratio in _RATIOS.items()}
    return EnginePreset(
        name=name,
        a=a,
        **law,
        beta=0.0,
        kappa=1.0,
        kv_tokens=limits.kv_tokens,
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        source=source,
    )


def _preset_at(
    start: EnginePreset, free: Sequence[str], point: Point, *, tied: Sequence[str]
) -> EnginePreset:
    """Return ``start`` with the logarithms of ``point`` in the ``free`` fields."""
    moved = {field: math.exp(value) for field, value in zip(free, point, strict=True)}
    for field in tied:
        moved[field] = getattr(start, field) * moved["a"] / start.a
    return _with(start, {field: float(f"{value:.{_DIGITS}g}") for field, value in moved.items()})


def _with(preset: EnginePreset, values: Mapping[str, float]) -> EnginePreset:
    """Return ``preset`` with some of its parameters replaced."""
    kept = {field: getattr(preset, field) for field in (*LAW, "kv_tokens")}
    new = {**kept, **values}
    return replace(
        preset,
        a=new["a"],
        b=new["b"],
        c=new["c"],
        e=new["e"],
        alpha=new["alpha"],
        kv_tokens=int(new["kv_tokens"]),
    )


def _distance(log: Sequence[LoggedRequest], answers: Sequence[Answer]) -> float:
    """Return the mean absolute logarithm of how far first and last tokens are off."""
    return fmean(
        abs(math.log(answer.ttft / one.ttft)) + abs(math.log(answer.e2e / one.e2e))
        for one, answer in zip(log, answers, strict=False)
    )
