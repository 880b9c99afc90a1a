"""One continuously batching engine, step by step; stretches without news in closed form.

A step computes one token of every decoding sequence, and as much of the prompts that wait as fits
in a batch. While nobody arrives, finishes or runs out of KV cache, steps differ only in the
context that grows, so their sum is a formula, and a request costs a few events and not hundreds.
The scheduler is vLLM V1's: decodes first, then prompts under way, then new ones in order; a batch
that outgrows the KV cache loses its latest request, which recomputes later what it had.
"""

import heapq
import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from adapter.fleet.histogram import Histogram
from adapter.fleet.units import Timestamp
from adapter.simulator.presets import EnginePreset, StepLaw

TTFT_BOUNDS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
)
"""vLLM's buckets since 0.8.5, in seconds, without the last, infinite one."""

_NEVER: Final = -math.inf


@dataclass(slots=True, eq=False)
class Request:
    """One request, and when what happened to it; one engine at a time works on it."""

    arrived_at: Timestamp
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """Of the prompt, found in the prefix cache; the last token is computed in any case."""

    first_token_at: Timestamp | None = None
    finished_at: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What an engine has done since it started: the counters of its ``/metrics``."""

    prompt_tokens: int
    """Of requests whose first token came, those from the cache included."""

    cached_prompt_tokens: int
    generation_tokens: int
    requests: int
    """That finished."""

    preemptions: int
    steps: int
    request_seconds: float
    """From arrival to the last token, of those that finished."""

    queue_seconds: float
    """From arrival until a step took them up, of those that finished."""


class SimulatedEngine:
    """Takes requests in the order of submission, and works until it is told to stop.

    Nothing is random, and results do not depend on how often ``advance`` is called: a step that
    would end later than asked for has not happened, but what it takes up has left the queue.
    """

    def __init__(self, preset: EnginePreset, *, started_at: float = 0.0) -> None:
        """Begin idle at ``started_at``, with nothing in any cache."""
        self.preset = preset
        self._law = StepLaw.of(preset)
        self._admissible = preset.admissible_tokens
        self._now = started_at
        self._arriving: deque[_Sequence] = deque()
        self._waiting: deque[_Sequence] = deque()
        self._prefilling: deque[_Sequence] = deque()
        self._decoding: list[tuple[int, int, _Sequence]] = []
        """A heap: the step at whose end it has its last token, its serial, the sequence."""

        self._step = 0
        self._context = 0
        """KV cache tokens of the decoding sequences."""

        self._reserved = 0
        """KV cache tokens set aside for the prompts under way."""

        self._submitted = 0
        self._promised = 0
        """Tokens to compute for all that was submitted, what preemption throws away included."""

        self._computed = 0
        """Prompt tokens computed."""

        self._generated = 0
        self._prompts = 0
        self._cached = 0
        self._finished = 0
        self._preempted = 0
        self._request_seconds = 0.0
        self._queue_seconds = 0.0
        self._ttft_seconds = 0.0
        self._ttft = [0] * (len(TTFT_BOUNDS) + 1)

    @property
    def running(self) -> int:
        """Return how many requests are in the batch."""
        return len(self._decoding) + len(self._prefilling)

    @property
    def waiting(self) -> int:
        """Return how many requests found no room, preempted ones included."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Return how many requests it holds, with those that came during the present step."""
        return self.running + len(self._waiting) + len(self._arriving)

    @property
    def kv_usage(self) -> float:
        """Return the share of the KV cache in use, 0..1."""
        return (self._context + self._reserved) / self.preset.kv_tokens

    @property
    def outstanding_tokens(self) -> int:
        """Return the tokens still to compute and to generate: what a work-aware router weighs."""
        return self._promised - self._computed - self._generated

    @property
    def ttft(self) -> Histogram:
        """Return the time to first token since the start, in vLLM's buckets."""
        counts = tuple(float(count) for count in accumulate(self._ttft))
        return Histogram((*TTFT_BOUNDS, math.inf), counts, self._ttft_seconds)

    @property
    def totals(self) -> Totals:
        """Return the counters as they are now."""
        return Totals(
            prompt_tokens=self._prompts,
            cached_prompt_tokens=self._cached,
            generation_tokens=self._generated,
            requests=self._finished,
            preemptions=self._preempted,
            steps=self._step,
            request_seconds=self._request_seconds,
            queue_seconds=self._queue_seconds,
        )

    def submit(self, request: Request) -> None:
        """Take ``request`` in behind all others, from when it arrived or from now on.

        Raises:
            ValueError: it asks for nothing, or for more than the engine can hold.
        """
        prompt, output, cached = request.prompt_tokens, request.output_tokens, request.cached_tokens
        if not (0 <= cached <= prompt and prompt > 0 and output > 0):
            raise ValueError(f"{request}: expected tokens in and out, and no more cached than in")
        if prompt + output > self._admissible:
            raise ValueError(
                f"{request}: {self.preset.name} holds {self._admissible} tokens; "
                "leave it out, as a real engine refuses it, or take a preset with more kv_tokens"
            )
        self._submitted += 1
        sequence = _Sequence(request, self._submitted)
        self._arriving.append(sequence)
        self._promised += prompt - sequence.computed + output

    def advance(self, until: float) -> list[Request]:
        """Run every step that ends by ``until``, and return who finished, in order."""
        finished: list[Request] = []
        arriving = self._arriving
        while True:
            if self._waiting or (arriving and arriving[0].arrived_at <= self._now):
                self._admit()
            if self._prefilling:
                if not self._mixed_step(until, finished):
                    return finished
            elif self._decoding:
                if not self._decode(until, finished):
                    return finished
            elif arriving and arriving[0].arrived_at <= until:
                self._now = max(self._now, arriving[0].arrived_at)
            else:
                self._now = max(self._now, until)
                return finished

    def _admit(self) -> None:
        """Take up what has arrived and has room.

        Twice at one moment is once: a step that ends too late is planned again by the next call.
        The tokens of the step itself count, so what was just preempted does not fit.
        """
        arriving, waiting, now = self._arriving, self._waiting, self._now
        while arriving and arriving[0].arrived_at <= now:
            waiting.append(arriving.popleft())
        preset, prefilling, count = self.preset, self._prefilling, len(self._decoding)
        seats = preset.max_num_seqs - count - len(prefilling)
        room = self._admissible - self._context - self._reserved - count
        budget = preset.max_num_batched_tokens - count
        for sequence in prefilling:
            budget -= sequence.need - sequence.computed
        while waiting and seats > 0 and budget > 0 and waiting[0].need <= room:
            sequence = waiting.popleft()
            prefilling.append(sequence)
            seats -= 1
            room -= sequence.need
            budget -= sequence.need - sequence.computed
            self._reserved += sequence.need
            if sequence.taken_at == _NEVER:
                sequence.taken_at = now

    def _mixed_step(self, until: float, finished: list[Request]) -> bool:
        """Run the step that begins now, prompts included; return False if it ends too late."""
        count = len(self._decoding)
        if self._context + self._reserved + count > self.preset.kv_tokens:
            self._preempt()
            return True
        law, budget = self._law, self.preset.max_num_batched_tokens - count
        tokens = squares = 0
        for sequence in self._prefilling:
            chunk = min(sequence.need - sequence.computed, budget - tokens)
            squares += chunk * (2 * sequence.computed + chunk)
            tokens += chunk
        end = (
            self._now
            + law.sequence * count
            + law.context * self._context
            + max(law.least, law.prefill + law.token * tokens)
            + law.square * squares
        )
        if end > until:
            return False
        self._pass(end, 1)
        self._leave(finished)
        self._computed += tokens
        self._fill(tokens, finished)
        return True

    def _decode(self, until: float, finished: list[Request]) -> bool:
        """Run steps until somebody finishes, comes or is in the way; return False if none ends."""
        law, count = self._law, len(self._decoding)
        room = self.preset.kv_tokens - self._context
        steps = min(self._decoding[0][0] - self._step, room // count)
        if not steps:
            self._preempt()
            return True
        first = law.least + law.sequence * count + law.context * self._context
        growth = law.context * count
        end = self._now + steps * first + growth * (steps * (steps - 1) / 2)
        limit = until
        if self._arriving and not self._waiting:
            limit = min(until, self._arriving[0].arrived_at)
        if end > limit:
            steps = _steps_within(limit - self._now, first, growth)
            end = self._now + steps * first + growth * (steps * (steps - 1) / 2)
            if end < limit:
                end += first + growth * steps
                steps += 1
            if end > until:
                steps -= 1
                end -= first + growth * steps
            if not steps:
                return False
        self._pass(end, steps)
        self._leave(finished)
        return True

    def _pass(self, end: float, steps: int) -> None:
        """Let time pass until ``end``, with a token for every decoding sequence in each step."""
        tokens = steps * len(self._decoding)
        self._now = end
        self._step += steps
        self._context += tokens
        self._generated += tokens

    def _leave(self, finished: list[Request]) -> None:
        """Let those go that have all their tokens."""
        decoding, step = self._decoding, self._step
        while decoding and decoding[0][0] == step:
            sequence = heapq.heappop(decoding)[2]
            request = sequence.request
            self._context -= request.prompt_tokens + request.output_tokens - 1
            self._finish(sequence)
            finished.append(request)

    def _fill(self, tokens: int, finished: list[Request]) -> None:
        """Give ``tokens`` to the prompts in their order; a whole one yields its next token."""
        while tokens:
            sequence = self._prefilling[0]
            chunk = min(sequence.need - sequence.computed, tokens)
            tokens -= chunk
            sequence.computed += chunk
            if sequence.computed < sequence.need:
                return
            self._prefilling.popleft()
            self._reserved -= sequence.need
            self._generated += 1
            if not sequence.generated:
                self._first_token(sequence)
            sequence.generated += 1
            left = sequence.request.output_tokens - sequence.generated
            if left:
                self._context += sequence.need
                heapq.heappush(self._decoding, (self._step + left, sequence.serial, sequence))
            else:
                self._finish(sequence)
                finished.append(sequence.request)

    def _first_token(self, sequence: "_Sequence") -> None:
        request = sequence.request
        request.first_token_at = Timestamp(self._now + self.preset.api_seconds)
        seconds = request.first_token_at - request.arrived_at
        self._ttft_seconds += seconds
        self._ttft[bisect_left(TTFT_BOUNDS, seconds)] += 1
        self._prompts += request.prompt_tokens
        self._cached += sequence.cached

    def _finish(self, sequence: "_Sequence") -> None:
        request, preset = sequence.request, self.preset
        writing = preset.api_seconds + preset.token_seconds * request.output_tokens
        request.finished_at = Timestamp(self._now + writing)
        self._finished += 1
        self._request_seconds += request.finished_at - request.arrived_at
        self._queue_seconds += sequence.taken_at - request.arrived_at

    def _preempt(self) -> None:
        """Put the latest request back at the head of the queue, without its KV cache."""
        entry = max(self._decoding, key=lambda entry: entry[1])
        begun = max(self._prefilling, key=lambda sequence: sequence.serial, default=entry[2])
        if begun.serial > entry[1]:
            sequence = begun
            self._prefilling.remove(sequence)
            self._reserved -= sequence.need
        else:
            sequence = entry[2]
            self._decoding.remove(entry)
            heapq.heapify(self._decoding)
            sequence.generated = sequence.request.output_tokens - (entry[0] - self._step)
            sequence.need = sequence.request.prompt_tokens + sequence.generated
            sequence.computed = sequence.need
            self._context -= sequence.need - 1
        self._preempted += 1
        self._promised += sequence.computed
        sequence.computed = sequence.cached
        self._promised -= sequence.computed
        self._waiting.appendleft(sequence)


class _Sequence:
    """A request inside an engine."""

    __slots__ = (
        "arrived_at",
        "cached",
        "computed",
        "generated",
        "need",
        "request",
        "serial",
        "taken_at",
    )

    def __init__(self, request: Request, serial: int) -> None:
        self.request = request
        self.serial = serial
        self.arrived_at = request.arrived_at
        self.need = request.prompt_tokens
        """Tokens that the KV cache must hold before the next one can be generated."""

        self.cached = min(request.cached_tokens, request.prompt_tokens - 1)
        self.computed = self.cached
        """The part of them that it holds."""

        self.generated = 0
        """As of the latest time that it was not decoding."""

        self.taken_at = _NEVER


def _steps_within(seconds: float, first: float, growth: float) -> int:
    """Return how many steps end within ``seconds``, or one too few or too many by rounding.

    The first takes ``first`` seconds, each further one ``growth`` more than the one before.
    """
    half = first - growth / 2
    return int(2 * seconds / (half + math.sqrt(half * half + 2 * growth * seconds)))
