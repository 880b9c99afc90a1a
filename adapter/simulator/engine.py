"""One inference engine on virtual time: continuous batching, step by step where it matters.

The law of one step, fitted to real vLLM logs within 1 % (evaluation.md section 2.2): decoding
``n`` sequences with ``C`` tokens of context while computing ``p`` prompt tokens takes

    kappa * (b*n + c*C + max(a, e + alpha*p) + beta * sum((s+p)^2 - s^2))

The scheduler is vLLM V1's: decodes first, then the prompts under way, then new requests while
the token budget, the batch and the KV cache have room; when the cache is full the latest arrival
is preempted and recomputed. Steps without a prompt are alike, so a stretch of them is taken at
once in closed form: about two events a request instead of hundreds of steps.
"""

import heapq
import math
from bisect import bisect_left
from collections import deque
from dataclasses import dataclass
from typing import Final

from adapter.fleet.histogram import Histogram
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.presets import EnginePreset

TTFT_BOUNDS: Final = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, math.inf),
)
"""vLLM's own bounds since 0.8.5, in seconds."""

ADMISSION_SHARE: Final = 0.99
"""How full the KV cache may be when a request is let in."""


@dataclass(slots=True, eq=False)
class Request:
    """One request, and when what happened to it; one engine at a time works on it."""

    arrived_at: Timestamp
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    """The part of the prompt that the prefix cache holds: it is not computed."""

    first_token_at: Timestamp | None = None
    finished_at: Timestamp | None = None


@dataclass(slots=True)
class Totals:
    """What the engine has done since it started: the counters of its ``/metrics``."""

    prompt_tokens: int = 0
    cached_prompt_tokens: int = 0
    generation_tokens: int = 0
    requests: int = 0
    preemptions: int = 0
    steps: int = 0
    request_seconds: float = 0.0
    queue_seconds: float = 0.0


@dataclass(slots=True, eq=False)
class _Sequence:
    """A request inside the engine."""

    request: Request
    order: int
    scheduled_at: float | None = None
    generated: int = 0
    computed: int = 0
    """Tokens of the prompt (and of what is recomputed) that are in the KV cache."""

    joined: int = 0
    """The engine's decode counter when it began to decode."""

    @property
    def prefill(self) -> int:
        """Return the tokens to have in the cache before the next one can be generated."""
        return self.request.prompt_tokens + self.generated

    @property
    def remaining(self) -> int:
        return self.request.output_tokens - self.generated


