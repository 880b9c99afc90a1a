"""``--prometheus``: the load that a Prometheus remembers of the policy's fleet."""

import argparse
import asyncio
import sys

from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy, PrometheusSource
from adapter.simulator.backtest.history import of_history
from adapter.simulator.backtest.load import Load
from adapter.sources.clock import SystemClock
from adapter.sources.prometheus_api import Access, PrometheusApi
from adapter.sources.prometheus_history import work_bins
from adapter.sources.prometheus_series import check_labels


def remembered_load(arguments: argparse.Namespace, policy: Policy) -> Load:
    """Return what was asked of the fleet of ``policy`` in the last ``--since``.

    Raises:
        ValueError: labels that are none, or no history there.
        PrometheusError: it gives no answer.
    """
    source = _source(arguments, policy)
    check_labels(source)
    return asyncio.run(_load(arguments, policy, source))


def _source(arguments: argparse.Namespace, policy: Policy) -> PrometheusSource:
    """Return what the policy says of its Prometheus, with the address and labels of the options."""
    pairs = [text.partition("=") for text in arguments.label]
    for key, mark, value in pairs:
        if not mark:
            raise ValueError(f"--label {key}{value}: expected NAME=VALUE, as namespace=inference")
    own = policy.spec.source.prometheus
    said = {} if own is None else own.model_dump(by_alias=True)
    labels = {key: value for key, _, value in pairs} or said.get("labels", {})
    try:
        return PrometheusSource.model_validate(
            {**said, "url": arguments.prometheus, "labels": labels}
        )
    except ValueError as error:
        raise ValueError("--prometheus: no address: expected one like http://host:9090") from error


async def _load(arguments: argparse.Namespace, policy: Policy, source: PrometheusSource) -> Load:
    now = SystemClock().now()
    api = PrometheusApi(Access.of(source))
    try:
        bins = await work_bins(
            api,
            engine=policy.spec.engine.value,
            labels=source.labels,
            model=policy.spec.model,
            since=Timestamp(now - Seconds(arguments.since)),
            until=now,
            told=_progress,
        )
    finally:
        _tell("")
        await api.close()
    if all(one.masked for one in bins):
        raise ValueError(
            f"{api.name}: no finished requests of {policy.spec.engine.value} with these labels in "
            f"the last {arguments.since / 3600:g} h: `leadtime doctor --prometheus` shows what it "
            f"finds; --since asks for longer"
        )
    return of_history(api.name, bins)


def _progress(share: float) -> None:
    _tell(f"asking the Prometheus: {share:.0%}")


def _tell(what: str) -> None:
    """Say how far it is, on one line of a terminal; say nothing elsewhere."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)
