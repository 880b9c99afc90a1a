"""What was asked of a fleet: from bins of a history, a curve or single requests to a load.

A history tells arrivals and tokens, not queues: those were what the replicas of then made of them,
and other replicas make other queues. Hence the load alone is taken over, and played anew.
"""

import heapq
import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from typing import Final, Protocol

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.stretches import Scaled
from adapter.simulator.synthetic import MINUTE_SIGMA, Curve, Deck, Decks, Play, Rates
from adapter.simulator.workload import Arrival

COUNTERFACTUAL: Final = (
    "Past queues are counterfactual: demand is rebuilt from arrivals and tokens, "
    "and the queues here are what this policy's replicas would have made of it."
)
"""Said in every form of output: nobody may take these queues for the recorded ones."""

THINNED: Final = (
    "A load scaled down is a thinned one, and a thinned one is less bursty than the real one: "
    "a share p of it has 1 + (idc - 1) p of the index of dispersion."
)

_MINUTE: Final = Seconds(60.0)
_WINDOW: Final = Seconds(600.0)
"""What an index of dispersion is about."""

_MOST_CARDS: Final = 8192
_PROMPT_SIGMA, _OUTPUT_SIGMA = 0.8, 0.7
"""Spread of the lengths around a bin's means, as in Azure's conversations."""


@dataclass(frozen=True, slots=True)
class Bin:
    """What arrived in ``seconds`` from ``start``; lengths count only the requests in it."""

    start: Timestamp
    seconds: Seconds
    requests: float
    prompt_tokens: float
    output_tokens: float
    masked: bool = False
    """Not to be believed: a gap of the history, or an outage of the fleet itself."""


class Load(Protocol):
    """Something to play."""

    @property
    def name(self) -> str:
        """Return what it is called."""
        ...

    @property
    def begin(self) -> Timestamp:
        """Return when it began."""
        ...

    @property
    def length(self) -> Seconds:
        """Return how long it lasts."""
        ...

    @property
    def remarks(self) -> tuple[str, ...]:
        """Return what is not original about it: to be said wherever its numbers are."""
        ...

    @property
    def gaps(self) -> tuple[tuple[Timestamp, Timestamp], ...]:
        """Return when nothing is known; there the load is made up between its neighbours."""
        ...

    def lengths(self) -> tuple[Deck, ...]:
        """Return lengths of its requests: one deck, or a few that differ over time."""
        ...

    def arrivals(self, *, scale: float, seed: int) -> Iterator[Arrival]:
        """Yield the requests at ``scale`` times the load, by seconds since the begin."""
        ...

    def bins(self, width: Seconds, *, scale: float, seed: int) -> Iterator[Bin]:
        """Yield the same load in bins of ``width``, the last one perhaps shorter."""
        ...

    def part(self, skip: Seconds, length: Seconds | None) -> "Load":
        """Return what comes after ``skip``, for ``length`` or to the end."""
        ...


