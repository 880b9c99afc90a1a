"""The measure of the engine: the same rules, one step at a time, nothing kept up to date."""

from dataclasses import dataclass

from adapter.simulator.engine import Request
from adapter.simulator.presets import EnginePreset


@dataclass(eq=False)
class Held:
    """A request inside; how much of it is in the KV cache, and how much must be."""

    request: Request
    need: int
    kv: int
    generated: int = 0
    taken_at: float | None = None

    @property
    def prefilling(self) -> bool:
        return self.kv < self.need

    @property
    def share(self) -> int:
        """What is set aside in the KV cache."""
        return max(self.need, self.kv)


class Stepper:
    """``SimulatedEngine`` without a closed form, a heap or a running total."""

    def __init__(self, preset: EnginePreset) -> None:
        self.preset = preset
        self.now = 0.0
        self.coming: list[Held] = []
        self.queue: list[Held] = []
        self.batch: list[Held] = []
        self.order: dict[int, int] = {}
        self.steps = self.generated = self.preemptions = 0
        self.fullest = 0

    @property
    def used(self) -> int:
        return sum(held.share for held in self.batch)

    def submit(self, request: Request) -> None:
        self.order[id(request)] = len(self.order)
        self.coming.append(Held(request, request.prompt_tokens, cached(request)))

    def advance(self, until: float) -> list[Request]:
        finished: list[Request] = []
        while True:
            self._admit()
            while self._decoders() and self.used + len(self._decoders()) > self.preset.kv_tokens:
                self._preempt()
            if not self.batch:
                if not self.coming or self.coming[0].request.arrived_at > until:
                    self.now = max(self.now, until)
                    return finished
                self.now = max(self.now, self.coming[0].request.arrived_at)
                continue
            plan = self._plan()
            end = self.now + self._seconds(plan)
            if end > until:
                return finished
            finished += self._step(plan, end)
            self.fullest = max(self.fullest, self.used)

    def _decoders(self) -> list[Held]:
        return [held for held in self.batch if not held.prefilling]

    def _rank(self, held: Held) -> int:
        return self.order[id(held.request)]

    def _admit(self) -> None:
        while self.coming and self.coming[0].request.arrived_at <= self.now:
            self.queue.append(self.coming.pop(0))
        while self.queue and len(self.batch) < self.preset.max_num_seqs:
            spoken_for = sum(held.need - held.kv for held in self.batch if held.prefilling)
            decoders = len(self._decoders())
            full = self.used + decoders + self.queue[0].need > self.preset.kv_tokens * 0.99
            if full or spoken_for + decoders >= self.preset.max_num_batched_tokens:
                return
            taken = self.queue.pop(0)
            taken.taken_at = self.now if taken.taken_at is None else taken.taken_at
            self.batch.append(taken)

    def _preempt(self) -> None:
        latest = max(self.batch, key=self._rank)
        self.batch.remove(latest)
        latest.need = latest.request.prompt_tokens + latest.generated
        latest.kv = cached(latest.request)
        self.queue.insert(0, latest)
        self.preemptions += 1

    def _plan(self) -> list[tuple[Held, int]]:
        left = self.preset.max_num_batched_tokens - len(self._decoders())
        plan = []
        for held in (held for held in self.batch if held.prefilling):
            tokens = min(left, held.need - held.kv)
            left -= tokens
            plan.append((held, tokens))
        return plan

    def _seconds(self, plan: list[tuple[Held, int]]) -> float:
        law, decoders = self.preset, self._decoders()
        context = sum(held.kv for held in decoders)
        squares = sum((held.kv + tokens) ** 2 - held.kv**2 for held, tokens in plan)
        prefill = law.e + law.alpha * sum(tokens for _, tokens in plan)
        seconds = law.b * len(decoders) + law.c * context + max(law.a, prefill)
        return law.kappa * (seconds + law.beta * squares)

    def _step(self, plan: list[tuple[Held, int]], end: float) -> list[Request]:
        decoders = sorted(self._decoders(), key=self._rank)
        self.now = end
        self.steps += 1
        for held in decoders:
            held.kv += 1
        for held, tokens in plan:
            held.kv += tokens
        whole = [held for held, _ in plan if not held.prefilling]
        return [held.request for held in (*decoders, *whole) if self._token(held)]

    def _token(self, held: Held) -> bool:
        """Give it a token; return whether that was the last."""
        request, law = held.request, self.preset
        held.generated += 1
        self.generated += 1
        if request.first_token_at is None:
            request.first_token_at = self.now + law.api_seconds
        if held.generated < request.output_tokens:
            return False
        self.batch.remove(held)
        request.finished_at = self.now + law.api_seconds + law.token_seconds * request.output_tokens
        return True


def cached(request: Request) -> int:
    return min(request.cached_tokens, request.prompt_tokens - 1)
