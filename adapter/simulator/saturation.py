"""What one replica can do at most, and what an operator would measure on it before a benchmark.

Work is counted in engine-seconds: the least time that a request adds to any batch. Long and short
requests then weigh what they cost, and a minute of long ones does not look like a light minute.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.presets import EnginePreset
from adapter.simulator.rivals.port import Calibration
from adapter.simulator.score import Objective, Scorer
from adapter.simulator.synthetic import Curve, Deck, Play, Steady

_BACKLOG: Final = 6000
"""Requests handed over at once: enough for a steady state, done in a fraction of a second."""

_FULL: Final = (0.8, 0.9, 0.95, 1.0, 1.03, 1.06, 1.1, 1.15)
"""Batches tried, as a share of the requests whose last token still finds room in the KV cache."""

_TRIAL: Final = Seconds(600.0)
_TRIALS: Final = 7
"""Halvings of the interval in which the rate lies: to within 1 %."""

GOOD: Final = 0.99
"""The share of requests that must be in time: a policy below it has not met the objective."""


def work_of(preset: EnginePreset) -> Callable[[int, int], float]:
    """Return the function from prompt and output tokens to engine-seconds.

    A lower bound under the step law, whatever the batch: steps are as long as the prompts in them
    ask for and no shorter, and at the least as many as the largest chunks make.
    """
    token = preset.alpha + preset.e / preset.max_num_batched_tokens
    kappa, b, c, beta = preset.kappa, preset.b, preset.c, preset.beta

    def work(prompt: int, output: int) -> float:
        decode = (output - 1) * (b + c * (prompt + output / 2))
        return kappa * (token * prompt + beta * prompt**2 + decode)

    return work


def saturated(preset: EnginePreset, deck: Deck) -> float:
    """Return the most engine-seconds of work that a replica does in a second, 0..1.

    Measured in the middle of a long backlog, for several limits of the batch: where the KV cache
    is what fills first, an unlimited one preempts and computes twice. Below 1, as steps that only
    decode read the weights as well.
    """
    return _saturated(preset, tuple(deck))


@lru_cache(maxsize=32)
def _saturated(preset: EnginePreset, deck: tuple[tuple[int, int], ...]) -> float:
    held = preset.kv_tokens * len(deck) / sum(map(sum, deck))
    full = {max(1, min(preset.max_num_seqs, round(held * share))) for share in _FULL}
    limits = full | {preset.max_num_seqs}
    return max(_drained(replace(preset, max_num_seqs=limit), deck) for limit in limits)


def _drained(preset: EnginePreset, deck: Deck) -> float:
    """Return the work per second in the middle half of the time that a backlog takes."""
    work, engine = work_of(preset), SimulatedEngine(preset)
    for prompt, output in _cards(preset, deck, _BACKLOG):
        engine.submit(Request(Timestamp(0.0), prompt, output))
    ends: list[float] = []
    while engine.in_flight:
        done = engine.advance(float(len(ends) + 1))
        ends.append(sum(work(each.prompt_tokens, each.output_tokens) for each in done))
    middle = ends[len(ends) // 4 : 3 * len(ends) // 4]
    return sum(middle) / len(middle)


def _cards(preset: EnginePreset, deck: Deck, count: int) -> Iterator[tuple[int, int]]:
    """Yield ``count`` of the deck that the engine can hold, in the deck's order."""
    fit = [card for card in deck if sum(card) <= preset.admissible_tokens]
    for number in range(count):
        yield fit[number % len(fit)]


@lru_cache(maxsize=32)
def _within_objective(preset: EnginePreset, deck: tuple[tuple[int, int], ...]) -> float:
    work = work_of(preset)
    mean = sum(work(*card) for card in deck) / len(deck)
    low, high = 0.0, saturated(preset, deck) / mean
    for _ in range(_TRIALS):
        middle = (low + high) / 2
        if _attainment(preset, deck, middle) >= GOOD:
            low = middle
        else:
            high = middle
    return low


def _attainment(preset: EnginePreset, deck: Deck, rate: float) -> float:
    """Return the share in time at ``rate`` requests per second on one replica."""
    engine = SimulatedEngine(preset)
    scorer = Scorer(Objective(), preset, begin=Timestamp(0.0))
    curve = Curve(((0.0, rate),))
    play = Play(rates=curve, decks=Steady(deck), length=_TRIAL, seed=0, minute_sigma=0.0)
    for arrival in play.arrivals():
        if arrival.prompt_tokens + arrival.output_tokens <= preset.admissible_tokens:
            at = Timestamp(arrival.after)
            engine.submit(Request(at, arrival.prompt_tokens, arrival.output_tokens))
    scorer.finish(engine.advance(_TRIAL))
    scorer.leave(Timestamp(_TRIAL), engine.waiting)
    return scorer.score(paid=_TRIAL, starts=0, seconds=_TRIAL).attainment


def calibrate(preset: EnginePreset, deck: Deck) -> Calibration:
    """Return what an operator who measured one replica on this mix would tell the rivals."""
    chunk = preset.max_num_batched_tokens
    return Calibration(
        kv_tokens=preset.kv_tokens,
        prefill_tokens_per_second=chunk / preset.isolated_prefill_seconds(chunk),
        requests_per_second=_within_objective(preset, tuple(deck)),
        batched_tokens=chunk,
        sequences=preset.max_num_seqs,
    )
