"""From a rate over time to single requests, and rates made up for when there is no trace.

A minute's rate is the curve's times a noise of its own, its requests are a Poisson process, and
their lengths are drawn from a deck. Where a trace tells how bursty it was, the noise is that.
"""

import math
import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from adapter.fleet.units import Seconds
from adapter.simulator.workload import Arrival

Deck = Sequence[tuple[int, int]]
"""Prompt and output tokens of requests that are equally likely."""

MINUTE_SIGMA: Final = 0.07
"""Spread of a minute's load around its curve, as in the Azure weeks."""

SLICE: Final = Seconds(10.0)
"""The rate is constant for so long; a minute of noise and a burst's window are whole slices."""

DAY: Final = Seconds(86_400.0)

_MINUTE: Final = 60.0
_HOUR: Final = 3600.0
_DECK_SIZE: Final = 8192


class Rates(Protocol):
    """Requests per second over time."""

    def rate(self, after: float) -> float:
        """Return the requests per second ``after`` so many seconds, 0 or more."""
        ...

    def dispersion(self, after: float) -> float | None:
        """Return the index of dispersion of counts in the window then; None: not known."""
        ...


class Decks(Protocol):
    """How long requests are, over time."""

    def deck(self, after: float) -> Deck:
        """Return the deck that requests are drawn from ``after`` so many seconds."""
        ...


@dataclass(frozen=True, slots=True)
class Steady:
    """One deck for all times."""

    cards: Deck

    def deck(self, after: float) -> Deck:
        """Return it."""
        del after
        return self.cards


@dataclass(frozen=True, slots=True)
class Shift:
    """Prompts become ``factor`` times as long at a moment, for good: a release, a new product."""

    before: Deck
    at: Seconds
    factor: float

    def deck(self, after: float) -> Deck:
        """Return the deck as it is, or with longer prompts."""
        if after < self.at:
            return self.before
        return [(max(1, round(prompt * self.factor)), output) for prompt, output in self.before]


@dataclass(frozen=True, slots=True, kw_only=True)
class Play:
    """Requests of one rate and one deck; the same for the same seed, on any machine."""

    rates: Rates
    decks: Decks
    length: Seconds
    seed: int
    since: Seconds = Seconds(0.0)  # noqa: RUF009 - NewType is the identity
    """Where in the rates and decks it begins."""

    minute_sigma: float = MINUTE_SIGMA
    """Used where the dispersion is not known."""

    window: Seconds = Seconds(600.0)  # noqa: RUF009 - NewType is the identity
    """What the dispersion is about."""

    def arrivals(self) -> Iterator[Arrival]:
        """Yield every request in the order of arrival; seconds count from ``since``."""
        chance = random.Random(self.seed)
        draw, log = chance.random, math.log
        noise, noise_until = 1.0, 0.0
        begin = 0.0
        while begin < self.length:
            end = min(begin + SLICE, self.length)
            middle = self.since + (begin + end) / 2
            if begin >= noise_until:
                noise, noise_until = self._noise(begin, chance)
            rate = noise * self.rates.rate(middle)
            cards = self.decks.deck(middle)
            count = len(cards)
            after = begin - log(1.0 - draw()) / rate if rate > 0 else end
            while after < end:
                prompt, output = cards[int(draw() * count)]
                yield Arrival(Seconds(after), prompt, output)
                after -= log(1.0 - draw()) / rate
            begin = end

    def _noise(self, begin: float, chance: random.Random) -> tuple[float, float]:
        """Return by what the rates are multiplied now, 1 on average, and until when."""
        dispersion = self.rates.dispersion(self.since + begin)
        if dispersion is None:
            sigma = self.minute_sigma
            noise = chance.lognormvariate(-(sigma**2) / 2, sigma) if sigma else 1.0
            return noise, begin + _MINUTE
        expected = self.window * self.rates.rate(self.since + begin + self.window / 2)
        variance = (dispersion - 1) / expected if expected > 0 else 0.0
        noise = chance.gammavariate(1 / variance, variance) if variance > 0 else 1.0
        return noise, begin + self.window


