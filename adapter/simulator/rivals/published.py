"""What an HPA makes of the metrics that a rival publishes: tolerance, windows and limits apply."""

from dataclasses import replace
from typing import Final

from adapter.fleet.units import Timestamp
from adapter.scaling.hpa import MILLI, average_value, value
from adapter.simulator.hpa import Behavior, HpaSpec, HpaState, Scale, Verdict, reconcile
from adapter.simulator.rivals.port import ExternalMetric, Published, TargetType

_ERROR: Final = "no value from the metric server"


def sync(
    spec: HpaSpec,
    scale: Scale,
    *,
    wish: Published,
    ready: int,
    at: Timestamp,
    state: HpaState,
) -> tuple[Verdict, HpaState]:
    """Return one sync's outcome for all metrics of ``wish``; their targets replace the spec's.

    The largest proposal counts; while a metric answers an error, none may lower the count.
    ``ready`` is what targets of type Value multiply.
    """
    rules = spec.behavior or Behavior()
    wants = [
        _proposal(metric, scale, ready=ready, rules=rules)
        for metric in wish.metrics
        if metric.value is not None
    ]
    wanted = max(wants, default=None)
    partial = len(wants) < len(wish.metrics)
    values: tuple[int, ...] | str = _ERROR
    if wanted is not None and not (partial and wanted < scale.spec_replicas):
        values = (wanted * MILLI,)
    exact = replace(spec, target_milli=MILLI, behavior=_without_tolerance(rules))
    return reconcile(exact, scale, values=values, at=at, state=state)


def _proposal(metric: ExternalMetric, scale: Scale, *, ready: int, rules: Behavior) -> int:
    values = (round((metric.value or 0.0) * MILLI),)
    target = round(metric.target * MILLI)
    up, down = rules.up.tolerance, rules.down.tolerance
    if metric.kind is TargetType.VALUE:
        return value(values, target, scale.spec_replicas, ready=ready, up=up, down=down)
    return average_value(values, target, scale.status_replicas, up=up, down=down)


def _without_tolerance(rules: Behavior) -> Behavior:
    """Return the same rules for a number that has been through the tolerance already."""
    return Behavior(up=replace(rules.up, tolerance=0.0), down=replace(rules.down, tolerance=0.0))
