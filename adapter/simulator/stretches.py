"""Which part of which load the matrix plays: the hours that fill histories, and those judged."""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.synthetic import DAY, SCENARIOS, Decks, Play, Rates, Steady
from adapter.simulator.traces import TRACES, trace
from adapter.simulator.world import SUNDAY

_HOUR: Final = 3600.0
_MONDAY: Final = Timestamp(SUNDAY + DAY)
"""The synthetic weeks begin on a Monday."""

_LOOK: Final = 10.0
"""Seconds between two looks at a curve for its peak: the length of a slice of its noise."""


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of a load, in hours since its begin."""

    since: float
    warm_up: float
    """Played and neither judged nor paid for: rules learn, and begin from the same state."""

    judged: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A part of a load, ready to be scaled and played."""

    rates: Rates
    decks: Decks
    since: Seconds
    warm_up: Seconds
    judged: Seconds
    begin: Timestamp
    """The date of the first request played: some rules know weekdays."""

    @property
    def length(self) -> Seconds:
        """Return the seconds played in all."""
        return Seconds(self.warm_up + self.judged)

    @property
    def peak(self) -> float:
        """Return the highest rate of the curve while it is judged, in requests per second."""
        looks = int(self.judged // _LOOK)
        first = self.since + self.warm_up
        return max(self.rates.rate(first + look * _LOOK) for look in range(looks + 1))

    def play(self, factor: float, *, seed: int) -> Play:
        """Return the requests at ``factor`` times the load."""
        return Play(
            rates=Scaled(self.rates, factor),
            decks=self.decks,
            length=self.length,
            seed=seed,
            since=self.since,
        )


@dataclass(frozen=True, slots=True)
class Scaled:
    """A rate times ``factor``; as bursty as independent copies when more, thinned when less."""

    rates: Rates
    factor: float

    def rate(self, after: float) -> float:
        """Return the requests per second."""
        return self.factor * self.rates.rate(after)

    def dispersion(self, after: float) -> float | None:
        """Return the index of dispersion of the window then, if known."""
        known = self.rates.dispersion(after)
        return None if known is None else 1 + (known - 1) * min(1.0, self.factor)


WHOLE: Final = {
    "office-week": Hours(since=18.0, warm_up=6.0, judged=24.0),
    "bursts": Hours(since=18.0, warm_up=6.0, judged=24.0),
    "flash-crowd": Hours(since=18.0, warm_up=6.0, judged=24.0),
    "longer-prompts": Hours(since=42.0, warm_up=6.0, judged=24.0),
    "clocks-change": Hours(since=162.0, warm_up=6.0, judged=24.0),
    "llmd-ramp": Hours(since=0.0, warm_up=0.05, judged=0.625),
    "azure-conv": Hours(since=18.0, warm_up=6.0, judged=24.0),
    "azure-code": Hours(since=66.0, warm_up=6.0, judged=48.0),
    "servegen-m-small": Hours(since=42.0, warm_up=6.0, judged=24.0),
    "servegen-m-large": Hours(since=42.0, warm_up=6.0, judged=24.0),
    "nyc-taxi": Hours(since=42.0, warm_up=6.0, judged=24.0),
}
"""A day of each, from midnight: Azure's conversations on their Monday and its code on Monday and
Tuesday, as published before; the scenarios on the day that something happens."""

QUICK: Final = {
    "office-week": Hours(since=31.75, warm_up=0.25, judged=1.0),
    "flash-crowd": Hours(since=33.5, warm_up=0.25, judged=1.25),
    "longer-prompts": Hours(since=58.25, warm_up=0.25, judged=0.75),
    "llmd-ramp": WHOLE["llmd-ramp"],
}
"""The morning's rise, the crowd, the release, and the ramp: what a fleet has to follow."""


def stretch(name: str, hours: Hours) -> Stretch:
    """Return the ``hours`` of a scenario or a trace.

    Raises:
        TraceError: the trace, or the directory of traces, is not there.
    """
    if name in SCENARIOS:
        scenario = SCENARIOS[name]
        rates, decks, began = scenario.rates, scenario.decks, _MONDAY
    else:
        found = trace(name)
        rates, decks, began = found.curve, Steady(found.deck), found.begin
    since = Seconds(hours.since * _HOUR)
    return Stretch(
        rates=rates,
        decks=decks,
        since=since,
        warm_up=Seconds(hours.warm_up * _HOUR),
        judged=Seconds(hours.judged * _HOUR),
        begin=Timestamp(began + since),
    )


KNOWN: Final = (*SCENARIOS, *TRACES)
"""Every load there is; the latter need their files."""