class SimulatedEngine:
    """Takes requests in order of arrival and works whenever it is told what time it is.

    ``advance(until)`` begins every step whose start lies before ``until``; a step is not
    divided, so the last one may end a little after. Results do not depend on how often or in
    which strides it is called.
    """

    def __init__(self, preset: EnginePreset, *, started_at: float = 0.0) -> None:
        self.preset = preset
        self.totals = Totals()
        self._now = started_at
        self._waiting: deque[_Sequence] = deque()
        self._prefilling: list[_Sequence] = []
        self._decoding: list[tuple[int, int, _Sequence]] = []
        self._decoded = 0
        self._context = 0
        self._reserved = 0
        self._arrivals = 0
        self._ttft_counts = [0] * len(TTFT_BOUNDS)
        self._ttft_seconds = 0.0
        self._finished: list[Request] = []

    @property
    def running(self) -> int:
        """Return the requests in the batch."""
        return len(self._prefilling) + len(self._decoding)

    @property
    def waiting(self) -> int:
        """Return the requests that wait for the batch, preempted ones included."""
        return len(self._waiting)

    @property
    def in_flight(self) -> int:
        """Return running and waiting together."""
        return self.running + self.waiting

    @property
    def kv_usage(self) -> float:
        """Return the share of the KV cache in use, 0..1."""
        return min(1.0, (self._context + self._reserved) / self.preset.kv_tokens)

    @property
    def outstanding_tokens(self) -> int:
        """Return the tokens still to compute and to generate: what a work-aware router weighs."""
        queued = sum(s.prefill + s.remaining for s in self._waiting)
        started = sum(s.prefill - s.computed + s.remaining for s in self._prefilling)
        return queued + started + sum(finish - self._decoded for finish, _, _ in self._decoding)

    @property
    def ttft(self) -> Histogram:
        """Return the time to first token since the start, as its ``/metrics`` has it."""
        counts, below = [], 0
        for count in self._ttft_counts:
            below += count
            counts.append(float(below))
        return Histogram(TTFT_BOUNDS, tuple(counts), self._ttft_seconds)

    def submit(self, request: Request) -> None:
        """Take a request; call in order of arrival."""
        self._waiting.append(_Sequence(request, self._arrivals, computed=0))
        self._arrivals += 1

    def advance(self, until: float) -> list[Request]:
        """Work until ``until`` and return the requests that finished, in order."""
        self._finished = []
        while self._now < until and self._awake(until):
            if self._prefilling or self._admissible():
                self._mixed_step()
            else:
                self._decode_stretch(until)
        return self._finished

    def _awake(self, until: float) -> bool:
        """Go to the next moment with work; False when there is none before ``until``."""
        if self._prefilling or self._decoding:
            return True
        if not self._waiting or self._waiting[0].request.arrived_at >= until:
            self._now = until
            return False
        self._now = max(self._now, self._waiting[0].request.arrived_at)
        return True

    def _admissible(self) -> bool:
        """Return whether the head of the queue may join the batch now."""
        if not self._waiting or self.running >= self.preset.max_num_seqs:
            return False
        head = self._waiting[0]
        if head.request.arrived_at > self._now:
            return False
        used = self._context + self._reserved
        room = ADMISSION_SHARE * self.preset.kv_tokens - used
        return head.prefill <= room or used == 0

    def _mixed_step(self) -> None:
        """Compute prompt tokens within the budget while every decoding sequence takes a step."""
        law = self.preset
        decoding = len(self._decoding)
        budget = law.max_num_batched_tokens - decoding
        computed, quadratic = 0, 0.0
        done: list[_Sequence] = []
        for sequence in self._scheduled(budget):
            size = min(budget - computed, sequence.prefill - sequence.computed)
            before = sequence.computed
            sequence.computed += size
            computed += size
            quadratic += float(sequence.computed**2 - before**2)
            if sequence.computed == sequence.prefill:
                done.append(sequence)
        self._now += law.step_seconds(decoding, self._context, computed, quadratic)
        self._tick(1)
        for sequence in done:
            self._prefilling.remove(sequence)
            self._first_token(sequence)
        self._make_room()

    def _scheduled(self, budget: int) -> list[_Sequence]:
        """Return the prompts of this step: those under way, then new ones while there is room."""
        left = budget
        chosen: list[_Sequence] = []
        for sequence in self._prefilling:
            if left <= 0:
                return chosen
            chosen.append(sequence)
            left -= sequence.prefill - sequence.computed
        while left > 0 and self._admissible():
            sequence = self._waiting.popleft()
            if sequence.scheduled_at is None:
                sequence.scheduled_at = self._now
            sequence.computed = min(sequence.request.cached_tokens, sequence.prefill - 1)
            self._reserved += sequence.prefill
            self._prefilling.append(sequence)
            chosen.append(sequence)
            left -= sequence.prefill - sequence.computed
        return chosen

    def _first_token(self, sequence: _Sequence) -> None:
        """Let a computed prompt yield its token and decode on."""
        request = sequence.request
        self._reserved -= sequence.prefill
        at = Timestamp(self._now + self.preset.api_seconds)
        if request.first_token_at is None:
            request.first_token_at = at
            self.totals.prompt_tokens += request.prompt_tokens
            self.totals.cached_prompt_tokens += min(request.cached_tokens, request.prompt_tokens)
            waited = at - request.arrived_at
            self._ttft_counts[bisect_left(TTFT_BOUNDS, waited)] += 1
            self._ttft_seconds += waited
        sequence.generated += 1
        self.totals.generation_tokens += 1
        if sequence.remaining <= 0:
            self._finish(sequence)
            return
        sequence.joined = self._decoded
        self._context += sequence.prefill
        finish = self._decoded + sequence.remaining
        heapq.heappush(self._decoding, (finish, sequence.order, sequence))

    def _decode_stretch(self, until: float) -> None:
        """Take as many like steps as come before the next event, in closed form."""
        n = len(self._decoding)
        law = self.preset
        first = law.step_seconds(n, self._context, 0, 0.0)
        growth = law.kappa * law.c * n
        steps = self._decoding[0][0] - self._decoded
        steps = min(steps, max(1, (law.kv_tokens - self._context) // n))
        steps = min(steps, _steps_within(self._next_event(until) - self._now, first, growth))
        self._now += steps * first + growth * (steps * (steps - 1) / 2)
        self._tick(steps)
        self._make_room()

    def _next_event(self, until: float) -> float:
        """Return when the batch may change from outside: an arrival, or the end of the call."""
        if self._waiting and self.running < self.preset.max_num_seqs:
            arrival = self._waiting[0].request.arrived_at
            if arrival > self._now:
                return min(until, arrival)
        return until

    def _tick(self, steps: int) -> None:
        """Let every decoding sequence have ``steps`` more tokens; the finished ones leave."""
        grown = steps * len(self._decoding)
        self._context += grown
        self.totals.generation_tokens += grown
        self.totals.steps += steps
        self._decoded += steps
        while self._decoding and self._decoding[0][0] <= self._decoded:
            sequence = heapq.heappop(self._decoding)[2]
            self._leave(sequence)
            self._finish(sequence)

    def _leave(self, sequence: _Sequence) -> None:
        """Take a decoding sequence's tokens out of the cache, and count what it generated."""
        tokens = self._decoded - sequence.joined
        self._context -= sequence.prefill + tokens
        sequence.generated += tokens

    def _finish(self, sequence: _Sequence) -> None:
        request, law = sequence.request, self.preset
        overhead = law.api_seconds + law.token_seconds * request.output_tokens
        request.finished_at = Timestamp(self._now + overhead)
        self.totals.requests += 1
        self.totals.request_seconds += request.finished_at - request.arrived_at
        self.totals.queue_seconds += (sequence.scheduled_at or self._now) - request.arrived_at
        self._finished.append(request)

    def _make_room(self) -> None:
        """Preempt the latest arrivals until the next step fits the cache; one always runs on."""
        while self._over_full() and len(self._decoding) > 1:
            entry = max(self._decoding, key=lambda entry: entry[1])
            self._decoding.remove(entry)
            heapq.heapify(self._decoding)
            sequence = entry[2]
            self._leave(sequence)
            sequence.computed = 0
            self._waiting.appendleft(sequence)
            self.totals.preemptions += 1

    def _over_full(self) -> bool:
        needed = self._context + self._reserved + len(self._decoding)
        return needed > self.preset.kv_tokens


def _steps_within(seconds: float, first: float, growth: float) -> int:
    """Return how many steps begin within ``seconds``, at least one.

    The first takes ``first`` seconds, each further one ``growth`` more than the one before.
    """
    if growth <= 0:
        return max(1, math.ceil(seconds / first))
    slope = first - growth / 2
    root = (math.sqrt(slope * slope + 2 * growth * seconds) - slope) / growth
    return max(1, math.ceil(root))


def isolated_ttft(preset: EnginePreset, prompt_tokens: int) -> Seconds:
    """Return the time to first token of a request that has the engine to itself."""
    engine = SimulatedEngine(preset)
    request = Request(Timestamp(0.0), prompt_tokens, 1)
    engine.submit(request)
    engine.advance(math.inf)
    if request.first_token_at is None:
        raise AssertionError("an idle engine serves what it is given")
    return Seconds(request.first_token_at)
