"""By how much the load grows within one load time: from the daily curve, where that helps.

Growth is the largest load of the next load time over the mean of the last ten minutes: the level is
always the present one, and only its change is taken from the past. Three pools compete: what
happened at this time of day, the same on days of this kind (weekdays, weekends), and what happened
at any time. The one whose loss is lowest of late is asked; the last is the way back where no curve
is.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Final, cast

from adapter.fleet.units import Seconds
from adapter.scaling.conformal import Lane, fresh, quantile_of, scored

UNKNOWN_GROWTH: Final = 1.3
"""Taken during the first day: a day is the least that shows what a morning does."""

MOST_GROWTH: Final = 4.0
"""No pool asks for more: a growth like that is a service that came back, not a curve."""

POOL_DAYS: Final = 14
ANY_TIME_DAYS: Final = 7
_MANY_DAYS: Final = 10
_WIDE: Final = Seconds(3600.0)
_NARROW: Final = Seconds(1800.0)
_LAST: Final = Seconds(600.0)
_DAY: Final = 86_400.0
_SATURDAY: Final = 5

LEAST_POOL: Final = 12
"""Fewer ratios than these say nothing: the pool is silent."""

_LEAST_DAYS: Final = 3
"""Days a pool of a time of day rests on at the least: two mornings are no rule."""

MOST_MISSED: Final = 2.5
"""How many times the share that may be uncovered a pool may miss and still be asked."""

TRIED_DAYS: Final = 1.0
"""A pool must have been right for as long before it is believed."""


class Pool(StrEnum):
    """Where the ratios come from."""

    ANY_TIME = "any time"
    TIME_OF_DAY = "time of day"
    KIND_OF_DAY = "time of day, this kind of day"


@dataclass(frozen=True, slots=True)
class Series:
    """Offered work in steps of ``width``; None where it is not to be believed."""

    first: int
    """Number of the first step: it starts at ``first * width``."""

    width: Seconds
    values: Sequence[float | None]

    @property
    def last(self) -> int:
        """Return the number of the last step."""
        return self.first + len(self.values) - 1

    @property
    def per_day(self) -> int:
        """Return the steps of a day."""
        return round(_DAY / self.width)

    def ratio(self, number: int, ahead: int) -> float | None:
        """Return the growth from step ``number`` over the next ``ahead``; None if unknown."""
        back, place = self._back, number - self.first + 1
        if place < back:
            return None
        seen = self.values[place - back : place + ahead]
        if len(seen) < back + ahead or None in seen:
            return None
        known = cast("Sequence[float]", seen)
        base = sum(known[:back])
        return max(known[back:]) * back / base if base > 0 else None

    def base(self, number: int) -> float | None:
        """Return the mean load of the ten minutes up to the end of ``number``; None: no load."""
        back, place = self._back, number - self.first + 1
        seen = self.values[place - back : place] if place >= back else ()
        known = [value for value in seen if value is not None]
        mean = sum(known) / back if len(known) == back else 0.0
        return mean if mean > 0 else None

    @property
    def _back(self) -> int:
        return max(1, round(_LAST / self.width))


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the pools said at the end of a step, to be judged when its future has come."""

    number: int
    said: Mapping[Pool, float]


@dataclass(frozen=True, slots=True)
class Learned:
    """How the pools have done, and what is still to be judged; JSON-able, bounded by the lead."""

    lanes: Mapping[Pool, Lane] = field(default_factory=dict)
    pending: tuple[Forecast, ...] = ()
    number: int | None = None
    """The step that the latest forecast was made at the end of."""

    ahead: int = 0
    """Steps that it looks ahead."""

    coverage: float = 0.0
    factor: float = 1.0
    pool: Pool | None = None
    """Which pool ``factor`` is from; None: from none, too little is known."""

    days: int = 0
    """Days that it rests on."""


def steps_ahead(lead: Seconds, width: Seconds) -> int:
    """Return how many steps a lead time is, at least one."""
    return max(1, math.ceil(lead / width - 1e-9))


