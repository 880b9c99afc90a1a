"""What ``leadtime plan release`` compares, and how it is printed."""

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from adapter.cli.scale_target import ManifestError, ScaleTarget, read_target
from adapter.fleet.units import Seconds
from adapter.scaling.duration import format_duration
from adapter.scaling.rollout import (
    Plan,
    Release,
    Start,
    Strategy,
    best,
    best_start,
    blue_green,
    plan,
    resolved,
)

_MINUTE: Final = 60.0
_MOST_REPLICAS: Final = 1000
"""Every strategy is tried for the best one: with the square of the replicas it takes longer."""

_MOST_LOAD: Final = 10.0
_MOST_SPREAD: Final = 10.0


class PlanError(ValueError):
    """What was given does not describe a release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One way to do it, under its name."""

    name: str
    plan: Plan
    start: Start | None
    rollback_seconds: Seconds | None
    """Until the old version serves again, found bad at the very end; None: never ends."""

    drains_pass: bool | None
    """Whether a node can still be drained at the least capacity; None: no PDB given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every option for one release."""

    release: Release
    options: tuple[Option, ...]
    within: Seconds | None

    @property
    def chosen(self) -> Plan | None:
        """Return the plan of the strategy that was asked about, if one was."""
        return next((option.plan for option in self.options if option.name == CHOSEN), None)


CHOSEN: Final = "chosen"
BEST: Final = "best"
BLUE_GREEN: Final = "blue-green"


def compare(arguments: argparse.Namespace) -> Comparison:
    """Return every way to do the release that the command line describes.

    Raises:
        PlanError: something is missing or cannot be read; says what, and what to give.
    """
    target = _target(arguments.file)
    release = _release(arguments, target)
    most = release.replicas
    named = [
        ("one-at-a-time", Strategy(1, 0)),
        ("k-at-a-time", Strategy(max(1, _replicas(arguments.at_a_time, most, surge=False)), 0)),
        ("surge", Strategy(0, max(1, _replicas(arguments.surge, most, surge=True)))),
    ]
    plans = [(name, plan(release, strategy)) for name, strategy in named]
    plans.append((BLUE_GREEN, blue_green(release)))
    found = best(release, within=arguments.within)
    if found is not None:
        plans.append((BEST, found))
    chosen = _chosen(arguments, target, most)
    if chosen is not None:
        plans.append((CHOSEN, plan(release, chosen)))
    least = arguments.pdb_min_available
    available = None if least is None else _replicas(least, most, surge=True)
    return Comparison(
        release=release,
        options=tuple(
            _option(name, one, release=release, hourly=arguments.hourly_load, available=available)
            for name, one in plans
        ),
        within=arguments.within,
    )


def as_json(comparison: Comparison) -> str:
    """Return the options for a program; ratios are of the whole fleet, minutes are minutes."""
    return json.dumps({"options": [_object(one) for one in comparison.options]}, indent=2) + "\n"


def as_text(comparison: Comparison) -> str:
    """Return the options as a table, and what to know beside it."""
    release = comparison.release
    rows = [_HEAD, *(_row(option) for option in comparison.options)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
             for row in rows]  # fmt: skip
    head = (
        f"{release.replicas} replicas at {release.load:.0%} load; a round is "
        f"{format_duration(release.cold_start)} of cold start and "
        f"{format_duration(release.drain)} of drain\n"
    )
    return "\n".join([head, *table, *_notes(comparison)]) + "\n"


_HEAD: Final = (
    "OPTION", "UNAVAILABLE", "SURGE", "ROUNDS", "TIME", "CAPACITY", "EXTRA GPUS", "VERDICT",
)  # fmt: skip


def _row(option: Option) -> tuple[str, ...]:
    one = option.plan
    return (
        option.name,
        str(one.strategy.max_unavailable),
        str(one.strategy.max_surge),
        "never ends" if one.rounds is None else f"{one.rounds} round{'s' * (one.rounds != 1)}",
        "-" if one.seconds is None else f"{one.seconds / _MINUTE:.3g} min",
        f"{100 * one.minimum_capacity:.0f} %",
        f"{100 * one.extra_gpus:.3g} %",
        f"{one.verdict} ({one.because})",
    )


def _notes(comparison: Comparison) -> Iterable[str]:
    """Return a line for each thing that the table has no room for."""
    names = {option.name for option in comparison.options}
    if BEST not in names:
        limit = f" within {format_duration(comparison.within)}" if comparison.within else ""
        yield f"\nbest: no strategy keeps 5% of capacity to spare{limit}; add replicas first"
    for option in comparison.options:
        if option.start is not None:
            yield f"{option.name}: {_start(option.start)}"
        if option.drains_pass is False:
            yield f"{option.name}: no node can be drained meanwhile: the PDB is at its least"


def _start(start: Start) -> str:
    said = f"begin at {start.hour:02}:00, it meets {start.peak_load:.0%} load at the most"
    if not start.overloaded_hours:
        return said
    hours = ", ".join(f"{hour:02}" for hour in start.overloaded_hours)
    return f"{said}; begun in the hours {hours} it overloads the fleet"