@dataclass(frozen=True, slots=True)
class Curve:
    """A rate by linear interpolation between points; a step is two points at one moment."""

    points: tuple[tuple[float, float], ...]
    """Seconds since the begin, rising, and requests per second; level before and after."""

    dispersions: tuple[float, ...] = ()
    """The index of dispersion of counts in the window that begins at each point, if known."""

    def rate(self, after: float) -> float:
        """Return the requests per second."""
        place = bisect_right(self.points, (after, math.inf))
        if place == 0:
            return self.points[0][1]
        if place == len(self.points):
            return self.points[-1][1]
        (x0, y0), (x1, y1) = self.points[place - 1], self.points[place]
        return y0 + (y1 - y0) * (after - x0) / (x1 - x0)

    def dispersion(self, after: float) -> float | None:
        """Return the index of dispersion of the window that ``after`` is in."""
        if not self.dispersions:
            return None
        return self.dispersions[max(0, bisect_right(self.points, (after, math.inf)) - 1)]

    @property
    def length(self) -> Seconds:
        """Return the time that the points span."""
        return Seconds(self.points[-1][0])

    def times(self, factor: float) -> "Curve":
        """Return ``factor`` times the load.

        More is independent copies, which are as bursty; less is a thinned one, which is not:
        take whole clients instead where burstiness matters.
        """
        share = min(1.0, factor)
        return Curve(
            tuple((after, rate * factor) for after, rate in self.points),
            tuple(1 + (dispersion - 1) * share for dispersion in self.dispersions),
        )


