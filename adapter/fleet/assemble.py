"""Targets, their latest samples and what was known before → the fleet at a moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import WARMING_SECONDS, FleetSnapshot, LoadTime, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp


@dataclass(frozen=True, slots=True)
class Target:
    """One place where a replica's metrics are found."""

    uid: str
    """The pod's UID, the group's key, or the address of a static target."""

    name: str
    """For people: the pod's name, or the address."""

    url: str
    """Where its metrics are: an ``http`` address, or the path of a recorded dump."""

    phase: Phase | None = None
    """What the outside world says of it; None where nobody vouches for it (static addresses):
    then its answers decide, see ``assemble``."""

    since: Timestamp | None = None
    """When ``phase`` began; None when unknown."""

    version: str = ""
    """Which release it runs."""


@dataclass(frozen=True, slots=True)
class Roster:
    """Who belongs to the fleet, and what is known of the scale target beside its metrics."""

    targets: tuple[Target, ...]
    spec_replicas: int | None = None
    status_replicas: int | None = None
    rollout: bool = False
    load_time: LoadTime | None = None
    unscheduled: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """What is remembered of one replica from one snapshot to the next."""

    seen_at: Timestamp
    """When it first stood in the roster."""

    answered_at: Timestamp | None = None
    """When its engine, as it runs now, first answered; None: never yet, or before our time."""

    answered: bool = False
    """Whether it ever answered."""

    latest: Reading | None = None
    """The last reading; kept through a gap, so that a restart behind it is noticed."""

    previous: Reading | None = None
    """The reading before ``latest``, with no gap and no restart between them."""

    silent: bool = False
    """Whether a gap followed ``latest``."""


@dataclass(frozen=True, slots=True)
class FleetMemory:
    """The tracks of every replica in the last roster; empty before the first snapshot."""

    tracks: Mapping[str, Track] = field(default_factory=lambda: MappingProxyType({}))
    witnessed: bool = False
    """True after the first snapshot: whatever answers first from then on has just started."""


def assemble(
    roster: Roster,
    samples: Mapping[str, Reading | Gap],
    memory: FleetMemory,
    *,
    at: Timestamp,
    stale_after: Seconds,
) -> tuple[FleetSnapshot, FleetMemory]:
    """Return the fleet at ``at``, and what to remember for the next snapshot.

    ``samples`` holds the latest answer by UID; a target without one was not asked yet. The last
    two readings of a replica are kept, as metrics-server does, because rates need two points; a
    gap or a restart between them makes the pair meaningless and drops the older one. A reading
    older (or newer: the clock jumped) than ``stale_after`` is a gap.

    The roster's word on a phase stands, except that a serving replica without a first token is
    still warming for ``WARMING_SECONDS``. Where the roster says nothing (static addresses), the
    answers decide: until its first answer a target is loading since it was first seen, so that
    it is neither capacity nor awaited for longer than a load time; from then on it is serving,
    and silence is a gap that keeps the count, because a fixed address has nobody to take it off
    the list. A replica that already answers in the first snapshot was there before us: it is not
    held back as warming, so that a restart of the adapter does not look like a restart of a pool.
    """
    replicas, tracks = [], {}
    for target in roster.targets:
        track = memory.tracks.get(target.uid, Track(seen_at=at))
        sample = _usable(samples.get(target.uid), target, at=at, stale_after=stale_after)
        track = _followed(track, sample, witnessed=memory.witnessed)
        tracks[target.uid] = track
        replicas.append(_replica(target, sample, track, at=at))
    fleet = FleetSnapshot.of(
        at,
        replicas,
        spec_replicas=roster.spec_replicas,
        status_replicas=roster.status_replicas,
        rollout=roster.rollout,
        load_time=roster.load_time,
        unscheduled=roster.unscheduled,
    )
    return fleet, FleetMemory(MappingProxyType(tracks), witnessed=True)


def _usable(
    sample: Reading | Gap | None, target: Target, *, at: Timestamp, stale_after: Seconds
) -> Reading | Gap:
    if sample is None:
        return Gap(at, Cause.NOT_SCRAPED, f"{target.name}: has not answered its first scrape yet")
    age = at - sample.at
    if isinstance(sample, Gap) or abs(age) <= stale_after:
        return sample
    return Gap(
        at,
        Cause.STALE,
        f"{target.name}: the last answer is {abs(age):.0f} s "
        f"{'old' if age > 0 else 'ahead of the clock'}, limit {stale_after:g} s; "
        f"the engine may be overloaded, or the clock jumped",
    )


def _followed(track: Track, sample: Reading | Gap, *, witnessed: bool) -> Track:
    """Return ``track`` after ``sample``."""
    if isinstance(sample, Gap):
        return replace(track, previous=None, silent=True)
    if sample == track.latest:
        return replace(track, silent=False)
    restarted = track.latest is not None and _restarted(track.latest, sample)
    started = restarted or (witnessed and not track.answered)
    broken = restarted or track.silent or _backwards(track.latest, sample)
    return replace(
        track,
        answered=True,
        answered_at=sample.at if started else track.answered_at,
        latest=sample,
        previous=None if broken else track.latest,
        silent=False,
    )


def _backwards(earlier: Reading | None, later: Reading) -> bool:
    """Return whether no time passed between two readings: the clock was set back."""
    return earlier is not None and later.at <= earlier.at


def _restarted(earlier: Reading, later: Reading) -> bool:
    """Return whether another engine process answered: a counter fell, or it says so itself."""
    if earlier.engine != later.engine:
        return True
    began, begins = (r.values.get(Metric.PROCESS_START) for r in (earlier, later))
    if began is not None and begins is not None and begins > began + 1.0:
        return True
    shared = earlier.values.keys() & later.values.keys() & COUNTERS
    return any(later.values[metric] < earlier.values[metric] for metric in shared)


def _replica(target: Target, sample: Reading | Gap, track: Track, *, at: Timestamp) -> Replica:
    phase, since = _phase(target, track)
    if phase is Phase.SERVING and isinstance(sample, Reading):
        began = max((t for t in (since, track.answered_at) if t is not None), default=None)
        if began is not None and at - began < WARMING_SECONDS and _without_first_token(sample):
            phase, since = Phase.WARMING, began
    return Replica(
        uid=target.uid,
        name=target.name,
        phase=phase,
        sample=sample,
        previous=track.previous,
        since=since,
        version=target.version,
    )


def _phase(target: Target, track: Track) -> tuple[Phase, Timestamp | None]:
    if target.phase is not None:
        return target.phase, target.since
    if track.answered:
        return Phase.SERVING, track.answered_at
    return Phase.LOADING, track.seen_at


def _without_first_token(reading: Reading) -> bool:
    """Return whether the engine says that it has served nothing; an engine that cannot say has."""
    served = (Metric.GENERATION_TOKENS, Metric.REQUESTS_FINISHED)
    said = [reading.values[metric] for metric in served if metric in reading.values]
    if reading.ttft is not None:
        said.append(reading.ttft.count)
    return bool(said) and not any(said)
