"""The rate at which work arrives, and what a request weighs: from counters, in bins of 30 s."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import first_tokens, increase, seconds_between
from adapter.fleet.snapshot import Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import RatePoint, WorkSlice

OUTPUT_WEIGHT: Final = 2.0
"""What an output token weighs in prompt tokens that are computed. Under the step law of 70B on
4 x H100 it is 1.3 to 2 at contexts of 1,500 to 4,000 tokens, of 8B on one H100 twice as much; a mix
that stays the same is carried the same whatever the weight."""

SLICE: Final = Seconds(30.0)
KEPT: Final = Seconds(600.0)
"""How long a slice is remembered."""

CALM: Final = Seconds(120.0)
"""Arrivals are taken over this long: sizing by less would order the noise."""

_SUDDEN: Final = (Seconds(45.0), Seconds(15.0))
"""Shorter looks that count where noise does not explain them: a burst is not waited out."""

_UNUSUAL: Final = 2.5
"""Standard deviations of noise that a shorter look must show."""

_NOISE: Final = 0.005
"""Variance of a minute's rate beside what counting gives: 7 % from minute to minute in Azure's
traces (evaluation section 1)."""

_WEIGHED: Final = Seconds(300.0)
"""What a request weighs is taken over this long; heavy tails need many."""

_WEIGHED_LATELY: Final = Seconds(60.0)
_TAIL: Final = 3.0
"""Standard errors that the last minute's weight must be above the usual: prompts grew longer."""

LEAST_COUNTED: Final = 10.0
"""Requests below which nothing is said of their weight, and seconds of their rate."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Work that arrives, in prompt tokens computed; see ``OUTPUT_WEIGHT``."""

    requests_per_second: float
    each: float
    """What one request weighs."""

    @property
    def rate(self) -> float:
        """Return the work per second."""
        return self.requests_per_second * self.each


