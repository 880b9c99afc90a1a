"""What happened between two readings of one replica: counters as growth, TTFT as a window."""

from collections.abc import Iterable

from adapter.fleet.histogram import Histogram, together
from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.reading import Rank, Reading
from adapter.fleet.units import Seconds

START_JITTER = Seconds(1.0)
"""A process start may be rounded differently from scrape to scrape; a restart takes longer."""


def increase(now: Reading, before: Reading, metric: Metric) -> float | None:
    """Return how much the counter ``metric`` grew over all ranks; never negative.

    After a reset the new value counts as the growth, once: it is a lower bound of what happened.
    None when either reading lacks the metric or the ranks that report it are not the same ones:
    a rank that went silent must not read as less work.
    """
    if metric not in now.values or metric not in before.values:
        return None
    reporting = _ranks_with(now, metric)
    if reporting != _ranks_with(before, metric):
        return None
    restarted = _restarted(now, before)
    return sum(
        now.ranks[rank].values[metric]
        if restarted or _fell(now.ranks[rank], before.ranks[rank])
        else now.ranks[rank].values[metric] - before.ranks[rank].values[metric]
        for rank in reporting
    )


def first_tokens(now: Reading, before: Reading) -> Histogram | None:
    """Return the TTFT observations between the readings, over all ranks.

    None when either reading has no TTFT, after a reset, with a new bucket layout or with other
    ranks: a window across any of these would compare two different engines. A histogram with a
    count of 0 says something else: nobody got a first token.
    """
    if now.ttft is None or before.ttft is None or was_reset(now, before):
        return None
    latest, earlier = _ttft_by_rank(now), _ttft_by_rank(before)
    if latest.keys() != earlier.keys():
        return None
    windows = [latest[rank].minus(earlier[rank]) for rank in latest]
    known = [window for window in windows if window is not None]
    return together(known) if len(known) == len(windows) else None


def seconds_between(now: Reading, before: Reading) -> Seconds:
    """Return the time from ``before`` to ``now``; 0 or less when they are not in that order."""
    return Seconds(now.at - before.at)


def was_reset(now: Reading, before: Reading) -> bool:
    """Return whether the engine, or one of its ranks, began anew between the readings.

    Seen by a process start that moved, or by a counter or a TTFT bucket that fell: multiprocess
    vLLM and SGLang, and Triton, tell no process start.
    """
    both = sorted(now.ranks.keys() & before.ranks.keys())
    return _restarted(now, before) or any(
        _fell(now.ranks[rank], before.ranks[rank]) for rank in both
    )


def _restarted(now: Reading, before: Reading) -> bool:
    if (now.engine, now.model) != (before.engine, before.model):
        return True
    started = now.values.get(Metric.PROCESS_START)
    started_before = before.values.get(Metric.PROCESS_START)
    if started is None or started_before is None:
        return False
    return abs(started - started_before) > START_JITTER


def _fell(now: Rank, before: Rank) -> bool:
    if any(
        now.values[metric] < before.values[metric]
        for metric in _counters(now.values)
        if metric in before.values
    ):
        return True
    if now.ttft is None or before.ttft is None or now.ttft.bounds != before.ttft.bounds:
        return False
    return now.ttft.minus(before.ttft) is None


def _counters(metrics: Iterable[Metric]) -> list[Metric]:
    return [metric for metric in metrics if metric in COUNTERS]


def _ranks_with(reading: Reading, metric: Metric) -> list[str]:
    return sorted(name for name, rank in reading.ranks.items() if metric in rank.values)


def _ttft_by_rank(reading: Reading) -> dict[str, Histogram]:
    return {name: rank.ttft for name, rank in reading.ranks.items() if rank.ttft is not None}
