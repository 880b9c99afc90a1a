"""What happened between two readings of one replica: counters as growth, TTFT as a window."""

from dataclasses import dataclass
from typing import Final

from adapter.fleet.histogram import Histogram, together
from adapter.fleet.metrics import COUNTERS, Metric
from adapter.fleet.reading import Reading
from adapter.fleet.units import Seconds

START_JITTER: Final = Seconds(1.0)
"""A process start may be rounded differently from scrape to scrape; a restart takes longer."""

_TTFT: Final = "ttft"


@dataclass(frozen=True, slots=True)
class Between:
    """What happened between two readings of one replica; made once, asked often."""

    now: Reading
    before: Reading
    seconds: Seconds
    """0 or less when the readings are not in that order."""

    first_tokens: Histogram | None
    """The TTFT observations over all ranks. None when either reading has no TTFT, after a reset,
    with a new bucket layout or with other ranks: a window across any of these would compare two
    different engines. A histogram with a count of 0 says something else: nobody got one."""

    anew: bool
    """True when the process began anew."""

    fallen: frozenset[str]
    """The ranks of which a counter fell: they began anew, whatever the process says."""

    plain: bool
    """True for the usual case: the same ranks and series, no reset. Then a difference will do."""

    def increase(self, metric: Metric) -> float | None:
        """Return how much the counter ``metric`` grew over all ranks; never negative.

        After a reset the new value counts as the growth, once: it is a lower bound of what
        happened. None when either reading lacks the metric, when it was read from another series
        or of another model, or when the ranks that report it are not the same ones: a rank that
        went silent must not read as less work.
        """
        now, before = self.now, self.before
        if metric not in now.values or metric not in before.values:
            return None
        if self.plain:
            return now.values[metric] - before.values[metric]  # of a counter, the ranks' sum
        reporting = _ranks_with(now, metric)
        if not _comparable(now, before, metric) or reporting != _ranks_with(before, metric):
            return None
        total = 0.0
        for rank in reporting:
            total += now.ranks[rank].values[metric]
            if not self.anew and rank not in self.fallen:
                total -= before.ranks[rank].values[metric]
        return total


def between(now: Reading, before: Reading) -> Between:
    """Return what happened from ``before`` to ``now``."""
    anew, fallen = _restarted(now, before), _fallen(now, before)
    same = (now.engine, now.model) == (before.engine, before.model)
    whole = same and not anew and not fallen
    return Between(
        now=now,
        before=before,
        seconds=seconds_between(now, before),
        first_tokens=_first_tokens(now, before) if whole else None,
        anew=anew,
        fallen=fallen,
        plain=whole and now.matched == before.matched and _same_ranks(now, before),
    )


def increase(now: Reading, before: Reading, metric: Metric) -> float | None:
    """Return how much one counter grew; see ``Between.increase``."""
    return between(now, before).increase(metric)


def first_tokens(now: Reading, before: Reading) -> Histogram | None:
    """Return the TTFT observations between the readings; see ``Between.first_tokens``."""
    return between(now, before).first_tokens


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
    return bool(_fallen(now, before))


def _same_ranks(now: Reading, before: Reading) -> bool:
    """Return whether the same ranks tell the same metrics."""
    return now.ranks.keys() == before.ranks.keys() and all(
        rank.values.keys() == before.ranks[name].values.keys() for name, rank in now.ranks.items()
    )


def _first_tokens(now: Reading, before: Reading) -> Histogram | None:
    if now.ttft is None or before.ttft is None or not _comparable(now, before, _TTFT):
        return None
    latest, earlier = _ttft_by_rank(now), _ttft_by_rank(before)
    if latest.keys() != earlier.keys():
        return None
    windows = [latest[rank].minus(earlier[rank]) for rank in latest]
    known = [window for window in windows if window is not None]
    return together(known) if len(known) == len(windows) else None


def _fallen(now: Reading, before: Reading) -> frozenset[str]:
    fell = [rank for rank in now.ranks if rank in before.ranks and _fell(now, before, rank)]
    return frozenset(fell) if fell else _NOBODY


_NOBODY: Final[frozenset[str]] = frozenset()


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
    values, past = latest.values, earlier.values
    for metric in _COUNTED:
        value = values.get(metric)
        if value is None or value >= past.get(metric, value):
            continue
        if _comparable(now, before, metric):
            return True
    if latest.ttft is None or earlier.ttft is None or not _comparable(now, before, _TTFT):
        return False
    return latest.ttft.fell_since(earlier.ttft)


_COUNTED: Final = tuple(sorted(COUNTERS))


def _ranks_with(reading: Reading, metric: Metric) -> list[str]:
    return sorted(name for name, rank in reading.ranks.items() if metric in rank.values)


def _ttft_by_rank(reading: Reading) -> dict[str, Histogram]:
    return {name: rank.ttft for name, rank in reading.ranks.items() if rank.ttft is not None}
