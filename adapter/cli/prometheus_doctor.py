"""``leadtime doctor --prometheus``: what a policy over a Prometheus would find there."""

import argparse
import asyncio
import json
import sys
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adapter.fleet.reading import Reading
    from adapter.fleet.snapshot import FleetSnapshot, Replica
    from adapter.policy.document import PrometheusSource

FINE, FOUND, UNUSABLE = 0, 1, 2

_NOT_SAID = "-"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what tells which fleet of which Prometheus."""
    group = parser.add_argument_group("a fleet in a Prometheus")
    group.add_argument(
        "--label", action="append", default=[], metavar="K=V", help="as in source.prometheus.labels"
    )
    group.add_argument("--interval", default="15s", metavar="TIME", help="of its scrapes (15s)")
    group.add_argument("--replica-label", metavar="LABEL", help="default: pod, or else instance")
    group.add_argument("--tenant", metavar="NAME", help="X-Scope-OrgID of a Mimir")
    group.add_argument("--token-file", metavar="FILE")
    group.add_argument("--ca-file", metavar="FILE")


def run(arguments: argparse.Namespace) -> int:
    """Ask once, print the fleet, and return the exit code."""
    try:
        source = source_of(arguments, interval=arguments.interval)
    except ValueError as error:
        print(f"leadtime doctor: {error}", file=sys.stderr)
        return UNUSABLE
    fleet = asyncio.run(_asked(source, arguments.engine, arguments.model))
    print(_as_json(fleet) if arguments.output == "json" else _as_text(fleet))
    return FOUND if _gaps(fleet) else FINE


def source_of(arguments: argparse.Namespace, *, interval: str) -> "PrometheusSource":
    """Return what a policy with these options would say.

    Raises:
        ValueError: one of them cannot be used; in one sentence.
    """
    from pydantic import ValidationError

    from adapter.policy.document import PrometheusSource
    from adapter.sources.prometheus_series import check_labels

    pairs = [text.partition("=") for text in arguments.label]
    wrong = [key + mark + value for key, mark, value in pairs if not mark]
    if wrong:
        raise ValueError(f"--label {wrong[0]}: expected NAME=VALUE, as namespace=inference")
    try:
        source = PrometheusSource.model_validate(
            {
                "url": arguments.prometheus,
                "labels": {key: value for key, _, value in pairs},
                "interval": interval,
                "replicaLabel": arguments.replica_label,
                "tenant": arguments.tenant,
                "tokenFile": arguments.token_file,
                "caFile": arguments.ca_file,
            }
        )
    except ValidationError as error:
        (first, *_) = error.errors()
        option = {"url": "--prometheus"}.get(str(first["loc"][0]), f"--{first['loc'][0]}")
        raise ValueError(f"{option}: {first['msg']}") from error
    check_labels(source)
    return source


async def _asked(source: "PrometheusSource", engine: str, model: str | None) -> "FleetSnapshot":
    from adapter.fleet.read import read_exposition
    from adapter.sources.clock import SystemClock
    from adapter.sources.prometheus import PrometheusFleet, Question
    from adapter.sources.prometheus_api import Access, PrometheusApi

    clock = SystemClock()
    fleet = PrometheusFleet(
        PrometheusApi(Access.of(source)),
        Question(engine, source.interval, dict(source.labels), source.replica_label),
        partial(read_exposition, engine=engine, model=model),
        clock=clock,
    )
    try:
        return await fleet.snapshot(clock.now())
    finally:
        await fleet.close()


def _as_text(fleet: "FleetSnapshot") -> str:
    rows = [
        ("REPLICA", "ENGINE", "AGE", "RUNNING", "WAITING", "KV"),
        *(_row(fleet.at, one, reading) for one, reading in _read(fleet)),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    table = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    gaps = [f"gap: {why}" for why in dict.fromkeys(_gaps(fleet).values())]
    missing = [f"missing: {why}" for why in dict.fromkeys(_missing(fleet))]
    return "\n".join([*(table if len(rows) > 1 else []), *gaps, *missing])


def _read(fleet: "FleetSnapshot") -> "list[tuple[Replica, Reading]]":
    """Return the replicas that have a reading, with it."""
    from adapter.fleet.reading import Reading

    return [(one, one.sample) for one in fleet.replicas if isinstance(one.sample, Reading)]


def _row(at: float, replica: "Replica", reading: "Reading") -> tuple[str, ...]:
    from adapter.fleet.metrics import Metric

    shown = (Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING, Metric.KV_CACHE_USAGE)
    values = [replica.value(metric) for metric in shown]
    texts = [_NOT_SAID if value is None else f"{value:.3g}" for value in values]
    return (replica.name, reading.engine, f"{at - reading.at:.0f}s", *texts)


def _gaps(fleet: "FleetSnapshot") -> dict[str, str]:
    from adapter.fleet.reading import Gap

    return {
        one.uid: f"{one.sample.cause}: {one.sample.detail}"
        for one in fleet.replicas
        if isinstance(one.sample, Gap)
    }


def _missing(fleet: "FleetSnapshot") -> list[str]:
    """Return what readings lack that their engine has, once for all replicas alike."""
    return [
        f"{name}: {why}"
        for _, reading in _read(fleet)
        for name, why in reading.missing.items()
        if name not in reading.unserved
    ]


def _as_json(fleet: "FleetSnapshot") -> str:
    replicas = [
        {
            "name": one.name,
            "uid": one.uid,
            "ageSeconds": round(fleet.at - reading.at, 3),
            "engine": reading.engine,
            "values": dict(reading.values),
        }
        for one, reading in _read(fleet)
    ]
    return json.dumps(
        {"replicas": replicas, "gaps": _gaps(fleet), "missing": _missing(fleet)}, indent=2
    )
