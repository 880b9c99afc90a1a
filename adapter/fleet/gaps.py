"""Why a body gave no reading, in one sentence: the target, what was found, what to do."""

import difflib
import json
from collections.abc import Iterable
from typing import Final

from adapter.fleet.dialect import Dialect
from adapter.fleet.exposition import has_samples
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Gap
from adapter.fleet.units import Timestamp

_NAMED: Final = (Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING, Metric.KV_CACHE_USAGE)
"""The metrics whose series a sentence names when an engine has none of any."""

_LISTED: Final = 8
"""How many names a sentence lists before it says how many more there are."""


def not_metrics(at: Timestamp, target: str, *, found: str) -> Gap:
    """Return the gap for a body that is no exposition, or a damaged one."""
    return Gap(at, Cause.NOT_METRICS, f"{target}: {found}")


def no_engine(at: Timestamp, target: str, *, body: bytes, asked: Iterable[Dialect]) -> Gap:
    """Return the gap for a body without a series of any engine that was ``asked`` for."""
    if not has_samples(body):
        return not_metrics(at, target, found=_what_else(body))
    dialects = list(asked)
    engines = _listed({dialect.engine for dialect in dialects})
    hints = "; ".join(f"{one.engine}: {one.hint}" for one in dialects if one.hint)
    return Gap(
        at,
        Cause.NO_ENGINE,
        f"{target}: metrics, but no series of {engines}: the port or path is wrong, or the "
        f"engine's metrics are off ({hints})",
    )


def other_engine(at: Timestamp, target: str, *, asked: str, found: str) -> Gap:
    """Return the gap for an engine that is not the one the policy names."""
    return Gap(
        at,
        Cause.NO_ENGINE,
        f"{target}: these are the metrics of {found}, not of {asked}: set spec.engine to "
        f"'auto', which tells engines apart",
    )


def no_values(at: Timestamp, target: str, *, dialect: Dialect, faults: Iterable[str] = ()) -> Gap:
    """Return the gap for an engine that reports nothing of what is read, or nothing usable."""
    sources = (dialect.sources.get(metric) for metric in _NAMED)
    looked_for = _listed(name.series for source in sources if source for name in source.names)
    causes = "; ".join([*faults][:_LISTED]) or dialect.hint or "the port or path may be wrong"
    return Gap(
        at,
        Cause.NO_ENGINE,
        f"{target}: {dialect.engine} answers, but without any usable value: {causes} (looked for "
        f"{looked_for})",
    )


def several_models(at: Timestamp, target: str, *, found: Iterable[str]) -> Gap:
    """Return the gap for an endpoint of several models when the policy names none."""
    models = sorted(found)
    return Gap(
        at,
        Cause.SEVERAL_MODELS,
        f"{target}: serves {len(models)} models and the policy names none: set spec.model to one "
        f"of {_listed(map(repr, models))}",
    )


def wrong_model(at: Timestamp, target: str, *, model: str, found: Iterable[str]) -> Gap:
    """Return the gap for an endpoint that does not serve the policy's model."""
    models = sorted(found)
    near = _nearest(model, models)
    meant = f"did you mean {near!r}? " if near else ""
    return Gap(
        at,
        Cause.WRONG_MODEL,
        f"{target}: no series of model {model!r}; {meant}The engine calls what it serves "
        f"{_listed(map(repr, models))}: set spec.model to that",
    )


def _nearest(model: str, models: list[str]) -> str | None:
    short = {name.rpartition("/")[2].lower(): name for name in models}
    base = model.rpartition("/")[2].lower()
    near = difflib.get_close_matches(base, short, n=1, cutoff=0.5)
    return short[near[0]] if near else None


def _listed(names: Iterable[str]) -> str:
    known = sorted(set(names))
    more = len(known) - _LISTED
    return ", ".join(known[:_LISTED]) + (f" and {more} more" if more > 0 else "")


def _what_else(body: bytes) -> str:
    """Return what a body is that holds no sample, and what that usually means."""
    start = body[:512].lstrip()
    if not start:
        return "an empty answer: the metrics path is wrong, or the engine is still loading"
    if start.startswith(b"<"):
        return "an HTML page, not metrics: a proxy or a login answers here; check port and path"
    if start[:1] in b"{[" and _is_json(body):
        return (
            "JSON, not metrics: trtllm-serve has its metrics at /prometheus/metrics, and SGLang "
            "needs --enable-metrics; check the path"
        )
    if b"\x00" in start or start.startswith(b"\x1f\x8b"):
        return "binary data, not metrics: ask for text/plain without compression"
    shown = start[:60].decode(errors="replace")
    return f"not metrics: the answer begins with {shown!r}; check port and path"


def _is_json(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True
