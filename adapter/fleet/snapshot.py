"""The whole fleet of one scale target at one moment: the only thing a decision looks at."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Gap, Reading
from adapter.fleet.units import Seconds, Timestamp

WARMING_SECONDS: Final = Seconds(60.0)
"""How long a new replica may answer without a first token and not count: engines export zeros
for up to 18 s before they mean them (vllm#49538), and an idle pool must not warm for ever."""


class Phase(StrEnum):
    """Where a replica is between being asked for and being gone."""

    PENDING = "pending"
    """Asked for, not yet on a node: coming supply only while it can be scheduled."""

    LOADING = "loading"
    """On a node, loading its model: coming supply, never present capacity."""

    WARMING = "warming"
    """Answers, but has not served its first tokens: its averages mean nothing yet."""

    SERVING = "serving"
    """Counts as capacity."""

    STALLED = "stalled"
    """Work in flight and no token progress: leaves capacity, wants a replacement."""

    ISOLATED = "isolated"
    """On broken hardware: leaves capacity, wants a replacement."""

    DRAINING = "draining"
    """Being deleted: no capacity, but what it holds is still demand."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One unit of the scale target: a pod, or a whole LeaderWorkerSet group."""

    uid: str
    """The pod's UID, the group's key, or the URL of a static target; unique in a snapshot."""

    name: str
    """For people: the pod's name, or the URL."""

    phase: Phase
    """What the outside world knows; the decision may find it STALLED from its readings."""

    sample: Reading | Gap
    """What the latest scrape said, or why it said nothing."""

    previous: Reading | None = None
    """The reading before the latest one: rates need two points. None after a gap or a restart."""

    since: Timestamp | None = None
    """When the phase began; None when unknown."""

    version: str = ""
    """Which release it runs (pod-template-hash, revision, policy label); versions never mix."""

    @property
    def reading(self) -> Reading | None:
        """Return the latest reading, or None in a gap."""
        return self.sample if isinstance(self.sample, Reading) else None

    def value(self, metric: Metric) -> float | None:
        """Return one reading, or None when it is unknown."""
        reading = self.reading
        return None if reading is None else reading.values.get(metric)


@dataclass(frozen=True, slots=True)
class LoadTime:
    """How long a replica takes from being asked for to its first good token."""

    seconds: Seconds
    """The policy's quantile of the measured starts."""

    starts: int
    """How many starts it rests on; 0 = the policy's default, nothing measured."""


@dataclass(frozen=True, slots=True)
class FleetSnapshot:
    """Every replica of one scale target, as known at ``at``; replicas are sorted by UID."""

    at: Timestamp
    replicas: tuple[Replica, ...]
    spec_replicas: int | None = None
    """What the scale target is set to; None where nothing can be asked (static sources)."""

    status_replicas: int | None = None
    """What the scale target reports, surge pods included; None when unknown."""

    rollout: bool = False
    """True while the target replaces one version with another."""

    load_time: LoadTime | None = None
    """The measured load time; None until something was measured."""

    unscheduled: str = ""
    """The scheduler's words while replicas cannot be placed; empty when there are none."""

    @classmethod
    def of(cls, at: Timestamp, replicas: Iterable[Replica], **facts: object) -> "FleetSnapshot":
        """Return a snapshot with its replicas in the order every decision relies on."""
        ordered = tuple(sorted(replicas, key=lambda replica: replica.uid))
        return cls(at, ordered, **facts)  # type: ignore[arg-type]

    def phase(self, *phases: Phase) -> tuple[Replica, ...]:
        """Return the replicas in any of ``phases``, in order."""
        return tuple(replica for replica in self.replicas if replica.phase in phases)