def forecast(
    learned: Learned, series: Series, *, ahead: int, coverage: float, zone: tzinfo = UTC
) -> Learned:
    """Return ``learned`` after the last step of ``series``: judged, corrected, and said anew.

    Causal: what is said rests on ratios whose future had come by then. Another lead time or
    coverage begins the judgement anew.
    """
    if (learned.ahead, learned.coverage) != (ahead, coverage):
        learned = Learned(ahead=ahead, coverage=coverage)
    lanes, pending = _judged(learned, series)
    pools = _pools(series, ahead, zone)
    said = {
        pool: _within(quantile_of(found, lanes.get(pool, fresh(coverage)).quantile))
        for pool, found in pools.items()
    }
    trusted = _trusted(lanes, coverage=coverage, tried=round(TRIED_DAYS * series.per_day))
    best = _best(lanes, said, trusted)
    return Learned(
        lanes=lanes,
        pending=(*pending, Forecast(series.last, said)) if said else pending,
        number=series.last,
        ahead=ahead,
        coverage=coverage,
        factor=UNKNOWN_GROWTH if best is None else said[best],
        pool=best,
        days=min(POOL_DAYS, len(series.values) // series.per_day),
    )


def rehearsed(
    series: Series, *, ahead: int, coverage: float, zone: tzinfo = UTC, over: int
) -> Learned:
    """Return what was learned had the last ``over`` steps been forecast one by one."""
    learned = Learned()
    for back in range(min(over, len(series.values)) - 1, -1, -1):
        seen = series.values[: len(series.values) - back]
        part = Series(series.first, series.width, seen)
        learned = forecast(learned, part, ahead=ahead, coverage=coverage, zone=zone)
    return learned


def _judged(learned: Learned, series: Series) -> tuple[Mapping[Pool, Lane], tuple[Forecast, ...]]:
    """Return the lanes after the forecasts whose future has come, and the others."""
    lanes, pending = dict(learned.lanes), []
    for made in learned.pending:
        if made.number + learned.ahead > series.last:
            pending.append(made)
            continue
        was = series.ratio(made.number, learned.ahead)
        if was is None:
            continue
        for pool, said in made.said.items():
            lanes[pool] = scored(
                lanes.get(pool, fresh(learned.coverage)),
                said=said,
                was=was,
                coverage=learned.coverage,
                per_day=series.per_day,
            )
    return lanes, tuple(pending)


def _pools(series: Series, ahead: int, zone: tzinfo) -> Mapping[Pool, list[float]]:
    """Return the ratios of each pool that has enough to say something."""
    day, span = series.per_day, len(series.values)
    if span < day:
        return {}
    newest = series.last - ahead
    since = max(series.first, newest + 1 - ANY_TIME_DAYS * day)
    pools = {Pool.ANY_TIME: _known(series, range(since, newest + 1), ahead)}
    width = _NARROW if span > _MANY_DAYS * day else _WIDE
    around = round(width / series.width)
    by_day = {
        back: _known(series, _around(series.last, back, around, newest, series.width, zone), ahead)
        for back in range(1, min(POOL_DAYS, span // day) + 1)
    }
    for pool, days in (
        (Pool.TIME_OF_DAY, list(by_day)),
        (Pool.KIND_OF_DAY, _like_today(series, list(by_day), zone)),
    ):
        found = [by_day[back] for back in days if by_day[back]]
        if len(found) >= _LEAST_DAYS:
            pools[pool] = [ratio for ratios in _without_oddest(found) for ratio in ratios]
    return {pool: found for pool, found in pools.items() if len(found) >= LEAST_POOL}


def _around(
    number: int, back: int, around: int, newest: int, width: Seconds, zone: tzinfo
) -> range:
    """Return the steps around the same local time ``back`` days ago."""
    # The wall clock says the same although a day of 23 or 25 hours lies between.
    local = datetime.fromtimestamp((number + 1) * width, zone) - timedelta(days=back)
    middle = round(local.timestamp() / width) - 1
    return range(middle - around, min(middle + around, newest) + 1)


def _known(series: Series, numbers: range, ahead: int) -> list[float]:
    found = (series.ratio(number, ahead) for number in numbers)
    return [ratio for ratio in found if ratio is not None]


def _like_today(series: Series, days: Sequence[int], zone: tzinfo) -> list[int]:
    """Return those of ``days`` ago that are weekdays like today, or weekends like it."""
    today = datetime.fromtimestamp((series.last + 1) * series.width, zone)
    rest = today.weekday() >= _SATURDAY
    return [
        back for back in days if ((today - timedelta(days=back)).weekday() >= _SATURDAY) is rest
    ]


def _without_oddest(days: Sequence[list[float]]) -> Sequence[list[float]]:
    """Return ``days`` without the one that grew most, where a week is left without it.

    In a pool of two weeks one day is a fourteenth, far more than the share that may be missed:
    without this a single holiday would be the quantile.
    """
    if len(days) < ANY_TIME_DAYS:
        return days
    oddest = max(range(len(days)), key=lambda place: max(days[place]))
    return [ratios for place, ratios in enumerate(days) if place != oddest]


def _within(ratio: float) -> float:
    return min(MOST_GROWTH, max(1.0, ratio))


def _trusted(lanes: Mapping[Pool, Lane], *, coverage: float, tried: int) -> frozenset[Pool]:
    """Return the pools that were judged long enough, and miss about as seldom as they may."""
    most = MOST_MISSED * (1.0 - coverage)
    return frozenset(
        pool for pool, lane in lanes.items() if lane.judged >= tried and lane.missed <= most
    )


def _best(
    lanes: Mapping[Pool, Lane], said: Mapping[Pool, float], trusted: frozenset[Pool]
) -> Pool | None:
    """Return the pool with the lowest loss of late; any time until another has proved better."""
    if Pool.ANY_TIME not in said:
        return None
    best = Pool.ANY_TIME
    for pool in (Pool.TIME_OF_DAY, Pool.KIND_OF_DAY):
        if pool in said and pool in trusted and best in lanes:
            best = pool if lanes[pool].mean_loss < lanes[best].mean_loss else best
    return best