def _object(option: Option) -> dict[str, object]:
    one, start = option.plan, option.start
    made: dict[str, object] = {
        "name": option.name,
        "maxUnavailable": one.strategy.max_unavailable,
        "maxSurge": one.strategy.max_surge,
        "rounds": one.rounds,
        "minutes": _minutes(one.seconds),
        "minimumCapacity": one.minimum_capacity,
        "extraGpus": one.extra_gpus,
        "overloaded": one.overloaded,
        "verdict": one.verdict,
        "because": one.because,
        "peakGpus": one.peak_gpus,
        "rollbackMinutes": _minutes(option.rollback_seconds),
    }
    if option.drains_pass is not None:
        made["nodeDrainsPass"] = option.drains_pass
    if start is not None:
        made["bestStart"] = {"hour": start.hour, "peakLoad": start.peak_load}
        made["overloadedHours"] = list(start.overloaded_hours)
    return made


def _minutes(seconds: float | None) -> float | None:
    if seconds is None:
        return None
    minutes = round(seconds / _MINUTE, 3)
    return int(minutes) if minutes.is_integer() else minutes


def _option(
    name: str,
    one: Plan,
    *,
    release: Release,
    hourly: Sequence[float] | None,
    available: int | None,
) -> Option:
    ready = release.replicas - min(one.strategy.max_unavailable, release.replicas)
    return Option(
        name=name,
        plan=one,
        start=best_start(one, hourly) if hourly else None,
        rollback_seconds=Seconds(0.0) if name == BLUE_GREEN and one.seconds else one.seconds,
        drains_pass=None if available is None else ready - 1 >= available,
    )


def _target(files: Sequence[str]) -> ScaleTarget:
    merged = ScaleTarget()
    for name in files:
        try:
            text = Path(name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not UTF-8"
            raise PlanError(f"{name}: {why}; give a manifest") from error
        try:
            merged = merged.over(read_target(text, name))
        except ManifestError as error:
            raise PlanError(str(error)) from error
    return merged


def _release(arguments: argparse.Namespace, target: ScaleTarget) -> Release:
    replicas = _first(arguments.replicas, target.replicas)
    cold_start = _first(arguments.cold_start, target.cold_start)
    load = arguments.load
    if load is None and arguments.hourly_load:
        load = max(arguments.hourly_load)
    asked = (("--replicas", replicas), ("--load", load), ("--cold-start", cold_start))
    missing = [flag for flag, value in asked if not value]
    if missing:
        raise PlanError(f"give {' and '.join(missing)}, or -f with manifests that say it")
    if replicas > _MOST_REPLICAS:
        raise PlanError(f"{replicas} replicas are over {_MOST_REPLICAS}: plan one pool at a time")
    if load > _MOST_LOAD:
        raise PlanError(f"--load {load:g} is {load:g} times what the fleet can do; 80% is 0.8")
    if arguments.cold_start_spread > _MOST_SPREAD:
        raise PlanError(
            f"--cold-start-spread {arguments.cold_start_spread:g} is over {_MOST_SPREAD:g}: "
            "it is a deviation over its mean, such as 0.3"
        )
    gpus = _first(arguments.gpus_per_replica, target.gpus_per_replica, 1)
    free = arguments.free_gpus
    if arguments.gpu_quota is not None:
        left = arguments.gpu_quota - replicas * gpus
        if left < 0:
            raise PlanError(
                f"--gpu-quota {arguments.gpu_quota} is below the {replicas * gpus} GPUs that "
                f"{replicas} replicas with {gpus} each take already"
            )
        free = left if free is None else min(free, left)
    return Release(
        replicas=replicas,
        load=load,
        cold_start=Seconds(cold_start + target.min_ready),
        drain=Seconds(_first(arguments.drain, target.drain, 0.0)),
        spread=arguments.cold_start_spread,
        gpus_per_replica=gpus,
        free_gpus=free,
    )


def _first(*values: Any) -> Any:
    """Return the first value that is known."""
    return next((value for value in values if value is not None), None)


def _chosen(arguments: argparse.Namespace, target: ScaleTarget, replicas: int) -> Strategy | None:
    """Return the strategy to judge; what one flag leaves out, Kubernetes takes as 25%."""
    gone = _first(arguments.max_unavailable, target.max_unavailable)
    surge = _first(arguments.max_surge, target.max_surge)
    if gone is None and surge is None:
        return None
    try:
        strategy = Strategy(
            _replicas(_first(gone, _DEFAULT), replicas, surge=False),
            _replicas(_first(surge, _DEFAULT), replicas, surge=True),
        )
    except ValueError as error:
        if isinstance(error, PlanError):
            raise
        if _both_zero(gone, surge):
            raise PlanError(str(error)) from error
        return Strategy(1, 0)  # a percentage that came to 0: Kubernetes then replaces one
    return strategy


_DEFAULT: Final = "25%"


def _both_zero(gone: str | None, surge: str | None) -> bool:
    return all(given in {"0", "0%"} for given in (gone, surge))


def _replicas(text: str, replicas: int, *, surge: bool) -> int:
    try:
        return resolved(text, replicas, surge=surge)
    except ValueError as error:
        raise PlanError(str(error)) from error