@dataclass(frozen=True, slots=True)
class Seen:
    """What the fleet did over the last slices, in one sum."""

    seconds: float = 0.0
    arrived: float = 0.0
    finished: float = 0.0
    prompt: float = 0.0
    output: float = 0.0
    first: float = 0.0
    slow: float = 0.0
    replica_seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Return the work per second that one replica did."""
        return (self.prompt + self.output) / self.replica_seconds if self.replica_seconds else 0.0

    @property
    def slow_share(self) -> float:
        """Return the share of the first tokens that came after half the objective."""
        return self.slow / self.first if self.first else 0.0


def with_tick(
    slices: Sequence[WorkSlice],
    point: RatePoint | None,
    replicas: Sequence[Replica],
    *,
    at: Timestamp,
    objective: Seconds | None,
) -> tuple[WorkSlice, ...]:
    """Return ``slices`` with what this tick saw; unchanged where the engine tells no tokens.

    ``objective`` is that of the time to first token; None: nobody promised any.
    """
    kept = tuple(one for one in slices if 0 <= at - one.start < KEPT)
    if point is None:
        return kept
    tick = _tick(point, replicas, objective)
    if tick is None:
        return kept
    start = Timestamp(math.floor(at / SLICE) * SLICE)
    if kept and kept[-1].start == start:
        return (*kept[:-1], _added(kept[-1], tick))
    return (*kept, _added(WorkSlice(start), tick))


def over(slices: Sequence[WorkSlice], span: Seconds) -> Seen:
    """Return what was seen in the latest slices that fill ``span``; of all where they do not."""
    latest: list[WorkSlice] = []
    seconds = 0.0
    for one in reversed(slices):
        if seconds >= span:
            break
        latest.append(one)
        seconds += one.seconds
    return Seen(
        seconds=seconds,
        arrived=math.fsum(one.arrived for one in latest),
        finished=math.fsum(one.finished for one in latest),
        prompt=math.fsum(one.prompt for one in latest),
        output=math.fsum(one.output for one in latest),
        first=math.fsum(one.first for one in latest),
        slow=math.fsum(one.slow for one in latest),
        replica_seconds=math.fsum(one.replica_seconds for one in latest),
    )


def arriving(slices: Sequence[WorkSlice]) -> Arrivals | None:
    """Return the work that arrives; None before enough was seen.

    The calm mean, or a recent one that is larger than noise explains. What a request weighs is the
    mean of five minutes, or of the last one where prompts or answers have grown longer since.
    """
    calm = over(slices, CALM)
    usual, lately = _weight(over(slices, _WEIGHED)), _weight(over(slices, _WEIGHED_LATELY))
    if calm.seconds < LEAST_COUNTED or usual is None:
        return None
    rate = calm.arrived / calm.seconds
    for span in _SUDDEN:
        seen = over(slices, span)
        spread = math.sqrt(_NOISE + 1.0 / max(1.0, rate * seen.seconds))
        if seen.arrived / seen.seconds > rate * (1.0 + _UNUSUAL * spread):
            rate = seen.arrived / seen.seconds
    counted = over(slices, _WEIGHED_LATELY).first
    if lately is not None and lately > usual * (1.0 + _TAIL / math.sqrt(max(1.0, counted))):
        usual = lately
    return Arrivals(rate, usual)


def _weight(seen: Seen) -> float | None:
    """Return what one request weighs: its prompt when it begins, its output when it ends."""
    if seen.first < LEAST_COUNTED or seen.finished < LEAST_COUNTED:
        return None
    return seen.prompt / seen.first + seen.output / seen.finished


def _tick(
    point: RatePoint, replicas: Sequence[Replica], objective: Seconds | None
) -> WorkSlice | None:
    """Return what this tick adds; None where no serving replica tells its tokens."""
    prompt = output = first = slow = 0.0
    told = False
    for replica in replicas:
        done = _done(replica) if replica.phase is Phase.SERVING else None
        if done is None:
            continue
        told = True
        prompt, output = prompt + done[0], output + done[1]
        began, late = _first_tokens(replica, objective)
        first, slow = first + began, slow + late
    if not told:
        return None
    return WorkSlice(
        point.at,
        seconds=point.seconds,
        arrived=point.arrived_requests,
        finished=point.finished_requests,
        prompt=prompt,
        output=output,
        first=first,
        slow=slow,
        replica_seconds=point.seconds * point.serving,
    )


def _done(replica: Replica) -> tuple[float, float] | None:
    """Return the work in prompts and in outputs between the last two readings."""
    now, before = replica.reading, replica.previous
    if now is None or before is None or seconds_between(now, before) <= 0:
        return None
    prompt = increase(now, before, Metric.PROMPT_TOKENS)
    output = increase(now, before, Metric.GENERATION_TOKENS)
    if prompt is None or output is None:
        return None
    cached = increase(now, before, Metric.CACHED_PROMPT_TOKENS) or 0.0
    return max(0.0, prompt - cached), OUTPUT_WEIGHT * output


def _first_tokens(replica: Replica, objective: Seconds | None) -> tuple[float, float]:
    """Return the first tokens, and those that came after half the objective, by whole buckets."""
    now, before = replica.reading, replica.previous
    seen = None if now is None or before is None else first_tokens(now, before)
    if seen is None or objective is None:
        return (0.0, 0.0) if seen is None else (seen.count, 0.0)
    within = next((n for b, n in zip(seen.bounds, seen.counts, strict=True) if b >= objective / 2))
    return seen.count, seen.count - within


def _added(one: WorkSlice, tick: WorkSlice) -> WorkSlice:
    return WorkSlice(
        one.start,
        seconds=one.seconds + tick.seconds,
        arrived=one.arrived + tick.arrived,
        finished=one.finished + tick.finished,
        prompt=one.prompt + tick.prompt,
        output=one.output + tick.output,
        first=one.first + tick.first,
        slow=one.slow + tick.slow,
        replica_seconds=one.replica_seconds + tick.replica_seconds,
    )
