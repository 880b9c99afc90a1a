"""Who asks for how much, and when: a quiet night, a morning ramp, a burst, an evening."""

import math
import random
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds

MORNING: Final = (
    (0.00, 6.0),
    (0.08, 6.0),
    (0.42, 30.0),
    (0.55, 31.0),
    (0.59, 40.0),
    (0.66, 40.0),
    (0.70, 26.0),
    (0.78, 10.0),
    (1.00, 8.0),
)
"""Requests per second over the share of the day that has passed; linear in between."""

_NOISE_SIGMA: Final = 0.07
"""Spread of one minute's load around its curve, as in the Azure traces."""

_PROMPT_TOKENS: Final = (900.0, 0.8, 8000)
"""Median, sigma and largest of a lognormal: a chat with some context, 1.2k on average."""

_OUTPUT_TOKENS: Final = (280.0, 0.7, 1500)
"""Median, sigma and largest: 350 on average."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One request to the model."""

    after: Seconds
    """Since the workload's begin."""

    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Workload:
    """A curve played over ``length``: the same arrivals for the same seed, on any machine."""

    length: Seconds
    seed: int
    curve: tuple[tuple[float, float], ...] = MORNING
    """Share of the length, from 0 to 1, and the requests per second there."""

    def rate(self, elapsed: float) -> float:
        """Return the requests per second that the curve means ``elapsed`` seconds in."""
        share = min(1.0, elapsed / self.length)
        place = min(bisect_right(self.curve, (share, math.inf)), len(self.curve) - 1)
        (x0, y0), (x1, y1) = self.curve[place - 1], self.curve[place]
        return y0 + (y1 - y0) * (share - x0) / (x1 - x0)

    def arrivals(self) -> Iterator[Arrival]:
        """Yield every request in the order of arrival: Poisson around the noisy curve."""
        chance = random.Random(self.seed)
        for minute in range(math.ceil(self.length / 60)):
            noise = chance.lognormvariate(0.0, _NOISE_SIGMA)
            yield from self._minute(minute * 60.0, noise, chance)

    def _minute(self, begin: float, noise: float, chance: random.Random) -> Iterator[Arrival]:
        end = min(begin + 60.0, self.length)
        most = noise * max(self.rate(moment) for moment in self._bends(begin, end))
        moment = begin + chance.expovariate(most) if most > 0 else end
        while moment < end:
            if chance.random() * most < noise * self.rate(moment):
                prompt, output = (_tokens(chance, law) for law in (_PROMPT_TOKENS, _OUTPUT_TOKENS))
                yield Arrival(Seconds(moment), prompt, output)
            moment += chance.expovariate(most)

    def _bends(self, begin: float, end: float) -> list[float]:
        """Return where a piecewise linear curve can be highest between two moments."""
        bends = (share * self.length for share, _ in self.curve)
        return [begin, end, *(bend for bend in bends if begin < bend < end)]


def _tokens(chance: random.Random, law: tuple[float, float, int]) -> int:
    median, sigma, largest = law
    return max(1, min(largest, round(chance.lognormvariate(math.log(median), sigma))))
