"""What a rival really sees when it decides: replicas by their own metrics, and the router's count.

A rival never sees the workload. Everything here exists in its world: a scrape of each replica, the
router's (or ingress') metrics, and the counts of the scale target.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from adapter.fleet.metrics import Metric
from adapter.fleet.rates import increase, seconds_between
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Timestamp

_READY: Final = frozenset({Phase.WARMING, Phase.SERVING, Phase.STALLED})
"""What Kubernetes calls Ready: a stalled engine still answers its health probe."""


class Gauge(StrEnum):
    """What a rival may be told to scale on, per replica."""

    WAITING = "waiting"
    RUNNING = "running"
    IN_FLIGHT = "in-flight"
    """Waiting and running."""

    KV_USAGE = "kv-usage"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFacts:
    """One replica, as its own ``/metrics`` and Kubernetes show it; None is unknown."""

    name: str
    ready: bool
    """Kubernetes says Ready."""

    waiting: float | None = None
    """Requests."""

    running: float | None = None
    """Requests."""

    kv_usage_ratio: float | None = None
    """0 to 1."""

    generated_tokens_per_second: float | None = None
    """Since the scrape before."""

    @property
    def silent(self) -> bool:
        """Return whether the scrape said nothing that rivals read."""
        return self.waiting is None and self.running is None and self.kv_usage_ratio is None

    def value(self, gauge: Gauge) -> float | None:
        """Return one gauge, None when it is unknown."""
        if gauge is Gauge.WAITING:
            return self.waiting
        if gauge is Gauge.RUNNING:
            return self.running
        if gauge is Gauge.KV_USAGE:
            return self.kv_usage_ratio
        if self.waiting is None or self.running is None:
            return None
        return self.waiting + self.running


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterFacts:
    """What the router, endpoint picker or ingress counts; None is unknown or not exported."""

    in_flight_requests: float | None = None
    """Accepted and not finished, those queued at the router included."""

    queued_requests: float | None = None
    """At the router, for want of a replica: in no replica's own queue."""

    requests_per_second: float | None = None
    """Arrivals over the last minute."""

    prompt_tokens_mean: float | None = None
    """Of the last minute's requests."""

    output_tokens_mean: float | None = None
    """Of the last minute's requests."""

    cached_share: float = 0.0
    """Of prompt tokens, found in a prefix cache; 0 to 1."""

    uncached_tokens_in_flight: float | None = None
    """Prompt tokens to compute of all requests in flight, counted until each request ends."""

    ttft_p90_seconds: float | None = None
    """Of the last minute, predicted for or measured on its requests; None without a request."""

    tpot_p90_seconds: float | None = None
    """Likewise, time per output token."""


_NOTHING: Final = RouterFacts()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One moment; durations compare ``at``, never ticks."""

    at: Timestamp
    pods: tuple[PodFacts, ...]
    """Those that exist and are not being deleted."""

    spec_replicas: int
    """What the scale target is set to."""

    router: RouterFacts = _NOTHING
    min_replicas: int = 1
    max_replicas: int
    """The bounds of the scale target, the same for every policy."""

    source_error: str = ""
    """Why the store behind the rival's queries does not answer; all its values are then None."""

    @property
    def ready_replicas(self) -> int:
        """Return how many replicas Kubernetes calls Ready."""
        return sum(pod.ready for pod in self.pods)

    @property
    def pending_replicas(self) -> int:
        """Return how many are ordered and not Ready, whether or not they exist yet."""
        return max(0, self.spec_replicas - self.ready_replicas)

    @property
    def ready_pods(self) -> tuple[PodFacts, ...]:
        """Return the pods that are Ready."""
        return tuple(pod for pod in self.pods if pod.ready)

    def known(self, gauge: Gauge) -> tuple[float, ...]:
        """Return the gauge of every pod that reports it, Ready or not."""
        values = (pod.value(gauge) for pod in self.pods)
        return tuple(value for value in values if value is not None)

    def summed(self, gauge: Gauge) -> float | None:
        """Return what ``sum(gauge)`` in PromQL gives through KEDA's Prometheus scaler.

        Pods without a series are left out, and no series at all is 0, because
        ``ignoreNullValues`` is true by default. None only while the store itself fails.
        """
        return None if self.source_error else sum(self.known(gauge))


def observe(
    fleet: FleetSnapshot,
    router: RouterFacts,
    *,
    spec_replicas: int,
    max_replicas: int,
    min_replicas: int = 1,
) -> Observation:
    """Return what a rival sees of the same snapshot that the product decides on."""
    return Observation(
        at=fleet.at,
        pods=tuple(_facts(one) for one in fleet.replicas if one.phase is not Phase.DRAINING),
        spec_replicas=spec_replicas,
        router=router,
        min_replicas=min_replicas,
        max_replicas=max_replicas,
    )


def _facts(replica: Replica) -> PodFacts:
    return PodFacts(
        name=replica.name,
        ready=replica.phase in _READY,
        waiting=replica.value(Metric.REQUESTS_WAITING),
        running=replica.value(Metric.REQUESTS_RUNNING),
        kv_usage_ratio=replica.value(Metric.KV_CACHE_USAGE),
        generated_tokens_per_second=_generated(replica),
    )


def _generated(replica: Replica) -> float | None:
    now, before = replica.reading, replica.previous
    if now is None or before is None or seconds_between(now, before) <= 0:
        return None
    grown = increase(now, before, Metric.GENERATION_TOKENS)
    return None if grown is None else grown / seconds_between(now, before)
