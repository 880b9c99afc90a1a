"""Random fleets over random times, for what must hold whatever happens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.scaling.decision import Decision
from adapter.scaling.evaluate import evaluate
from adapter.scaling.spec import ScalingSpec
from adapter.scaling.state import ScalingState
from tests.build import T0, a_fleet, a_gap, a_histogram, a_reading, a_replica, a_spec

UIDS = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Moment:
    """What one replica does in one tick; None as ``waiting``: it does not answer."""

    phase: Phase
    waiting: int | None
    running: int
    moved: int
    """Requests finished and tokens made since the last tick; 0: frozen."""

    ttft: float
    refused: int
    """Requests turned away since the last tick."""


@dataclass(frozen=True)
class Tick:
    """One tick: how long after the last one, and who did what."""

    after: float
    moments: tuple[Moment | None, ...]
    rollout: bool


moments = st.builds(
    Moment,
    phase=st.sampled_from([Phase.SERVING] * 5 + list(Phase)),
    waiting=st.sampled_from([0, 0, 0, 1, 7, 60, None]),
    running=st.sampled_from([0, 0, 3, 20]),
    moved=st.sampled_from([0, 5, 50]),
    ttft=st.sampled_from([0.2, 3.0, 100.0]),
    refused=st.sampled_from([0, 0, 0, 5, 500]),
)
ticks = st.builds(
    Tick,
    after=st.sampled_from([1.0, 5.0, 5.0, 15.0, 60.0, 200.0, 500.0]),
    moments=st.tuples(*[st.none() | moments] * len(UIDS)),
    rollout=st.sampled_from([False, False, False, True]),
)
histories = st.lists(ticks, min_size=2, max_size=14)

specs = st.builds(
    lambda low, extra, delay, idle, floor, step: a_spec(
        replicas={"min": low, "max": low + extra},
        scaleDown={"delay": delay, "onlyIdle": idle},
        standby={"floor": floor},
        scaleUp={"maxStep": step},
    ),
    low=st.integers(1, 3),
    extra=st.integers(0, 40),
    delay=st.sampled_from(["auto", "30s", "5m"]),
    idle=st.booleans(),
    floor=st.integers(0, 2),
    step=st.sampled_from([None, 1, 3, "50%", "100%"]),
)


def fleets(history: Sequence[Tick]) -> list[FleetSnapshot]:
    """Return the snapshots of ``history``: counters add up, a gap breaks the pair."""
    at, latest, told = T0, dict[str, Reading](), list[FleetSnapshot]()
    for tick in history:
        at += tick.after
        replicas = []
        for uid, moment in zip(UIDS, tick.moments, strict=True):
            before = latest.pop(uid, None)
            if moment is None:
                continue
            replica = _replica(uid, moment, before, at)
            if replica.reading is not None:
                latest[uid] = replica.reading
            replicas.append(replica)
        told.append(a_fleet(*replicas, at=at, rollout=tick.rollout))
    return told


def _replica(uid: str, moment: Moment, before: Reading | None, at: float) -> Replica:
    if moment.waiting is None:
        return a_replica(uid, phase=moment.phase, sample=a_gap(Cause.TIMEOUT, at=at))
    done = moment.moved + (before.values[Metric.REQUESTS_FINISHED] if before else 0.0)
    refused = moment.refused + (before.values[Metric.REQUESTS_REJECTED] if before else 0.0)
    ttft = a_histogram([moment.ttft] * moment.moved)
    if before is not None and before.ttft is not None:
        ttft = ttft.plus(before.ttft)
    reading = a_reading(
        at=at,
        waiting=moment.waiting,
        running=moment.running,
        kv=0.5,
        ttft=ttft,
        more={
            Metric.REQUESTS_FINISHED: done,
            Metric.GENERATION_TOKENS: 10 * done,
            Metric.REQUESTS_REJECTED: refused,
        },
    )
    return a_replica(uid, phase=moment.phase, sample=reading, previous=before)


def played(
    spec: ScalingSpec, snapshots: Sequence[FleetSnapshot], state: ScalingState | None = None
) -> tuple[list[Decision], ScalingState]:
    """Return the decisions of one tick after another, and the memory they leave."""
    memory, decisions = state or ScalingState(), []
    for fleet in snapshots:
        decision, memory = evaluate(spec, fleet, memory)
        decisions.append(decision)
    return decisions, memory


def with_load(fleet: FleetSnapshot, index: int, *, waiting: float, running: float) -> FleetSnapshot:
    """Return ``fleet`` with more in hand at one replica; unchanged where that one is silent."""
    replica = fleet.replicas[index]
    if replica.reading is None:
        return fleet
    values = dict(replica.reading.values)
    values[Metric.REQUESTS_WAITING] += waiting
    values[Metric.REQUESTS_RUNNING] += running
    return with_replica(fleet, index, replace(replica.reading, values=values))


def with_replica(fleet: FleetSnapshot, index: int, sample: object) -> FleetSnapshot:
    """Return ``fleet`` with another answer of one replica."""
    replicas = list(fleet.replicas)
    replicas[index] = replace(replicas[index], sample=sample)  # type: ignore[arg-type]
    return replace(fleet, replicas=tuple(replicas))
