"""What one scrape of one replica said in canonical terms, or why it said nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from adapter.fleet.histogram import Histogram
from adapter.fleet.metrics import Metric
from adapter.fleet.units import Timestamp


@dataclass(frozen=True, slots=True)
class Rank:
    """The readings of one data-parallel rank: counters must be compared rank by rank."""

    values: Mapping[Metric, float]
    """Finite values only; a metric that was absent, NaN or infinite has no key."""

    ttft: Histogram | None = None
    """Time to first token since the engine started."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One replica's metrics at one moment, under canonical names."""

    at: Timestamp
    """When the answer arrived."""

    engine: str
    """Which vocabulary matched: ``vllm``, ``sglang``, ``triton``, …"""

    model: str | None
    """The model the readings belong to, as the engine names it; None if it names none."""

    values: Mapping[Metric, float]
    """All ranks together: counts add up, ratios are means. An absent reading has no key."""

    ttft: Histogram | None = None
    """Time to first token over all ranks, since the engine started."""

    ranks: Mapping[str, Rank] = field(default_factory=dict)
    """The same by data-parallel rank; ``{"": …}`` where the engine labels none."""

    matched: Mapping[str, str] = field(default_factory=dict)
    """Which series each canonical metric (and ``ttft``) was read from."""

    missing: Mapping[str, str] = field(default_factory=dict)
    """Why each canonical metric that has no value has none: ``NaN``, ``no series …``."""

    unserved: frozenset[str] = frozenset()
    """The part of ``missing`` that this engine never exports: not a fault, not a gap."""

    warnings: tuple[str, ...] = ()
    """Deprecated names in use, duplicates, negative or impossible values: for ``doctor``."""


class Cause(StrEnum):
    """Why a replica has no reading; the label of ``leadtime_source_errors_total``."""

    UNREACHABLE = "unreachable"
    """No connection: refused, reset, no such host."""

    TIMEOUT = "timeout"
    """The target did not finish its answer in time."""

    HTTP_STATUS = "http_status"
    """An answer other than 200."""

    TOO_LARGE = "too_large"
    """The body exceeded the limit; it was not read on."""

    NOT_METRICS = "not_metrics"
    """The body is not an exposition: HTML, JSON, truncated or binary."""

    NO_ENGINE = "no_engine"
    """An exposition without any series of a known engine: log stats off, wrong port."""

    WRONG_MODEL = "wrong_model"
    """The engine is there but not the model that the policy names."""

    SEVERAL_MODELS = "several_models"
    """More than one model and the policy names none."""

    STALE = "stale"
    """The last answer is too old to use."""

    NOT_SCRAPED = "not_scraped"
    """Nothing has been asked of it yet."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Why there is no reading: data, never an exception, never a zero."""

    at: Timestamp
    cause: Cause
    detail: str
    """One sentence with the target, what was found and what to do about it."""