@dataclass(frozen=True, slots=True)
class Week:
    """A week of an office product, in requests per second; it begins on a Monday, 00:00 UTC."""

    mean: float
    """Of a working day."""

    swing: float = 0.6
    """By what share of the mean the day's peak is above it, and its night below."""

    peak_hour: float = 14.0
    """Local time."""

    weekend: float = 0.5
    """A weekend day's load as a share of a working day's."""

    bursts: tuple["Burst", ...] = ()
    clocks_change: Seconds | None = None
    """When local clocks are set forward by an hour: people come an hour earlier in UTC."""

    def rate(self, after: float) -> float:
        """Return the requests per second."""
        summer = self.clocks_change is not None and after >= self.clocks_change
        local = after + (_HOUR if summer else 0.0)
        phase = 2 * math.pi * (local / _HOUR - self.peak_hour) / 24
        day = self.mean * (1 + self.swing * math.cos(phase))
        if int(local // DAY) % 7 >= 5:  # noqa: PLR2004 - Saturday and Sunday
            day *= self.weekend
        return day * math.prod(burst.factor(after) for burst in self.bursts)

    def dispersion(self, after: float) -> float | None:
        """Return None: a minute's noise is as in the Azure weeks."""
        del after
        return None


@dataclass(frozen=True, slots=True)
class Burst:
    """A load that rises within ``rise``, stays for ``length`` and falls as it rose."""

    after: Seconds
    times: float
    length: Seconds
    rise: Seconds = Seconds(60.0)  # noqa: RUF009 - NewType is the identity

    def factor(self, after: float) -> float:
        """Return by what the load is multiplied then."""
        since, left = after - self.after, self.after + self.rise + self.length + self.rise - after
        part = min(1.0, max(0.0, min(since, left) / self.rise))
        return 1.0 + (self.times - 1.0) * part


def lognormal_deck(
    prompt: tuple[float, float], output: tuple[float, float], *, seed: int = 0
) -> Deck:
    """Return a deck of lognormal lengths, each given by median and sigma, not correlated."""
    chance = random.Random(seed)

    def lengths(law: tuple[float, float]) -> list[int]:
        median, sigma = law
        return [
            max(1, round(chance.lognormvariate(math.log(median), sigma))) for _ in range(_DECK_SIZE)
        ]

    return list(zip(lengths(prompt), lengths(output), strict=True))


Quantiles = Sequence[tuple[float, float]]
"""Shares from 0 to 1, rising, and the length that this share of the requests does not exceed."""


def quantile_deck(prompts: Quantiles, outputs: Quantiles, *, seed: int = 0) -> Deck:
    """Return a deck of lengths that are distributed so, evenly between quantiles, uncorrelated."""
    shares = [(n + 0.5) / _DECK_SIZE for n in range(_DECK_SIZE)]
    shuffled = [_at_quantile(outputs, share) for share in shares]
    random.Random(seed).shuffle(shuffled)
    lengths = [_at_quantile(prompts, share) for share in shares]
    return list(zip(lengths, shuffled, strict=True))


def _at_quantile(table: Quantiles, share: float) -> int:
    place = bisect_right(table, (share, math.inf))
    if place in (0, len(table)):
        return max(1, round(table[min(place, len(table) - 1)][1]))
    (below, low), (above, high) = table[place - 1], table[place]
    return max(1, round(low + (high - low) * (share - below) / (above - below)))


CHAT_DECK: Final = lognormal_deck((900.0, 0.8), (90.0, 0.7))
"""Some 1.2k tokens in and 115 out, as in Azure's conversations."""

LLMD_RAMP: Final = Curve(
    tuple(
        point
        for begin, end, rate in (
            (0, 330, 2.0),
            (330, 690, 4.0),
            (690, 1050, 6.0),
            (1050, 1410, 8.0),
            (1410, 1770, 10.0),
            (1770, 2130, 4.0),
            (2130, 2430, 1.0),
        )
        for point in ((float(begin), rate), (float(end), rate))
    )
)
"""The ramp that llm-d publishes numbers for: 95.8 % in time at 5.93 replicas of 3 to 8, Qwen3-32B
on 2 x H100, starts of 100 s, first token within 3 s and 100 ms per token."""

LLMD_DECK: Final[Deck] = [(4000, 1000)]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load that ships with the product, so that everything runs without a trace."""

    rates: Rates
    decks: Decks
    length: Seconds

    def play(self, *, seed: int, length: Seconds | None = None) -> Play:
        """Return its requests, all or those of the first ``length`` seconds."""
        return Play(rates=self.rates, decks=self.decks, length=length or self.length, seed=seed)


def _at(day: int, hour: float) -> Seconds:
    return Seconds(day * DAY + hour * _HOUR)


_CHAT: Final = Steady(CHAT_DECK)
_WEEK: Final = Seconds(7 * DAY)

SCENARIOS: Final = {
    "office-week": Scenario(Week(20.0), _CHAT, _WEEK),
    "bursts": Scenario(
        Week(
            20.0,
            bursts=tuple(
                Burst(_at(day, 9.5 + 1.7 * day), times=1.8, length=Seconds(900.0))
                for day in range(5)
            ),
        ),
        _CHAT,
        _WEEK,
    ),
    "flash-crowd": Scenario(
        Week(15.0, bursts=(Burst(_at(1, 10.0), times=4.0, length=Seconds(1800.0)),)),
        _CHAT,
        Seconds(3 * DAY),
    ),
    "longer-prompts": Scenario(
        Week(20.0), Shift(CHAT_DECK, at=_at(2, 11.0), factor=2.0), Seconds(4 * DAY)
    ),
    "clocks-change": Scenario(Week(20.0, clocks_change=_at(7, 2.0)), _CHAT, Seconds(10 * DAY)),
    "llmd-ramp": Scenario(LLMD_RAMP, Steady(LLMD_DECK), LLMD_RAMP.length),
}
"""By name: a plain week, bursts of a quarter of an hour, a crowd of four times the load, prompts
that double, a week whose clocks are set forward on the second Monday, and llm-d's ramp."""
