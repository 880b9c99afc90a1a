"""All the memory there is: what one decision hands to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from adapter.fleet.units import Seconds, Timestamp

STATE_VERSION = 2
"""Raised when the layout changes. 1 is read: it lacks what is learned of work, and nothing else."""

_READABLE = (1, STATE_VERSION)

LEVELS = 13
"""Sizes of pools that work is learned for."""

_NEVER = Timestamp(0.0)
_NONE = Seconds(0.0)


@dataclass(frozen=True, slots=True)
class Progress:
    """The last sign of work from one replica: what tells a stalled engine from a steady one."""

    at: Timestamp
    """When one of the counters below last moved, or the replica was last without work."""

    tokens: float | None
    """Output tokens; None, as with the two below: the engine does not count them."""

    first_tokens: float | None
    steps: float | None

    in_flight: float = 0.0
    """Requests in flight in the last reading."""

    grew_at: Timestamp = _NEVER
    """When the work in flight last grew: a queue that never grows again may have no client."""

    longest: Seconds = _NONE
    """The longest time without movement that work in flight came out of."""


@dataclass(frozen=True, slots=True)
class TtftPoint:
    """First tokens seen in one tick over the fleet: the TTFT window keeps these."""

    at: Timestamp
    bounds: tuple[float, ...]
    """The finite upper bounds: the last one, infinity, has no place in JSON."""

    counts: tuple[float, ...]
    """Cumulative; one more than there are bounds."""

    sum_seconds: float

    serving: int
    """Replicas that the observations come from: what was added since shows in later points."""


@dataclass(frozen=True, slots=True)
class RatePoint:
    """Work seen in one tick over the fleet: the queue signal's window keeps these."""

    at: Timestamp
    seconds: float
    """Length of the tick."""

    arrived_requests: float
    """Finished plus the growth of what is in flight."""

    finished_requests: float
    serving: int
    queued: bool
    """True when requests were waiting: then what finished is what the fleet can do."""

    busy_seconds: float = 0.0
    """Durations of the requests that ended, on engines without a running gauge."""

    refused_requests: float = 0.0
    """Turned away by a full queue: no gauge ever shows them."""

    prompt_tokens: float | None = None
    """Computed, without those from the prefix cache; None as below: not counted."""

    output_tokens: float | None = None
    queue_growth: float = 0.0
    """Requests that wait, more than at the last tick; negative when fewer do."""


@dataclass(frozen=True, slots=True)
class Carried:
    """The work per second that one replica carries in time, learned by size of the pool."""

    unit: str = ""
    """What work is counted in; empty before any was seen. Another unit begins anew."""

    levels: tuple[Annotated[float, Field(gt=0, allow_inf_nan=False)], ...] = ()
    """By size of pool; empty before the first lesson."""

    late: bool = False
    """True once first tokens came late at a level: until then it rises faster."""

    overrun: bool = False
    """True while the pool works off what came beyond its level."""

    arriving: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """The calm mean of the work that arrives, per second."""

    proven: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The largest work rate per replica of late that was served well in time."""

    version: str = ""
    """Which release it was learned on: what another one carried is not this one's."""

    def __post_init__(self) -> None:
        """Refuse levels of another table of sizes."""
        if len(self.levels) not in (0, LEVELS):
            raise ValueError(f"{len(self.levels)} levels of work, not {LEVELS}: start without it")


@dataclass(frozen=True, slots=True)
class ScalingState:
    """JSON-able; a restart resumes from it. Lists are bounded by the windows they serve."""

    version: int = STATE_VERSION
    published: Annotated[int, Field(ge=1)] | None = None
    """The last count that good data stood behind; None: no memory."""

    started_at: Timestamp | None = None
    """When the memory began: without any, what runs is needed for one full delay."""

    good_at: Timestamp | None = None
    """When the data was last complete enough to decide on."""

    gap_began_at: Timestamp | None = None
    """When the gap that still lasts began; None: there is none."""

    gap_ended_at: Timestamp | None = None
    """When data came back after a gap; nothing goes down for a full delay from here."""

    recommendations: tuple[tuple[Timestamp, int], ...] = ()
    """Recommendations of the scale-down delay, only those that a later one does not exceed."""

    busy_since: Timestamp | None = None
    """Since when fewer replicas would do but too few are idle to be taken away."""

    progress: Mapping[str, Progress] = field(default_factory=dict)
    """By replica UID; replicas that are gone are forgotten."""

    ttft: tuple[TtftPoint, ...] = ()
    rates: tuple[RatePoint, ...] = ()
    in_flight_peak: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """In-flight requests that one replica carries in time, learned; None before any lesson."""

    carried: Carried = field(default_factory=Carried)
    """What one replica carries of the work that arrives."""


def not_ahead_of(state: ScalingState, at: Timestamp) -> ScalingState:
    """Return ``state`` with no moment after ``at``.

    A clock that was set back by a year must not hold a count for a year.
    """
    return replace(
        state,
        started_at=_capped(state.started_at, at),
        good_at=_capped(state.good_at, at),
        gap_began_at=_capped(state.gap_began_at, at),
        gap_ended_at=_capped(state.gap_ended_at, at),
        busy_since=_capped(state.busy_since, at),
        recommendations=tuple((min(when, at), count) for when, count in state.recommendations),
    )


def _capped(moment: Timestamp | None, at: Timestamp) -> Timestamp | None:
    return None if moment is None else min(moment, at)


_ADAPTER = TypeAdapter(ScalingState)


class StateVersionError(ValueError):
    """A stored state of another layout: refused, because a guess could be a wrong count."""


def dump_state(state: ScalingState) -> bytes:
    """Return ``state`` as JSON."""
    return _ADAPTER.dump_json(state)


def load_state(data: bytes) -> ScalingState:
    """Return the state in ``data``.

    Raises:
        StateVersionError: written by another version of the layout.
        ValueError: not a state.
    """
    state = _ADAPTER.validate_json(data)
    if state.version not in _READABLE:
        raise StateVersionError(
            f"state has version {state.version}, this release reads {STATE_VERSION}: "
            f"start without it, or run the release that wrote it"
        )
    return replace(state, version=STATE_VERSION)
