"""Our own ``/metrics``: what the board says at scrape time, and what was counted since start."""

import contextlib
import platform
from collections.abc import Iterable, Iterator
from typing import Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from adapter import __version__
from adapter.controller.board import Board, Listing
from adapter.controller.errors import NoDecisionYetError
from adapter.controller.ports import Clock
from adapter.fleet.reading import Cause
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Decision

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_POLICY: Final = ("namespace", "policy")
_FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0)
_TICK: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meters:
    """Everything the adapter says about itself; implements the controller's ``Telemetry`` port."""

    def __init__(self, board: Board, *, clock: Clock) -> None:
        # Each counter would bring a second series that nobody reads.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = registry = CollectorRegistry()
        registry.register(_BoardCollector(board, clock))
        ProcessCollector(registry=registry)
        build = Info("leadtime_build", "Version of the adapter and its Python.", registry=registry)
        build.info({"version": __version__, "python": platform.python_version()})
        self._ticks = Histogram(
            "leadtime_tick_duration_seconds",
            "Time from observing to posting one decision.",
            _POLICY,
            buckets=_TICK,
            registry=registry,
        )
        self._gaps = _counter(
            "leadtime_source_errors", "Replicas without a reading in a tick.", "cause", registry
        )
        self._unsaved = _counter(
            "leadtime_state_save_errors", "Ticks whose state was not stored.", "", registry
        )
        self._crashes = _counter(
            "leadtime_loop_crashes", "Loops that died of a bug and were restarted.", "", registry
        )
        self._reloads = Counter(
            "leadtime_policy_reloads", "Times the policy files were read anew.", registry=registry
        )
        self._broken = Gauge(
            "leadtime_policy_files_broken", "Policy files refused now.", registry=registry
        )
        self._requests = Counter(
            "leadtime_http_requests",
            "Requests answered, by path template and status code.",
            ("path", "code"),
            registry=registry,
        )
        self._latency = Histogram(
            "leadtime_http_request_duration_seconds",
            "Time to answer a request, by path template.",
            ("path",),
            buckets=_FAST,
            registry=registry,
        )
        self._calls = Counter(
            "leadtime_keda_calls",
            "Calls of the external scaler answered, by method and gRPC status code.",
            ("method", "code"),
            registry=registry,
        )
        self._call_latency = Histogram(
            "leadtime_keda_call_duration_seconds",
            "Time to answer a call of the external scaler, by method.",
            ("method",),
            buckets=_FAST,
            registry=registry,
        )
        self._streams = Gauge(
            "leadtime_keda_streams", "StreamIsActive calls that are open.", registry=registry
        )
        self._certificate = Gauge(
            "leadtime_certificate_expiry_timestamp_seconds",
            "When the served TLS certificate expires; 0 without TLS.",
            registry=registry,
        )
        self._refused_certificates = Counter(
            "leadtime_certificate_reload_errors",
            "New TLS files that could not be used; the old ones are kept.",
            registry=registry,
        )

    def render(self) -> bytes:
        """Return the exposition."""
        return generate_latest(self._registry)

    def ticked(self, policy: str, seconds: Seconds) -> None:
        """Count a finished tick and how long it took."""
        self._ticks.labels(*policy.split("/")).observe(seconds)

    def gap(self, policy: str, cause: Cause) -> None:
        """Count a replica that had no reading in one tick."""
        self._gaps.labels(*policy.split("/"), cause).inc()

    def unsaved(self, policy: str) -> None:
        """Count a tick whose state could not be stored."""
        self._unsaved.labels(*policy.split("/")).inc()

    def crashed(self, policy: str) -> None:
        """Count a loop that died of a bug and was started again."""
        self._crashes.labels(*policy.split("/")).inc()

    def reloaded(self, *, broken: int) -> None:
        """Record a reload, and how many policy files are broken after it."""
        self._reloads.inc()
        self._broken.set(broken)

    def forget(self, policy: str) -> None:
        """Drop the series of a policy that is gone."""
        labels = dict(zip(_POLICY, policy.split("/"), strict=True))
        for metric in (self._ticks, self._gaps, self._unsaved, self._crashes):
            metric.remove_by_labels(labels)

    def answered(self, path: str, code: int, seconds: Seconds) -> None:
        """Count an answered request; ``path`` is a template, never a client's text."""
        self._requests.labels(path, str(code)).inc()
        self._latency.labels(path).observe(seconds)

    def called(self, method: str, code: str, seconds: Seconds) -> None:
        """Count an answered call of the external scaler."""
        self._calls.labels(method, code).inc()
        self._call_latency.labels(method).observe(seconds)

    @contextlib.contextmanager
    def streaming(self) -> Iterator[None]:
        """Count a stream while it is open."""
        with self._streams.track_inprogress():
            yield

    def certificate_loaded(self, expires: Timestamp) -> None:
        """Record the certificate in use."""
        self._certificate.set(expires)

    def certificate_refused(self) -> None:
        """Count new TLS files that could not be used."""
        self._refused_certificates.inc()


