"""The metric path: exactly one item from the board, or an error that says why there is none."""

import difflib
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final, Protocol

from adapter.controller.board import Board, Listing, PolicyKey
from adapter.controller.errors import NotServedError
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Decision
from adapter.serving.external_metrics import GROUP, VERSION
from adapter.serving.external_metrics.quantity import format_milli, to_milli
from adapter.serving.external_metrics.selector import Selector, SelectorError, parse_selector
from adapter.serving.external_metrics.status import Status, StatusError

DESIRED: Final = "leadtime-desired-replicas"
POLICY_LABEL: Final = "policy"


class _Value(Protocol):
    def __call__(self, decision: Decision) -> float:
        """Return replicas.

        Raises:
            NotServedError: this decision has no such number, and why.
            ValueError: it has one that must not be published.
        """
        ...


def _published(decision: Decision) -> float:
    if decision.published < 1:
        raise ValueError(f"the count to publish is {decision.published}, and must be 1 at least")
    return decision.published


def _standby(decision: Decision) -> float:
    return decision.standby


def _demand(signal: str) -> _Value:
    def value(decision: Decision) -> float:
        for demand in decision.demands:
            if demand.signal == signal and demand.replicas is not None:
                return demand.replicas
            if demand.signal == signal:
                raise NotServedError(f"signal {signal} asks for nothing now: {demand.because}")
        raise NotServedError(f"signal {signal} is not part of this policy")

    return value


CATALOGUE: Final[Mapping[str, _Value]] = MappingProxyType(
    {
        DESIRED: _published,
        "leadtime-queue-replicas": _demand("queue"),
        "leadtime-kv-replicas": _demand("kvCache"),
        "leadtime-ttft-replicas": _demand("ttft"),
        "leadtime-standby-replicas": _standby,
    }
)
"""Every metric by its name: the first is for HPAs, the others for people. All lower-case, because
client-go lower-cases the name that an HPA asks for (k/k#72996)."""


def metric_value_list(
    board: Board, *, namespace: str, metric: str, selector: str, now: Timestamp
) -> dict[str, object]:
    """Return the ``ExternalMetricValueList``: exactly one item, because an HPA adds items up.

    Raises:
        StatusError: the selector is none, several policies match, the number is impossible.
        NotServedError: no such metric, policy or signal.
        NoDecisionYetError: nothing worth serving: no tick yet, refused for want of data, stale.
    """
    name = metric.lower()
    value_of = CATALOGUE.get(name)
    if value_of is None:
        raise NotServedError(_unknown_metric(metric, namespace))
    listing = _the_one(board, namespace, _parsed(selector))
    decision = board.decided(listing.key, now)
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": [
            {
                "metricName": name,
                "metricLabels": dict(listing.labels),
                "timestamp": _rfc3339(decision.at),
                "value": _quantity(value_of, decision, listing.key),
            }
        ],
    }


def _parsed(selector: str) -> Selector:
    try:
        return parse_selector(selector)
    except SelectorError as error:
        raise StatusError(Status(400, str(error))) from error


def _the_one(board: Board, namespace: str, selector: Selector) -> Listing:
    """Return the only listing that matches; one that is asked for by name is found at once."""
    name = selector.pinned(POLICY_LABEL)
    if name is not None:
        candidates: tuple[Listing, ...] = (board.find(PolicyKey(namespace, name)),)
    else:
        candidates = board.in_namespace(namespace)
    found = [listing for listing in candidates if selector.matches(listing.labels)]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(listing.key.name for listing in found)
        raise StatusError(
            Status(
                400,
                f"selector {str(selector)!r} matches {len(found)} policies in namespace "
                f"{namespace!r}, and an HPA would add them up: {names}; "
                f"select one with {POLICY_LABEL}: NAME",
            )
        )
    raise NotServedError(_no_match(candidates, namespace, selector))


def _no_match(candidates: tuple[Listing, ...], namespace: str, selector: Selector) -> str:
    if not candidates:
        return f"there is no policy in namespace {namespace!r}"
    known = "; ".join(
        ",".join(f"{key}={value}" for key, value in sorted(listing.labels.items()))
        for listing in candidates
    )
    return (
        f"no policy in namespace {namespace!r} matches selector {str(selector)!r}; "
        f"their labels: {known}"
    )


def _unknown_metric(metric: str, namespace: str) -> str:
    near = difflib.get_close_matches(metric.lower(), CATALOGUE, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"metrics here: {', '.join(CATALOGUE)}"
    return f"the server could not find the metric {metric} for namespace {namespace}; {hint}"


def _quantity(value_of: _Value, decision: Decision, key: PolicyKey) -> str:
    try:
        return format_milli(to_milli(value_of(decision)))
    except ValueError as error:
        raise StatusError(Status(500, f"policy {key}: {error}")) from error


def _rfc3339(at: Timestamp) -> str:
    """Return whole seconds with ``Z``, as ``metav1.Time`` writes them."""
    return datetime.fromtimestamp(int(at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
