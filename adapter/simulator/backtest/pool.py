"""A pool of fluid replicas: one queue, equal shares, and what each would tell when scraped.

Approximated: the pool runs as if every request could go on at any replica (a good router), a
stopped replica gives what it holds to the others, and first tokens come after the queue, a step
in progress and the prompt's own step, spread exponentially.
"""

import math
import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.flow import Lengths, Replica, Slice
from adapter.simulator.backtest.load import Bin
from adapter.simulator.deployment import Pod
from adapter.simulator.engine import TTFT_BOUNDS
from adapter.simulator.presets import EnginePreset
from adapter.simulator.score import Objective

SLICE: Final = Seconds(10.0)
"""Within it rates are constant."""

_CALM: Final = 0.7
"""Share of an engine's second, and of its batch, up to which a minute is looked at as a whole."""

_LENGTH: Final = 0.85
"""Share of the prompt's own time that differs from prompt to prompt: most are short, few long."""

_LOOKS: Final = 4
"""Moments of a slice at which the queue is taken, where there is one."""

_FINE: Final = 100.0
"""Lengths that differ by less than 1 % share a step law."""


@dataclass(slots=True)
class Told:
    """The counters of one replica since it started, and its gauges; amounts, not whole numbers."""

    running: float = 0.0
    waiting: float = 0.0
    taken: float = 0.0
    """Requests whose first token came."""

    finished: float = 0.0
    prompt_tokens: float = 0.0
    output_tokens: float = 0.0
    steps: float = 0.0
    request_seconds: float = 0.0
    queue_seconds: float = 0.0
    ttft_seconds: float = 0.0
    ttft: list[float] = field(default_factory=lambda: [0.0] * (len(TTFT_BOUNDS) + 1))
    """Not cumulative: requests in each of vLLM's buckets, the infinite one last."""

    @property
    def ttft_counts(self) -> tuple[float, ...]:
        """Return the buckets as a histogram has them."""
        return tuple(accumulate(self.ttft))


@dataclass(frozen=True, slots=True)
class Passed:
    """What came of the requests of one bin."""

    requests: float
    missed: float


