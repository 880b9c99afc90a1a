"""What replacing every replica costs: rounds, minutes, the least capacity, the GPUs on top."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from typing import Final

from adapter.fleet.units import Seconds

TIGHT: Final = 0.95
"""Load over the least capacity from which a release is called tight: one replica that loads
longer than usual, or a small wave, overloads it."""

_NONE: Final = Seconds(0.0)
_HOURS: Final = 24
_HOUR: Final = 3600.0
_GRAIN: Final = 1e-9


class Verdict(StrEnum):
    """What comes of a release."""

    OK = "ok"
    TIGHT = "tight"
    OVERLOADED = "overloaded"
    """At its least, capacity is below the load."""

    DEADLOCK = "deadlock"
    """Nothing may be stopped before something new runs, and nothing new finds a GPU."""

    @property
    def bad(self) -> bool:
        """Return whether the release should not be started like this."""
        return self in {Verdict.OVERLOADED, Verdict.DEADLOCK}


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The fleet that is to be replaced, and what a replica takes to go and to come."""

    replicas: int
    load: float
    """Share of the whole fleet's capacity that the traffic needs, 0 and up."""

    cold_start: Seconds
    """From the pod being made to its first good token."""

    drain: Seconds = _NONE
    """From the first signal to the last stream's end; its GPUs are taken until then."""

    spread: float = 0.0
    """Standard deviation of the cold start over its mean: a round waits for its slowest."""

    gpus_per_replica: int = 1
    free_gpus: int | None = None
    """GPUs that quota and nodes still give; None: as many as wanted."""

    @property
    def surge_room(self) -> int:
        """Return how many replicas find room beside those that run."""
        if self.free_gpus is None or self.gpus_per_replica == 0:
            return self.replicas
        return min(self.replicas, self.free_gpus // self.gpus_per_replica)


@dataclass(frozen=True, slots=True)
class Strategy:
    """``maxUnavailable`` and ``maxSurge`` of a rolling update, in replicas."""

    max_unavailable: int
    max_surge: int

    def __post_init__(self) -> None:
        if self.max_unavailable < 0 or self.max_surge < 0:
            raise ValueError("maxUnavailable and maxSurge cannot be below 0")
        if self.max_unavailable == self.max_surge == 0:
            raise ValueError(
                "maxUnavailable and maxSurge are both 0: nothing could ever be replaced, and "
                "Kubernetes refuses it; allow one of them"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a strategy makes of a release; ratios are of the whole fleet."""

    strategy: Strategy
    rounds: int | None
    """None: it never ends."""

    seconds: Seconds | None
    minimum_capacity: float
    extra_gpus: float
    """GPUs taken on top at the peak, as a share of the fleet's."""

    peak_gpus: int
    verdict: Verdict
    because: str

    @property
    def overloaded(self) -> bool:
        """Return whether the least capacity is below the load."""
        return self.verdict is Verdict.OVERLOADED


def plan(release: Release, strategy: Strategy) -> Plan:
    """Return what ``strategy`` makes of ``release``.

    A round replaces as many replicas as may be missing and as find room on top; it lasts one
    cold start and one drain, because a replica that drains keeps its GPUs.
    """
    gone = min(strategy.max_unavailable, release.replicas)
    extra = min(strategy.max_surge, release.surge_room)
    at_once = min(release.replicas, gone + extra)
    capacity = (release.replicas - gone) / release.replicas
    rounds = math.ceil(release.replicas / at_once) if at_once else None
    verdict, because = _judged(release, strategy, capacity=capacity, at_once=at_once)
    return Plan(
        strategy=strategy,
        rounds=rounds,
        seconds=None if rounds is None else Seconds(rounds * _round(release, at_once)),
        minimum_capacity=capacity,
        extra_gpus=extra / release.replicas,
        peak_gpus=(release.replicas + extra) * release.gpus_per_replica,
        verdict=verdict,
        because=because,
    )


def blue_green(release: Release) -> Plan:
    """Return the plan of a whole second fleet beside the first; it fits whole or not at all."""
    one = plan(release, Strategy(0, release.replicas))
    if release.surge_room == release.replicas:
        return one
    wanted = release.replicas * release.gpus_per_replica
    because = f"a second fleet takes {wanted} GPUs and {release.free_gpus} are free"
    return replace(one, rounds=None, seconds=None, verdict=Verdict.DEADLOCK, because=because)


def best(release: Release, *, within: Seconds | None = None) -> Plan | None:
    """Return the plan with the fewest extra GPUs that is neither tight nor overloaded.

    Of those the quickest; ``within`` bounds how long it may take. None: there is none.
    """
    plans = (plan(release, strategy) for strategy in _strategies(release))
    good = [
        (one.extra_gpus, one.seconds, one.strategy.max_unavailable, one)
        for one in plans
        if one.verdict is Verdict.OK
        and one.seconds is not None
        and (within is None or one.seconds <= within)
    ]
    return min(good, key=lambda choice: choice[:3])[-1] if good else None


def resolved(text: str, replicas: int, *, surge: bool) -> int:
    """Return ``3`` or ``25%`` in replicas, rounded as Kubernetes does: surge up, the other down.

    Raises:
        ValueError: neither a whole number nor a whole percentage.
    """
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is neither a number of replicas nor a percentage like 25%")
    if not text.endswith("%"):
        return int(digits)
    share = int(digits) * replicas
    return -(-share // 100) if surge else share // 100


@dataclass(frozen=True, slots=True)
class Start:
    """When in the day a release is best begun."""

    hour: int
    peak_load: float
    """The highest load it meets if it begins then."""

    overloaded_hours: tuple[int, ...]
    """Hours in which it must not begin: it would meet more load than capacity."""


def best_start(one: Plan, hourly: Sequence[float]) -> Start | None:
    """Return the hour whose release meets the least load; None where it never ends.

    ``hourly`` is the load of each of the day's 24 hours, as a share of the fleet's capacity.
    """
    if one.seconds is None:
        return None
    spans = min(_HOURS, max(1, math.ceil(one.seconds / _HOUR)) + 1)
    peaks = [max(hourly[(hour + k) % _HOURS] for k in range(spans)) for hour in range(_HOURS)]
    hour = min(range(_HOURS), key=lambda h: (peaks[h], h))
    over = tuple(h for h, peak in enumerate(peaks) if peak > one.minimum_capacity + _GRAIN)
    return Start(hour, peaks[hour], over)


def slowest_of(count: int, mean: Seconds, spread: float) -> Seconds:
    """Return the expected longest of ``count`` cold starts.

    Lognormal with mean ``mean`` and standard deviation ``spread`` x ``mean``, as load times are
    drawn in the simulator; the integral of 1 - F(x)^count.
    """
    if spread == 0.0 or count == 1:
        return mean
    sigma = math.sqrt(math.log1p(spread * spread))
    steps = [
        mean * math.exp(-_REACH * sigma + 2 * _REACH * sigma * k / _FINE) for k in range(_FINE)
    ]
    mu = math.log(mean) - sigma * sigma / 2
    area = steps[0]
    for low, high in pairwise(steps):
        middle = (low + high) / 2
        below = 0.5 * (1.0 + math.erf((math.log(middle) - mu) / (sigma * math.sqrt(2.0))))
        area += (1.0 - below**count) * (high - low)
    return Seconds(area)


_REACH: Final = 8.0
"""Standard deviations on both sides that the integral covers."""

_FINE: Final = 800
"""Steps of the integral; halving them changes the sixth digit."""


def _round(release: Release, at_once: int) -> float:
    return slowest_of(at_once, release.cold_start, release.spread) + release.drain


def _judged(
    release: Release, strategy: Strategy, *, capacity: float, at_once: int
) -> tuple[Verdict, str]:
    if at_once == 0:
        return Verdict.DEADLOCK, (
            f"none may be missing and no new one finds its {release.gpus_per_replica} GPUs "
            f"({release.free_gpus} free): allow maxUnavailable 1, or free GPUs"
        )
    needs = f"{release.load:.0%} load on {capacity:.0%} capacity"
    short = min(strategy.max_surge, release.replicas) - release.surge_room
    room = f"; no GPU for {short} of the surge" if short > 0 else ""
    if release.load > capacity + _GRAIN:
        return Verdict.OVERLOADED, needs + room
    if release.load > TIGHT * capacity + _GRAIN:
        return Verdict.TIGHT, f"{needs}: not overloaded, but with less than 5% to spare{room}"
    return Verdict.OK, f"{needs}: not overloaded{room}"


def _strategies(release: Release) -> Iterator[Strategy]:
    for gone in range(release.replicas + 1):
        for extra in range(release.surge_room + 1):
            if gone or extra:
                yield Strategy(gone, extra)
