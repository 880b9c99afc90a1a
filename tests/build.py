"""Builders for the values that every room's tests start from: whole, plain, easy to bend."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot, LoadTime, Phase, Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.spec import ScalingSpec

T0 = Timestamp(1_800_000_000.0)
"""The moment at which tests happen unless they say otherwise."""


def a_reading(  # noqa: PLR0913 - a builder has one argument per part of the value
    *,
    at: float = T0,
    engine: str = "vllm",
    model: str | None = "m",
    running: float | None = 0,
    waiting: float | None = 0,
    kv: float | None = 0.0,
    ttft: Histogram | None = None,
    more: Mapping[Metric, float] | None = None,
    missing: Mapping[str, str] | None = None,
    unserved: Iterable[str] = (),
) -> Reading:
    """Return a reading of one rank; a value of None is absent, and ``missing`` says why.

    A metric that is in ``unserved`` is in ``missing`` as well, as the dialects do it.
    """
    given = {
        Metric.REQUESTS_RUNNING: running,
        Metric.REQUESTS_WAITING: waiting,
        Metric.KV_CACHE_USAGE: kv,
        **(more or {}),
    }
    values = {metric: float(value) for metric, value in given.items() if value is not None}
    never = frozenset(unserved)
    absent = dict.fromkeys(sorted(never), f"{engine} has no series for it")
    return Reading(
        at=Timestamp(at),
        engine=engine,
        model=model,
        values=values,
        ttft=ttft,
        ranks={"": Rank(values, ttft)},
        missing={**absent, **(missing or {})},
        unserved=never,
    )


def a_histogram(
    seconds: Iterable[float], *, bounds: tuple[float, ...] = (0.5, 1, 2, 4, 8)
) -> Histogram:
    """Return the histogram of these observations; ``bounds`` without the last, infinite one."""
    seen = list(seconds)
    edges = (*bounds, math.inf)
    counts = tuple(float(sum(value <= edge for value in seen)) for edge in edges)
    return Histogram(tuple(float(edge) for edge in edges), counts, float(sum(seen)))


def a_replica(
    uid: str,
    *,
    phase: Phase = Phase.SERVING,
    sample: Reading | Gap | None = None,
    previous: Reading | None = None,
    since: float | None = T0 - 3600.0,
    version: str = "v1",
    **reading: object,
) -> Replica:
    """Return a replica; what is left over describes its reading (see ``a_reading``)."""
    said = sample if sample is not None else a_reading(**reading)  # type: ignore[arg-type]
    return Replica(
        uid=uid,
        name=f"pod-{uid}",
        phase=phase,
        sample=said,
        previous=previous,
        since=None if since is None else Timestamp(since),
        version=version,
    )


def a_gap(cause: Cause = Cause.TIMEOUT, *, at: float = T0, detail: str = "no answer") -> Gap:
    """Return why there is no reading."""
    return Gap(Timestamp(at), cause, detail)


def serving(count: int, *, prefix: str = "s", **reading: object) -> tuple[Replica, ...]:
    """Return ``count`` alike serving replicas."""
    return tuple(a_replica(f"{prefix}{index:03}", **reading) for index in range(count))  # type: ignore[arg-type]


def loading(
    count: int, *, since: float = T0 - 10.0, phase: Phase = Phase.LOADING, prefix: str = "l"
) -> tuple[Replica, ...]:
    """Return ``count`` replicas on their way; they do not answer yet."""
    silent = a_gap(Cause.NOT_SCRAPED, detail="still loading")
    return tuple(
        a_replica(f"{prefix}{index:03}", phase=phase, sample=silent, since=since)
        for index in range(count)
    )


def silent(
    count: int, *, cause: Cause = Cause.TIMEOUT, prefix: str = "x", detail: str = "no answer"
) -> tuple[Replica, ...]:
    """Return ``count`` serving replicas without a reading."""
    return tuple(
        a_replica(f"{prefix}{index:03}", sample=a_gap(cause, detail=detail))
        for index in range(count)
    )


def a_fleet(
    *replicas: Replica,
    at: float = T0,
    spec_replicas: int | None = None,
    status_replicas: int | None = None,
    rollout: bool = False,
    load_time: float | None = None,
    unscheduled: str = "",
) -> FleetSnapshot:
    """Return a snapshot; ``load_time`` in seconds counts as measured over 20 starts."""
    return FleetSnapshot.of(
        Timestamp(at),
        replicas,
        spec_replicas=spec_replicas,
        status_replicas=status_replicas,
        rollout=rollout,
        load_time=None if load_time is None else LoadTime(Seconds(load_time), starts=20),
        unscheduled=unscheduled,
    )


def later(fleet: FleetSnapshot, seconds: float) -> FleetSnapshot:
    """Return the same fleet, asked again ``seconds`` later with nothing moved in between."""
    return replace(
        fleet,
        at=Timestamp(fleet.at + seconds),
        replicas=tuple(_asked_again(replica, seconds) for replica in fleet.replicas),
    )


def _asked_again(replica: Replica, seconds: float) -> Replica:
    again = replace(replica.sample, at=Timestamp(replica.sample.at + seconds))
    return replace(replica, sample=again, previous=replica.reading)


def a_spec(**sections: object) -> ScalingSpec:
    """Return a spec with 1 to 100 replicas; sections as in YAML, or with Python's names.

    >>> a_spec(signals={"queue": {"targetInFlight": 8}}, scaleDown={"delay": "5m"})
    """
    return ScalingSpec.model_validate({"replicas": {"min": 1, "max": 100}, **sections})
