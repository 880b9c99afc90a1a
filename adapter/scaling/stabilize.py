"""Down slowly: no lower than the largest recommendation of the scale-down delay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import Field

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Hold, HoldReason, Stage, Step
from adapter.scaling.duration import Duration, default_duration, format_duration
from adapter.scaling.section import Section

BUSY_SHARE: Final = 10
"""One replica in so many is given up per delay when none is ever idle."""


class ScaleDown(Section):
    """``scaleDown:``."""

    delay: Literal["auto"] | Duration = "auto"
    """How long a lower need must last before the count follows; ``auto`` = factor x load time."""

    delay_factor: float = Field(default=1.0, gt=0, le=10)
    """1.0 is the ski-rental break-even: waiting one load time costs at most twice the best."""

    min_delay: Duration = default_duration("2m")
    """The least that ``auto`` comes to."""

    max_delay: Duration = default_duration("30m")
    """The most that ``auto`` comes to."""

    only_idle: bool = True
    """Step down by at most the number of idle replicas, so that no stream is cut for it."""


def delay_of(section: ScaleDown, lead: Seconds) -> Seconds:
    """Return the scale-down delay: configured, or factor x lead time between its bounds."""
    if section.delay != "auto":
        return section.delay
    return min(section.max_delay, max(section.min_delay, Seconds(section.delay_factor * lead)))


def remembered(
    recommendations: Sequence[tuple[Timestamp, int]], now: tuple[Timestamp, int], *, delay: Seconds
) -> tuple[tuple[Timestamp, int], ...]:
    """Return the recommendations of the delay that a later one does not reach, and ``now``.

    What remains falls from old to new, so the largest comes first and nothing else is kept.
    """
    at, count = now
    kept = [(when, n) for when, n in recommendations if n > count and 0 <= at - when < delay]
    return (*kept, now)


@dataclass(frozen=True, slots=True)
class Brakes:
    """What a way down must get past."""

    at: Timestamp
    base: int
    """The count to come down from."""

    delay: Seconds
    holds: tuple[Hold, ...]
    """What allows no step down at all."""

    idle: int
    """Replicas that can go without cutting a stream, beyond those already given up."""

    busy_since: Timestamp | None
    """Since when a step down has been waiting for an idle replica; None: it has not."""


@dataclass(frozen=True, slots=True)
class Steadied:
    """The count after the brakes."""

    step: Step
    holds: tuple[Hold, ...]
    busy_since: Timestamp | None


def stabilize(
    section: ScaleDown, recommendations: Sequence[tuple[Timestamp, int]], brakes: Brakes
) -> Steadied:
    """Return the largest of ``recommendations``, which fall; the last one is the present one.

    Up is at once. Down follows once the delay has passed, stands while anything in
    ``brakes.holds`` does, and then takes the idle replicas.
    """
    since, largest = recommendations[0]
    wanted = recommendations[-1][1]
    holds = _holds(brakes, since, largest, wanted)
    if largest < brakes.base and not brakes.holds:
        return _down(section, wanted, largest, brakes, holds)
    unheld = "up at once" if largest > brakes.base else "as it is"
    because = holds[0].because if holds else unheld
    count = max(largest, brakes.base) if brakes.holds else largest
    return Steadied(Step(Stage.STABILIZE, wanted, count, because), holds, None)


def _holds(brakes: Brakes, since: Timestamp, largest: int, wanted: int) -> tuple[Hold, ...]:
    """Return what keeps the count above what is wanted now; nothing on the way up."""
    if wanted >= brakes.base:
        return ()
    if wanted >= largest:
        return brakes.holds
    until = Timestamp(since + brakes.delay)
    left = format_duration(round(until - brakes.at))
    ago = format_duration(round(brakes.at - since))
    because = f"scale-down delay, {left} left: {largest} were wanted {ago} ago"
    return (*brakes.holds, Hold(HoldReason.SCALE_DOWN_DELAY, until, because))


def _down(
    section: ScaleDown, wanted: int, largest: int, brakes: Brakes, holds: tuple[Hold, ...]
) -> Steadied:
    """Step down to ``largest``, past as many replicas as are idle.

    Round robin keeps every replica of a quiet fleet a little busy. So that this hold has an end
    too, one in ten, at least one, goes after each further delay without an idle replica.
    """
    surplus = brakes.base - largest
    if not section.only_idle or brakes.idle >= surplus:
        because = f"no more than {largest} were wanted for {format_duration(brakes.delay)}"
        return Steadied(Step(Stage.STABILIZE, wanted, largest, because), holds, None)
    if brakes.idle > 0:
        count = brakes.base - brakes.idle
        because = f"{brakes.idle} idle of {surplus} to spare go; the others work"
        return Steadied(Step(Stage.STABILIZE, wanted, count, because), holds, None)
    since = brakes.at if brakes.busy_since is None else brakes.busy_since
    until = Timestamp(since + brakes.delay)
    if brakes.at < until:
        left = format_duration(round(until - brakes.at))
        hold = Hold(
            HoldReason.NOT_IDLE, until, f"none of {surplus} to spare is idle; {left} left to wait"
        )
        step = Step(Stage.STABILIZE, wanted, brakes.base, hold.because)
        return Steadied(step, (hold, *holds), since)
    count = brakes.base - min(surplus, max(1, brakes.base // BUSY_SHARE))
    because = f"none of {surplus} to spare was idle for {format_duration(brakes.delay)}"
    return Steadied(Step(Stage.STABILIZE, wanted, count, because), holds, brakes.at)
