"""The faults that policies are put through by name, placed within the hours that are judged."""

from collections.abc import Callable, Mapping
from typing import Final

from adapter.fleet.units import Seconds
from adapter.simulator.faults import (
    Fault,
    clock_jump,
    long_prompts,
    replica_dies,
    scrape_gap,
    slow_loads,
    staleness,
)

_GAP: Final = Seconds(300.0)
_STALE: Final = Seconds(60.0)
_HOUR: Final = Seconds(3600.0)

FAULTS: Final[Mapping[str, Callable[[Seconds, Seconds], Fault]]] = {
    "scrape-gap-5m": lambda at, _: scrape_gap(after=at, length=_GAP),
    "stale-60s": lambda at, left: staleness(after=at, length=left, delay=_STALE),
    "replica-dies": lambda at, _: replica_dies(after=at),
    "load-time-doubles": lambda at, left: slow_loads(after=at, length=left),
    "prompts-double": lambda at, left: long_prompts(after=at, length=left),
    # What a summer time does to a host that keeps local time: the adapter's clock alone is set.
    "clock-1h-forward": lambda at, _: clock_jump(after=at, seconds=_HOUR),
    "clock-1h-back": lambda at, _: clock_jump(after=at, seconds=Seconds(-_HOUR)),
}
"""Each from when it begins and how much is left then; those without an end of their own last."""


def trial(name: str, *, warm_up: Seconds, judged: Seconds) -> Fault:
    """Return the fault of that name, halfway through what is judged.

    Raises:
        KeyError: no such fault.
    """
    return FAULTS[name](Seconds(warm_up + judged / 2), Seconds(judged / 2))
