"""How well growth over one load time is forecast on the public traces, and what that costs.

Every step is forecast from the steps before it, as the decision would have to. The cost is the load
that is covered over the largest load that came: 1 would be a forecast that is right every time. The
first two days are not counted: there is little to know on the first.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.cli.benchmarks.figure import Figure
from adapter.fleet.units import Seconds
from adapter.scaling.growth import Learned, Pool, Series, forecast, steps_ahead
from adapter.simulator.traces import trace

COVERAGE: Final = 0.99
LEAST_COVERED: Final = 0.98
"""Promised on every trace, the one without a curve included."""

UNCOUNTED_DAYS: Final = 2
_DAY: Final = 86_400.0
_CHOSEN: Final = "gated"
_LABELS: Final[Mapping[Pool, str]] = {
    Pool.ANY_TIME: "anyTime",
    Pool.TIME_OF_DAY: "timeOfDay",
    Pool.KIND_OF_DAY: "kindOfDay",
}


@dataclass(frozen=True, slots=True)
class Trial:
    """A trace, in steps of ``width``, forecast over ``lead``."""

    name: str
    trace: str
    lead: Seconds
    width: Seconds
    """Five minutes as in the history; no finer than the trace where that is coarser."""

    days: int | None = None
    """None: all of them."""

    at_most: float | None = None
    """The cost promised."""


TRIALS: Final = (
    Trial("azureConv10Min", "azure-conv", Seconds(600.0), Seconds(300.0), at_most=1.16),
    Trial("azureCode10Min", "azure-code", Seconds(600.0), Seconds(300.0), at_most=1.22),
    Trial("azureCode30Min", "azure-code", Seconds(1800.0), Seconds(300.0), at_most=1.43),
    Trial("mSmall10Min", "servegen-m-small", Seconds(600.0), Seconds(600.0), 9, at_most=1.19),
    Trial("mLarge10Min", "servegen-m-large", Seconds(600.0), Seconds(600.0), at_most=1.48),
    Trial("nycTaxi30Min", "nyc-taxi", Seconds(1800.0), Seconds(1800.0), at_most=1.19),
)
"""The loads that the estimator was chosen by. The cost promised is that of quantiles of any time in
the study before it, or less; on the load without a curve nothing can be cheaper."""


def measure() -> tuple[Figure, ...]:
    """Return cost and coverage of each trial, for the pool that was asked and for each alone.

    Raises:
        TraceError: the traces are not there.
    """
    return tuple(figure for trial in TRIALS for figure in _figures(trial))


def _figures(trial: Trial) -> tuple[Figure, ...]:
    tallies = played(series_of(trial), lead=trial.lead)
    chosen = tallies.pop(_CHOSEN)
    name = trial.name
    alone = tuple(
        Figure(f"{name}.{label}{what}", value)
        for label, tally in tallies.items()
        for what, value in (("CostRatio", tally.cost), ("CoveredRatio", tally.coverage))
    )
    return (
        Figure(f"{name}.costRatio", chosen.cost, at_most=trial.at_most),
        Figure(f"{name}.coveredRatio", chosen.coverage, at_least=LEAST_COVERED),
        *alone,
    )


def series_of(trial: Trial) -> Series:
    """Return the load of a trial in steps, each read in its middle."""
    found = trace(trial.trace)
    end = found.curve.points[-1][0]
    length = end if trial.days is None else min(end, trial.days * _DAY)
    width = trial.width
    values = [found.curve.rate((step + 0.5) * width) for step in range(int(length // width))]
    return Series(int(found.begin // width), width, values)


@dataclass(slots=True)
class Tally:
    """What was covered and what came, summed up."""

    said: float = 0.0
    came: float = 0.0
    steps: int = 0
    covered: int = 0

    @property
    def cost(self) -> float:
        """Return how much was covered over what came."""
        return self.said / self.came if self.came else math.nan

    @property
    def coverage(self) -> float:
        """Return the share of the steps in which that was enough."""
        return self.covered / self.steps if self.steps else math.nan

    def count(self, factor: float, growth: float, level: float) -> None:
        """Count a step in which ``factor`` was said and ``growth`` came."""
        self.said += factor * level
        self.came += growth * level
        self.steps += 1
        self.covered += growth <= factor


def played(series: Series, *, lead: Seconds) -> dict[str, Tally]:
    """Return what each pool, and the one that was asked, cost over the steps that count."""
    ahead, learned = steps_ahead(lead, series.width), Learned()
    tallies = {name: Tally() for name in (_CHOSEN, *_LABELS.values())}
    for count in range(series.per_day, len(series.values) - ahead):
        part = Series(series.first, series.width, series.values[:count])
        learned = forecast(learned, part, ahead=ahead, coverage=COVERAGE)
        growth, level = series.ratio(part.last, ahead), part.base(part.last)
        if count < UNCOUNTED_DAYS * series.per_day or growth is None or level is None:
            continue
        tallies[_CHOSEN].count(learned.factor, growth, level)
        for pool, said in learned.pending[-1].said.items():
            tallies[_LABELS[pool]].count(said, growth, level)
    return tallies
