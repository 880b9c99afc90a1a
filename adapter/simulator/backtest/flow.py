"""A fluid replica: how many requests it takes in, runs and finishes, by the engine's own step law.

Requests are an amount, not one by one. In each slice a replica takes in prompts first, as vLLM
does, as far as the token budget of a step and the KV cache let it; what is left of the second are
decode steps, which give every running request a token. So an overload shows as it does in an
engine: first the batch grows and tokens come slower, then the cache is full and requests wait.
"""

import math
from dataclasses import dataclass
from typing import Final

from adapter.simulator.presets import EnginePreset
from adapter.simulator.synthetic import Deck

_LEAST_SHARE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class Lengths:
    """What the requests of a slice are like, on average."""

    prompt: float
    output: float
    square: float
    """Mean square of the prompt: attention within it."""

    context: float
    """Tokens in the KV cache of a request, on average over its decode steps."""

    @classmethod
    def of(cls, deck: Deck) -> "Lengths":
        """Return the means of ``deck``."""
        count = len(deck)
        steps = math.fsum(output for _, output in deck)
        held = math.fsum(output * (prompt + output / 2) for prompt, output in deck)
        return cls(
            prompt=math.fsum(prompt for prompt, _ in deck) / count,
            output=steps / count,
            square=math.fsum(prompt**2 for prompt, _ in deck) / count,
            context=held / steps,
        )

    def with_means(self, prompt: float, output: float) -> "Lengths":
        """Return lengths of these means, spread in the same way."""
        longer = prompt / self.prompt
        share = self.output / 2 / self.context
        return Lengths(
            prompt,
            output,
            self.square * longer**2,
            self.context * ((1 - share) * longer + share * output / self.output),
        )


@dataclass(frozen=True, slots=True)
class Slice:
    """What one replica did in a slice of time."""

    taken: float
    """Requests a second whose prompt was computed."""

    running: float
    """Requests in the batch at its end."""

    steps: float
    """A second."""

    step_seconds: float
    """Of a step with a prompt in it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """An engine's step law for requests of certain lengths."""

    lengths: Lengths
    decode: float
    """Seconds of a step that only decodes, without its sequences: reading the weights."""

    sequence: float
    """More for each running request."""

    mixed: float
    """Seconds of a step with prompts, without prompts and sequences."""

    prefill: float
    """More for each prompt."""

    token_budget: float
    largest_batch: float
    """Requests that seats and KV cache have room for."""

    alone: float
    """Seconds to the first token on an idle engine, without the API's share."""

    @property
    def work(self) -> float:
        """Return the engine-seconds of a request beyond what every step costs anyway."""
        return self.prefill + self.lengths.output * self.sequence

    @classmethod
    def of(cls, preset: EnginePreset, lengths: Lengths) -> "Replica":
        """Return ``preset`` at requests of ``lengths``."""
        kappa = preset.kappa
        held = min(lengths.prompt + lengths.output / 2, preset.admissible_tokens)
        return cls(
            lengths=lengths,
            decode=kappa * preset.a,
            sequence=kappa * (preset.b + preset.c * lengths.context),
            mixed=kappa * preset.e,
            prefill=kappa * (preset.alpha * lengths.prompt + preset.beta * lengths.square),
            token_budget=preset.max_num_batched_tokens,
            largest_batch=max(1.0, min(preset.max_num_seqs, preset.admissible_tokens / held)),
            alone=preset.isolated_prefill_seconds(round(lengths.prompt)),
        )

    def run(self, running: float, offered: float, seconds: float) -> Slice:
        """Return what a replica with ``running`` requests makes of ``offered`` ones a second.

        The batch relaxes towards the level at which as many finish as are taken in; in an
        overload there is no such level, and it grows by what cannot be finished.
        """
        most, slowest = self._prefill_limit(running)
        taken = min(offered, most)
        after = self._after(running, taken, slowest, seconds)
        if after > self.largest_batch:
            growth = max(0.0, self.largest_batch - running) / seconds
            taken, after = min(taken, growth + self._full_rate()), self.largest_batch
        steps = self._steps(running, taken, slowest)
        together = max(1.0, taken / steps)
        step = self.sequence * running + self.mixed + self.prefill * together
        return Slice(taken, after, steps, step)

    def _after(self, running: float, taken: float, slowest: float, seconds: float) -> float:
        leaving = self._steps(running, taken, slowest) / self.lengths.output
        level = taken / leaving
        return level + (running - level) * math.exp(-leaving * seconds)

    def _full_rate(self) -> float:
        """Return the requests a second that a full batch takes in: as many as it finishes."""
        each = self.lengths.output / self.largest_batch
        if each < 1:
            return 1.0 / (each * (self.mixed + self.sequence * self.largest_batch) + self.prefill)
        decode = each * (self.decode + self.sequence * self.largest_batch)
        return 1.0 / (decode + self.prefill + self.mixed - self.decode)

    def _prefill_limit(self, running: float) -> tuple[float, float]:
        """Return the most prompts a second, and the steps a second while there are so many."""
        tokens = max(1.0, self.token_budget - running)
        prompts = tokens / self.lengths.prompt
        step = self.sequence * running + self.mixed + self.prefill * prompts
        return prompts / step, 1.0 / step

    def _steps(self, running: float, taken: float, slowest: float) -> float:
        """Return the steps in a second that computes ``taken`` prompts as well."""
        left = 1.0 - taken * self.prefill
        steps = (left + taken * (self.decode - self.mixed)) / (
            self.decode + self.sequence * running
        )
        if steps < taken:
            steps = left / (self.mixed + self.sequence * running)
        return max(slowest, steps, _LEAST_SHARE)
