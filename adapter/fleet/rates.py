"""What happened between two readings of one replica: counters as growth, TTFT as a window."""

from typing import Final

from adapter.fleet.histogram import Histogram, together
from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.reading import Reading
from adapter.fleet.units import Seconds

START_JITTER: Final = Seconds(1.0)
"""A process start may be rounded differently from scrape to scrape; a restart takes longer."""

_TTFT: Final = "ttft"


def increase(now: Reading, before: Reading, metric: Metric) -> float | None:
    """Return how much the counter ``metric`` grew over all ranks; never negative.

    After a reset the new value counts as the growth, once: it is a lower bound of what happened.
    None when either reading lacks the metric, when it was read from another series or of another
    model, or when the ranks that report it are not the same ones: a rank that went silent must
    not read as less work.
    """
    if metric not in now.values or metric not in before.values:
        return None
    reporting = _ranks_with(now, metric)
    if not _comparable(now, before, metric) or reporting != _ranks_with(before, metric):
        return None
    anew = _restarted(now, before)
    return sum(
        now.ranks[rank].values[metric]
        if anew or _fell(now, before, rank)
        else now.ranks[rank].values[metric] - before.ranks[rank].values[metric]
        for rank in reporting
    )


def first_tokens(now: Reading, before: Reading) -> Histogram | None:
    """Return the TTFT observations between the readings, over all ranks.

    None when either reading has no TTFT, after a reset, with a new bucket layout or with other
    ranks: a window across any of these would compare two different engines. A histogram with a
    count of 0 says something else: nobody got a first token.
    """
    if now.ttft is None or before.ttft is None or not _comparable(now, before, _TTFT):
        return None
    latest, earlier = _ttft_by_rank(now), _ttft_by_rank(before)
    if latest.keys() != earlier.keys() or was_reset(now, before):
        return None
    windows = [latest[rank].minus(earlier[rank]) for rank in latest]
    known = [window for window in windows if window is not None]
    return together(known) if len(known) == len(windows) else None


def seconds_between(now: Reading, before: Reading) -> Seconds:
    """Return the time from ``before`` to ``now``; 0 or less when they are not in that order."""
    return Seconds(now.at - before.at)


def was_reset(now: Reading, before: Reading) -> bool:
    """Return whether the engine, or one of its ranks, began anew between the readings.

    Seen by a process start that moved, another model, or a counter or TTFT bucket that fell:
    multiprocess vLLM and SGLang, and Triton, tell no process start.
    """
    if (now.engine, now.model) != (before.engine, before.model) or _restarted(now, before):
        return True
    both = sorted(now.ranks.keys() & before.ranks.keys())
    return any(_fell(now, before, rank) for rank in both)


def _comparable(now: Reading, before: Reading, name: str) -> bool:
    """Return whether both read ``name`` of the same model and from the same series.

    An alias that appears or goes between two scrapes (SGLang's live token counter, its TTFT of
    streams) would otherwise look like a reset, and a lifetime's total like a burst.
    """
    same = (now.engine, now.model) == (before.engine, before.model)
    return same and now.matched.get(name) == before.matched.get(name)


def _restarted(now: Reading, before: Reading) -> bool:
    started = now.values.get(Metric.PROCESS_START)
    started_before = before.values.get(Metric.PROCESS_START)
    if started is None or started_before is None:
        return False
    return abs(started - started_before) > START_JITTER


def _fell(now: Reading, before: Reading, rank: str) -> bool:
    latest, earlier = now.ranks[rank], before.ranks[rank]
    for metric, value in latest.values.items():
        fell = value < earlier.values.get(metric, value)
        if fell and metric in COUNTERS and _comparable(now, before, metric):
            return True
    if latest.ttft is None or earlier.ttft is None or not _comparable(now, before, _TTFT):
        return False
    return latest.ttft.fell_since(earlier.ttft)


def _ranks_with(reading: Reading, metric: Metric) -> list[str]:
    return sorted(name for name, rank in reading.ranks.items() if metric in rank.values)


def _ttft_by_rank(reading: Reading) -> dict[str, Histogram]:
    return {name: rank.ttft for name, rank in reading.ranks.items() if rank.ttft is not None}