def _counter(name: str, help_text: str, label: str, registry: CollectorRegistry) -> Counter:
    labels = (*_POLICY, label) if label else _POLICY
    return Counter(name, help_text, labels, registry=registry)


class _BoardCollector(Collector):
    """Reads the board when scraped, so that a policy that is gone leaves no number behind."""

    def __init__(self, board: Board, clock: Clock) -> None:
        self._board, self._clock = board, clock

    def describe(self) -> Iterable[GaugeMetricFamily]:
        return ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        families = _Families()
        now = self._clock.now()
        for listing in self._board.all():
            served = _served(self._board, listing, now)
            families.add_listing(listing, refused=served is None)
            if listing.decision is not None:
                families.add_decision(listing, listing.decision, now)
            if served is not None:
                families.add_counts(listing, served)
        return families.all()


def _served(board: Board, listing: Listing, now: Timestamp) -> Decision | None:
    """Return the decision whose number the wire would answer, if there is one."""
    try:
        return board.decided(listing.key, now)
    except NoDecisionYetError:
        return None


_GAUGES: Final = {
    "leadtime_policy_problem": ("1 while its file is not what runs, or its loop cannot.", ()),
    "leadtime_decision_refused": ("1 while the wire answers an error instead of a count.", ()),
    "leadtime_decision_held": ("1 while missing data keeps the count.", ()),
    "leadtime_signal_age_seconds": ("Age of the last data good enough to decide on.", ()),
    "leadtime_desired_replicas": ("Replicas wanted; absent while refused.", ()),
    "leadtime_published_replicas": ("Replicas the HPA and KEDA are told.", ()),
    "leadtime_standby_replicas": ("The part of desired above present demand.", ()),
    "leadtime_component_replicas": ("Replicas that one signal asks for.", ("signal",)),
    "leadtime_serving_replicas": ("Replicas that count as capacity.", ()),
    "leadtime_loading_replicas": ("Replicas on their way.", ()),
    "leadtime_overdue_replicas": ("Loading replicas that take longer than expected.", ()),
    "leadtime_stalled_replicas": ("Replicas with work and no progress.", ()),
    "leadtime_draining_replicas": ("Replicas being deleted.", ()),
    "leadtime_silent_replicas": ("Serving replicas without a usable reading.", ()),
    "leadtime_load_time_seconds": ("The load time that decisions are made with.", ()),
    "leadtime_hold_until_timestamp_seconds": (
        "When a hold ends by itself; 0 if only its cause ends it.",
        ("reason",),
    ),
    "leadtime_condition": ("1 for a condition that is true.", ("type", "reason")),
}
"""Every gauge of the board: name, help, labels beside namespace and policy."""


class _Families:
    """The gauges of one scrape, filled policy by policy; a series stands in it once."""

    def __init__(self) -> None:
        self._samples: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in _GAUGES}

    def all(self) -> Iterator[GaugeMetricFamily]:
        for name, (text, labels) in _GAUGES.items():
            family = GaugeMetricFamily(name, text, labels=(*_POLICY, *labels))
            for values, value in self._samples[name].items():
                family.add_metric(values, value)
            yield family

    def add_listing(self, listing: Listing, *, refused: bool) -> None:
        problem = listing.problem or listing.failure
        self._add(listing, "leadtime_policy_problem", bool(problem))
        self._add(listing, "leadtime_decision_refused", refused)

    def add_decision(self, listing: Listing, decision: Decision, now: Timestamp) -> None:
        census = decision.census
        self._add(listing, "leadtime_decision_held", decision.held)
        if decision.data_at is not None:
            age = max(0.0, now - decision.data_at)
            self._add(listing, "leadtime_signal_age_seconds", age)
        self._add(listing, "leadtime_serving_replicas", census.serving)
        self._add(listing, "leadtime_loading_replicas", census.loading)
        self._add(listing, "leadtime_overdue_replicas", census.overdue)
        self._add(listing, "leadtime_stalled_replicas", census.stalled)
        self._add(listing, "leadtime_draining_replicas", census.draining)
        self._add(listing, "leadtime_silent_replicas", census.silent)
        self._add(listing, "leadtime_load_time_seconds", decision.lead_time)
        for hold in decision.holds:
            name = "leadtime_hold_until_timestamp_seconds"
            self._add(listing, name, hold.until or 0.0, hold.reason)
        for condition in decision.conditions:
            labels = (condition.type, condition.reason)
            self._add(listing, "leadtime_condition", condition.status, *labels)

    def add_counts(self, listing: Listing, decision: Decision) -> None:
        self._add(listing, "leadtime_desired_replicas", decision.desired)
        self._add(listing, "leadtime_published_replicas", decision.published)
        self._add(listing, "leadtime_standby_replicas", decision.standby)
        for demand in decision.demands:
            if demand.replicas is not None:
                name = "leadtime_component_replicas"
                self._add(listing, name, demand.replicas, demand.signal)

    def _add(self, listing: Listing, name: str, value: float, *labels: str) -> None:
        self._samples[name][listing.key.namespace, listing.key.name, *labels] = float(value)
