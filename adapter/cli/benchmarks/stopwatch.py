"""CPU seconds of small pieces of work: unlike wall time, they do not grow with the neighbours'."""

import time
from collections.abc import Callable, Iterable
from typing import Final

BATCHES: Final = 7
"""The quickest batch counts: what slows the others down is not the work's doing."""


def cpu_seconds(work: Callable[[], object], *, within: float = 0.5) -> float:
    """Return the CPU time of one ``work()`` when warm, measured for about ``within`` s."""
    once = min(_spent([work]) for _ in range(3))
    times = max(1, int(within / BATCHES / max(once, 1e-7)))
    return min(_spent([work] * times) for _ in range(BATCHES)) / times


def cpu_seconds_of_first(works: Iterable[Callable[[], object]]) -> float:
    """Return the CPU time of the quickest of ``works``, each of which is done once only."""
    return min(_spent([work]) for work in works)


def _spent(works: list[Callable[[], object]]) -> float:
    began = time.process_time()
    for work in works:
        work()
    return time.process_time() - began
