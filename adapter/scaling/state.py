"""All the memory there is: what one decision hands to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import TypeAdapter

from adapter.fleet.units import Timestamp

STATE_VERSION = 1
"""Raised when the layout changes; an older or newer layout is refused, not guessed at."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The last sign of work from one replica: what tells a stalled engine from a steady one."""

    at: Timestamp
    """When one of the counters below last moved, or the replica was last without work."""

    tokens: float
    first_tokens: float
    steps: float


@dataclass(frozen=True, slots=True)
class TtftPoint:
    """First tokens seen in one tick over the fleet: the TTFT window keeps these."""

    at: Timestamp
    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum_seconds: float


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


@dataclass(frozen=True, slots=True)
class ScalingState:
    """JSON-able; a restart resumes from it. Lists are bounded by the windows they serve."""

    version: int = STATE_VERSION
    published: int | None = None
    """The last count that good data stood behind; None: no memory."""

    started_at: Timestamp | None = None
    """When the memory began: without any, what runs is needed for one full delay."""

    good_at: Timestamp | None = None
    """When the data was last complete enough to decide on."""

    gap_ended_at: Timestamp | None = None
    """When data came back after a gap; nothing goes down for a full delay from here."""

    recommendations: tuple[tuple[Timestamp, int], ...] = ()
    """Recommendations of the scale-down delay, only those that a later one does not exceed."""

    progress: Mapping[str, Progress] = field(default_factory=dict)
    """By replica UID; replicas that are gone are forgotten."""

    ttft: tuple[TtftPoint, ...] = ()
    rates: tuple[RatePoint, ...] = ()
    in_flight_peak: float | None = None
    """In-flight requests per replica at which queueing began, learned; None before any queue."""


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
    if state.version != STATE_VERSION:
        raise StateVersionError(
            f"state has version {state.version}, this release reads {STATE_VERSION}: "
            f"start without it, or run the release that wrote it"
        )
    return state