class Pool:
    """Plays bins on the pods that serve; equal seeds give equal runs."""

    def __init__(
        self, preset: EnginePreset, lengths: Lengths, *, objective: Objective, seed: int
    ) -> None:
        """Begin idle; ``lengths`` are how requests are spread around the means of a bin."""
        self._preset, self._lengths, self._objective = preset, lengths, objective
        self._chance = random.Random(seed)
        self._law = lru_cache(maxsize=256)(self._replica)
        self.running = 0.0
        """Requests in the batches of all replicas together."""

        self.waiting = 0.0
        self.told: dict[str, Told] = {}
        """By pod."""

        self.ttft = [0.0] * (len(TTFT_BOUNDS) + 1)
        """Of all requests since the begin, as in ``Told``."""

    def play(self, one: Bin, pods: Sequence[Pod], *, warm_up: Seconds) -> Passed:
        """Return what came of the requests of ``one``; afterwards ``told`` is that of its end.

        Each of ``pods`` works from ``warm_up`` after it was ready.
        """
        law, end = self._law_of(one), one.start + one.seconds
        begins = {pod.name: (pod.ready_at or math.inf) + warm_up for pod in pods}
        whole = [name for name, begin in begins.items() if begin <= one.start]
        calm = len(whole) == len(begins) and self._calm(law, one, len(whole))
        slices = 1 if calm else max(1, round(one.seconds / SLICE))
        seconds = one.seconds / slices
        arriving = one.requests / slices
        missed = 0.0
        for number in range(slices):
            at = Timestamp(one.start + number * seconds)
            able = [name for name, begin in begins.items() if begin <= at]
            missed += self._slice(law, able, arriving, Seconds(seconds))
        self.told = {name: self.told.get(name, Told()) for name in begins}
        self._gauges([name for name, begin in begins.items() if begin < end])
        return Passed(one.requests, missed)

    def _calm(self, law: Replica, one: Bin, count: int) -> bool:
        """Return whether nothing waits or will, so that one look at the bin is enough."""
        if not count or self.waiting:
            return False
        busy = one.requests / one.seconds / count * law.work
        room = self.running / count < _CALM * law.largest_batch
        return busy < _CALM and room

    def _slice(self, law: Replica, able: Sequence[str], arriving: float, seconds: Seconds) -> float:
        """Let a slice pass and return how many of the arriving requests will be late."""
        if not able:
            self.waiting += arriving
            return arriving
        count = len(able)
        offered = (self.waiting + arriving) / seconds / count
        before, running = self.waiting, self.running / count
        done = law.run(running, offered, seconds)
        taken = done.taken * seconds
        finished = max(0.0, taken - (done.running - running))
        self.running = done.running * count
        self.waiting = max(0.0, before + arriving - taken * count)
        rate = max(done.taken * count, 1e-9)
        waits = _waits(before / rate, self.waiting / rate)
        fixed, spread = self._first_token(law, done)
        share = _spread_over(waits, fixed, spread)
        self._count(able, law, done, taken=taken, finished=finished, seconds=seconds)
        self._note(able, share, taken=taken, mean=sum(waits) / len(waits) + fixed + spread)
        wait = sum(waits) / len(waits)
        for name in able:
            told = self.told[name]
            told.queue_seconds += finished * wait
            told.request_seconds += finished * (wait + law.lengths.output / done.steps)
        limit = self._objective.ttft + self._objective.prefills * law.alone
        return arriving * _late(waits, limit - fixed, spread)

    def _first_token(self, law: Replica, done: Slice) -> tuple[float, float]:
        """Return the least seconds to a first token without a queue, and the mean beyond."""
        own = done.step_seconds
        fixed = self._preset.api_seconds + own - _LENGTH * law.prefill
        prompts = min(1.0, done.taken * own)
        plain = min(1.0, done.running) / done.steps
        return fixed, _LENGTH * law.prefill + 0.5 * (prompts * own + (1 - prompts) * plain)

    def _count(
        self,
        able: Sequence[str],
        law: Replica,
        done: Slice,
        *,
        taken: float,
        finished: float,
        seconds: Seconds,
    ) -> None:
        for name in able:
            told = self.told.get(name)
            if told is None:
                told = self.told[name] = Told()
            told.taken += taken
            told.finished += finished
            told.prompt_tokens += taken * law.lengths.prompt
            told.output_tokens += seconds * done.steps * done.running + taken
            told.steps += seconds * done.steps if done.running or taken else 0.0

    def _note(
        self, able: Sequence[str], share: Sequence[float], *, taken: float, mean: float
    ) -> None:
        """Put the first tokens of a slice into the buckets."""
        for place, part in enumerate(share):
            if part:
                amount = part * taken
                self.ttft[place] += amount * len(able)
                for name in able:
                    self.told[name].ttft[place] += amount
        for name in able:
            self.told[name].ttft_seconds += mean * taken

    def _gauges(self, able: Sequence[str]) -> None:
        """Set what each replica shows: whole requests, and the right number on average.

        At any moment the requests of a pool are scattered around their mean as a Poisson count
        is; the mean itself would look calmer than any engine, and order fewer replicas.
        """
        for told in self.told.values():
            told.running = told.waiting = 0.0
        shown = max(0.0, self._chance.gauss(self.running, math.sqrt(self.running)))
        for name in able:
            told = self.told[name]
            told.running = self._whole(shown / len(able))
            told.waiting = self._whole(self.waiting / len(able))

    def _whole(self, amount: float) -> float:
        return float(math.floor(amount + self._chance.random()))

    def _law_of(self, one: Bin) -> Replica:
        if one.requests <= 0:
            return self._law(
                round(_FINE * math.log(self._lengths.prompt)),
                round(_FINE * math.log(self._lengths.output)),
            )
        prompt = max(1.0, one.prompt_tokens / one.requests)
        output = max(1.0, one.output_tokens / one.requests)
        return self._law(round(_FINE * math.log(prompt)), round(_FINE * math.log(output)))

    def _replica(self, prompt: int, output: int) -> Replica:
        means = (math.exp(prompt / _FINE), max(1.0, math.exp(output / _FINE)))
        return Replica.of(self._preset, self._lengths.with_means(*means))


def _waits(first: float, last: float) -> tuple[float, ...]:
    """Return the seconds in the queue at some moments of a slice; 0 of no queue."""
    if first == 0 and last == 0:
        return (0.0,)
    return tuple(first + (last - first) * (n + 0.5) / _LOOKS for n in range(_LOOKS))


def _late(waits: Sequence[float], limit: float, spread: float) -> float:
    """Return the share whose first token comes after more than ``limit`` beyond the least."""
    return sum(_beyond(limit - wait, spread) for wait in waits) / len(waits)


def _beyond(limit: float, spread: float) -> float:
    return 1.0 if limit <= 0 else math.exp(-limit / spread)


def _spread_over(waits: Sequence[float], fixed: float, spread: float) -> list[float]:
    """Return the share of the first tokens in each bucket."""
    share = [0.0] * (len(TTFT_BOUNDS) + 1)
    for wait in waits:
        least = wait + fixed
        place = bisect_left(TTFT_BOUNDS, least)
        left = 1.0 / len(waits)
        whole = left
        while place < len(TTFT_BOUNDS) and left > 1e-6:  # noqa: PLR2004 - one in a million
            beyond = whole * math.exp((least - TTFT_BOUNDS[place]) / spread)
            share[place] += left - beyond
            left = beyond
            place += 1
        share[min(place, len(TTFT_BOUNDS))] += left
    return share