@dataclass(frozen=True, slots=True)
class Requests:
    """Requests as they came, one by one."""

    name: str
    begin: Timestamp
    every: tuple[Arrival, ...]
    length: Seconds
    remarks: tuple[str, ...] = ()
    gaps: tuple[tuple[Timestamp, Timestamp], ...] = ()

    def lengths(self) -> tuple[Deck, ...]:
        """Return them, correlated as they were; at the most some thousands."""
        step = max(1, math.ceil(len(self.every) / _MOST_CARDS))
        return ([(one.prompt_tokens, one.output_tokens) for one in self.every[::step]],)

    def arrivals(self, *, scale: float, seed: int) -> Iterator[Arrival]:
        """Yield each request once for each whole in ``scale``, and by chance for the rest.

        Copies come within the minute after the original: at the same moment they would be a burst
        that nobody sent.
        """
        chance = random.Random(seed)
        later: list[tuple[float, int, Arrival]] = []
        for number, one in enumerate(self.every):
            while later and later[0][0] <= one.after:
                yield heapq.heappop(later)[2]
            copies = int(scale) + (chance.random() < scale % 1)
            if copies:
                yield one
            for copy in range(1, copies):
                after = one.after + _MINUTE * chance.random()
                if after < self.length:
                    again = replace(one, after=Seconds(after))
                    heapq.heappush(later, (after, number * 1000 + copy, again))
        while later:
            yield heapq.heappop(later)[2]

    def bins(self, width: Seconds, *, scale: float, seed: int) -> Iterator[Bin]:
        """Yield what came in each ``width``."""
        coming = self.arrivals(scale=scale, seed=seed)
        one = next(coming, None)
        for after in _grid(width, self.length):
            count = prompts = outputs = 0
            end = min(after + width, self.length)
            while one is not None and one.after < end:
                count += 1
                prompts += one.prompt_tokens
                outputs += one.output_tokens
                one = next(coming, None)
            at = Timestamp(self.begin + after)
            yield Bin(at, Seconds(end - after), count, prompts, outputs)

    def part(self, skip: Seconds, length: Seconds | None) -> "Requests":
        """Return the requests in a part of the time."""
        end = self.length if length is None else min(self.length, skip + length)
        kept = tuple(
            replace(one, after=Seconds(one.after - skip))
            for one in self.every
            if skip <= one.after < end
        )
        begin = Timestamp(self.begin + skip)
        return replace(self, every=kept, begin=begin, length=Seconds(max(0.0, end - skip)))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Requests drawn from a rate and a deck, both over time: curves and scenarios."""

    name: str
    begin: Timestamp
    length: Seconds
    rates: Rates
    decks: Decks
    since: Seconds = Seconds(0.0)  # noqa: RUF009 - NewType is the identity
    """Where in the rates and decks it begins."""

    remarks: tuple[str, ...] = ()
    gaps: tuple[tuple[Timestamp, Timestamp], ...] = ()
    minute_sigma: float = MINUTE_SIGMA
    """Of the noise that is added; 0 where the rates have a noise of their own."""

    def lengths(self) -> tuple[Deck, ...]:
        """Return the decks of begin, middle and end, each once."""
        decks = [self.decks.deck(self.since + share * self.length) for share in (0.0, 0.5, 1.0)]
        return tuple({id(deck): deck for deck in decks}.values())

    def arrivals(self, *, scale: float, seed: int) -> Iterator[Arrival]:
        """Yield requests: the rate, a noise for each minute, and a Poisson process."""
        return Play(
            rates=Scaled(self.rates, scale),
            decks=self.decks,
            length=self.length,
            seed=seed,
            since=self.since,
            minute_sigma=self.minute_sigma,
        ).arrivals()

    def bins(self, width: Seconds, *, scale: float, seed: int) -> Iterator[Bin]:
        """Yield as many requests as such a process brings, with the lengths' means."""
        chance, rates = random.Random(seed), Scaled(self.rates, scale)
        noise, noise_until = 1.0, 0.0
        known: Deck | None = None
        prompt = output = 0.0
        for after in _grid(width, self.length):
            seconds = min(width, self.length - after)
            middle = self.since + after + seconds / 2
            if after >= noise_until:
                noise, noise_until = self._noise(rates, after, width, chance)
            mean = noise * rates.rate(middle) * seconds
            count = max(0.0, round(chance.gauss(mean, math.sqrt(mean))))
            cards = self.decks.deck(middle)
            if cards is not known:
                known = cards
                prompt, output = (sum(c[side] for c in cards) / len(cards) for side in (0, 1))
            at = Timestamp(self.begin + after)
            yield Bin(at, Seconds(seconds), count, count * prompt, count * output)

    def _noise(
        self, rates: Scaled, after: float, width: Seconds, chance: random.Random
    ) -> tuple[float, float]:
        """Return by what the rate is multiplied, 1 on average, and until when."""
        dispersion = rates.dispersion(self.since + after)
        if dispersion is None:
            sigma = self.minute_sigma / math.sqrt(max(1.0, width / _MINUTE))
            noise = chance.lognormvariate(-(sigma**2) / 2, sigma) if sigma else 1.0
            return noise, after + max(width, _MINUTE)
        expected = _WINDOW * rates.rate(self.since + after + _WINDOW / 2)
        variance = (dispersion - 1) / expected if expected > 0 else 0.0
        noise = chance.gammavariate(1 / variance, variance) if variance > 0 else 1.0
        return noise, after + _WINDOW

    def part(self, skip: Seconds, length: Seconds | None) -> "Drawn":
        """Return the same rates for a part of the time."""
        left = max(0.0, self.length - skip)
        return replace(
            self,
            begin=Timestamp(self.begin + skip),
            since=Seconds(self.since + skip),
            length=Seconds(left if length is None else min(left, length)),
        )


