"""Why a Prometheus has nothing of a fleet: which label is wrong, and what is there instead."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Final

from adapter.fleet.units import Timestamp
from adapter.sources.prometheus_api import PrometheusApi
from adapter.sources.prometheus_series import selector, series_names

_BACK: Final = 3600.0
"""Seconds: what was scraped an hour ago is worth a hint."""

_LISTED: Final = 8


async def nothing_found(
    api: PrometheusApi, engine: str, labels: Mapping[str, str], *, at: Timestamp
) -> str:
    """Return one sentence: why nothing of ``engine`` carries ``labels``.

    Raises:
        PrometheusError: it does not answer these questions.
    """
    anywhere, since = selector(series_names(engine), {}), Timestamp(at - _BACK)
    there = set(await api.label_names(anywhere, since=since)) - {"__name__"}
    of = "an engine" if engine == "auto" else engine
    if not there:
        return (
            f"zero series of {of}, whatever the labels: it does not scrape the engines (no "
            f"PodMonitor or scrape job), or spec.engine is wrong"
        )
    for label, value in sorted(labels.items()):
        if label not in there:
            return _no_label(label, there)
        values = await api.label_values(label, anywhere, since=since)
        if value not in values:
            return _no_value(label, value, values)
    if not labels:
        return f"series of {of} there were, but none now: the fleet is at zero, or not scraped"
    asked = ", ".join(f"{label}={value!r}" for label, value in sorted(labels.items()))
    return (
        f"zero series: each of {asked} is there, but no series of {of} carries all of them now; "
        f"the fleet is at zero, or a label belongs to another one"
    )


def _no_label(label: str, there: Iterable[str]) -> str:
    return (
        f"zero series: label {label} does not exist; found {_listed(there)}{_meant(label, there)}"
    )


def _no_value(label: str, value: str, values: Iterable[str]) -> str:
    return (
        f"zero series: label {label} is never {value!r}; "
        f"found {_listed(map(repr, values))}{_meant(value, values)}"
    )


def _meant(word: str, there: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, sorted(there), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


def _listed(names: Iterable[str]) -> str:
    known = sorted(set(names))
    more = len(known) - _LISTED
    return ", ".join(known[:_LISTED]) + (f" and {more} more" if more > 0 else "")
