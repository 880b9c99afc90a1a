"""From values to places on an axis, and which values are written beside it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import count, takewhile
from typing import Final

_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0

_STEPS: Final = (
    *(_MINUTE * n for n in (1, 2, 5, 10, 15, 30)),
    *(_HOUR * n for n in (1, 2, 3, 6, 12)),
    *(_DAY * n for n in (1, 2, 7, 14, 28, 91, 364)),
)
_DIGITS: Final[Sequence[Sequence[float]]] = (
    (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8),
    (1, 1.5, 2, 3, 5, 7),
    (1, 2, 5),
    (1,),
)
_ABOUT: Final = 1 + 1e-9
"""A tick at the very end counts, whatever rounding made of it."""

_MOST_TICKS: Final = 9
_MOST_TIMES: Final = 8


class Kind(StrEnum):
    """How an axis counts."""

    LINEAR = "linear"
    LOG = "log"
    TIME = "time"
    """Unix seconds, written in UTC."""


@dataclass(frozen=True, slots=True)
class Axis:
    """What an axis is of, and where it ends; an end that is None is taken from the values."""

    label: str
    kind: Kind = Kind.LINEAR
    least: float | None = None
    most: float | None = None
    unit: str = ""
    """Follows each number: ``%``, `` h``."""

    def text(self, value: float) -> str:
        """Return ``value`` as it is written for people."""
        if self.kind is Kind.TIME:
            return datetime.fromtimestamp(value, UTC).strftime("%a %d %b %H:%M")
        return f"{number(value)}{self.unit}"


@dataclass(frozen=True, slots=True)
class Tick:
    """One written value."""

    place: float
    """0 at the axis' begin, 1 at its end."""

    text: str
    minor: bool = False
    """Left out where there is little room."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis with its ends settled."""

    axis: Axis
    least: float
    most: float

    @classmethod
    def of(cls, axis: Axis, values: Iterable[float]) -> "Scale":
        """Return the scale on which all ``values`` find a place; 0 to 1 for none."""
        known = [value for value in values if _drawable(axis.kind, value)]
        if axis.kind is Kind.TIME:
            least, most = _ends(axis, min(known, default=0.0), max(known, default=1.0))
            return cls(axis, least, most if most > least else least + 1.0)
        if axis.kind is Kind.LOG:
            least, most = _ends(axis, min(known, default=1.0), max(known, default=10.0))
            low, high = _power_below(least), _power_above(most if most > least else least * 2.0)
            return cls(
                axis,
                least if axis.least is not None else low,
                most if axis.most is not None else high,
            )
        least, most = _ends(axis, min(known, default=0.0), max(known, default=1.0))
        most = most if most > least else least + 1.0
        step = _step(most - least)
        low = least if axis.least is not None else step * math.floor(least / step)
        high = most if axis.most is not None else step * math.ceil(most / step)
        return cls(axis, low, high)

    def place(self, value: float) -> float:
        """Return where ``value`` is, 0 to 1; what lies beyond an end is put at it."""
        if self.axis.kind is Kind.LOG:
            span = math.log(self.most / self.least)
            share = math.log(max(value, self.least) / self.least) / span
        else:
            share = (value - self.least) / (self.most - self.least)
        return min(1.0, max(0.0, share))

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """Return the values that are written, in order."""
        if self.axis.kind is Kind.TIME:
            return self._times()
        values = self._powers() if self.axis.kind is Kind.LOG else self._numbers()
        return tuple(Tick(self.place(v), f"{number(v)}{self.axis.unit}") for v in values)

    def _numbers(self) -> list[float]:
        step = _step(self.most - self.least)
        first = math.ceil(self.least / step - 1e-9)
        last = math.floor(self.most / step + 1e-9)
        return [step * n for n in range(first, last + 1)]

    def _powers(self) -> list[float]:
        """Return the round values within the ends: as many to a power of ten as there is room."""
        low, high = math.floor(math.log10(self.least)), math.ceil(math.log10(self.most))
        ticks: list[float] = []
        for digits in _DIGITS:
            values = [digit * 10.0**power for power in range(low, high + 1) for digit in digits]
            ticks = [v for v in values if self.least <= v * _ABOUT and v <= self.most * _ABOUT]
            if len(ticks) <= _MOST_TICKS:
                break
        return ticks

    def _times(self) -> tuple[Tick, ...]:
        span = self.most - self.least
        step = next((step for step in _STEPS if span / step <= _MOST_TIMES), _STEPS[-1])
        first = math.ceil(self.least / step)
        moments = takewhile(lambda at: at <= self.most, (step * n for n in count(first)))
        return tuple(
            Tick(self.place(at), _moment(at), minor=bool(n % 2)) for n, at in enumerate(moments)
        )


def number(value: float) -> str:
    """Return ``value`` with as many digits as a person reads: 4 at the most, no exponent."""
    if not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:  # noqa: PLR2004 - whole numbers from here on
        return f"{value:,.0f}"
    return f"{value:.4g}"


def _drawable(kind: Kind, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or kind is not Kind.LOG)


def _ends(axis: Axis, least: float, most: float) -> tuple[float, float]:
    return (
        least if axis.least is None else axis.least,
        most if axis.most is None else axis.most,
    )


def _power_below(value: float) -> float:
    """Return the largest round value that is not above ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(digit * power for digit in _DIGITS[0] if digit * power <= value * _ABOUT)


def _power_above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(d * power for d in (*_DIGITS[0], 10) if d * power >= value / _ABOUT)


def _step(span: float) -> float:
    """Return the 1, 2 or 5 of a power of ten that makes the most ticks that are not too many."""
    power = 10.0 ** math.floor(math.log10(span / _MOST_TICKS))
    return next(power * n for n in (1, 2, 5, 10, 20) if span / (power * n) <= _MOST_TICKS)


def _moment(at: float) -> str:
    """Return the time of day, or the day where one begins."""
    moment = datetime.fromtimestamp(at, UTC)
    return moment.strftime("%a %d %b" if at % _DAY == 0 else "%H:%M")