def of_bins(name: str, bins: Sequence[Bin], *, remarks: tuple[str, ...] = ()) -> Drawn:
    """Return the load of a history: bins in the order of time, each at least as late as its end.

    Between the middles of two bins the rate is linear; masked bins and holes between bins are
    bridged the same way and told as gaps. Lengths are drawn around the means of the bin.

    Raises:
        ValueError: no bin has requests to go by, or bins overlap; says which.
    """
    kept = [one for one in bins if not one.masked]
    if not any(one.requests > 0 for one in kept):
        raise ValueError(f"{name}: no requests in it, so there is nothing to play")
    begin = bins[0].start
    points: list[tuple[float, float]] = []
    for one in kept:
        middle = one.start + one.seconds / 2 - begin
        if one.seconds <= 0:
            raise ValueError(f"{name}: the bin at {one.start:.0f} is {one.seconds:g} s long")
        if points and middle <= points[-1][0]:
            raise ValueError(f"{name}: the bin at {one.start:.0f} begins before the last one ended")
        points.append((middle, one.requests / one.seconds))
    widest = max(one.seconds for one in kept)
    end = max(one.start + one.seconds for one in bins)
    return Drawn(
        name=name,
        begin=begin,
        length=Seconds(end - begin),
        rates=Curve(tuple(points)),
        decks=_BinnedDecks(begin, tuple(one for one in kept if one.requests > 0)),
        remarks=remarks,
        gaps=_gaps(bins),
        minute_sigma=MINUTE_SIGMA if widest > _MINUTE else 0.0,
    )


def _gaps(bins: Sequence[Bin]) -> tuple[tuple[Timestamp, Timestamp], ...]:
    """Return the time of masked bins and between bins, joined where they touch."""
    holes = [(one.start, Timestamp(one.start + one.seconds)) for one in bins if one.masked]
    for one, later in pairwise(bins):
        end = Timestamp(one.start + one.seconds)
        if later.start - end > _ROUNDING:
            holes.append((end, later.start))
    joined: list[tuple[Timestamp, Timestamp]] = []
    for begin, end in sorted(holes):
        if joined and begin - joined[-1][1] <= _ROUNDING:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return tuple(joined)


_ROUNDING: Final = 1.0
"""Seconds between two bins that are no hole."""


@dataclass(frozen=True)
class _BinnedDecks:
    """Lengths drawn around each bin's means."""

    begin: Timestamp
    bins: tuple[Bin, ...]
    _made: dict[tuple[int, int], Deck] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def _starts(self) -> list[float]:
        return [one.start - self.begin for one in self.bins]

    def deck(self, after: float) -> Deck:
        """Return the deck of the bin then, or of the last one with requests before."""
        one = self.bins[max(0, bisect_right(self._starts, after) - 1)]
        means = (
            max(1, round(one.prompt_tokens / one.requests)),
            max(1, round(one.output_tokens / one.requests)),
        )
        return self._of(means)

    def _of(self, means: tuple[int, int]) -> Deck:
        """Return a deck with these means; 5 % finer differences are one deck."""
        key = (round(math.log(means[0]) / _FINE), round(math.log(means[1]) / _FINE))
        deck = self._made.get(key)
        if deck is None:
            prompt, output = (math.exp(step * _FINE) for step in key)
            deck = self._made[key] = [
                (max(1, round(prompt * p)), max(1, round(output * o))) for p, o in _around_one()
            ]
        return deck


@cache
def _around_one() -> Sequence[tuple[float, float]]:
    """Return lengths with a mean of 1, lognormal and not correlated."""
    chance = random.Random(0)

    def around_one(sigma: float) -> list[float]:
        drawn = [chance.lognormvariate(0.0, sigma) for _ in range(_CARDS)]
        mean = math.fsum(drawn) / _CARDS
        return [length / mean for length in drawn]

    return list(zip(around_one(_PROMPT_SIGMA), around_one(_OUTPUT_SIGMA), strict=True))


_FINE: Final = 0.05
_CARDS: Final = 2048


def _grid(width: Seconds, length: Seconds) -> Iterator[float]:
    for number in range(math.ceil(length / width)):
        yield number * width
