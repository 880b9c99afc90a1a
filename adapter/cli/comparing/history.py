"""Two policies on one history: a load that is played, or a recording that is decided anew."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from adapter.cli.backtesting.inputs import plan_of
from adapter.cli.backtesting.replaying import RECORDED, Replay, replay
from adapter.simulator.backtest import fluid, requests
from adapter.simulator.backtest.outcome import Backtest, Plan
from adapter.simulator.score import WINDOW

GOOD: Final = 0.99
"""The share in time below which ten minutes count as late."""

_LONG: Final = 2 * 86_400.0
"""Seconds beyond which requests are not played one by one unless asked for."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a policy came to."""

    hours: float
    """Replica-hours: paid for on a load, desired on a recording."""

    late_minutes: float | None
    """None: a recording does not tell what another count would have served."""

    most: int
    flips: int


@dataclass(frozen=True, slots=True)
class History:
    """Both outcomes, and what must be said beside them."""

    name: str
    old: Outcome
    new: Outcome
    notes: tuple[str, ...]


def compare(old: argparse.Namespace, new: argparse.Namespace) -> History:
    """Return what both policies come to; the options differ in the policy alone.

    Raises:
        AdapterError: policy, load or recording cannot be used.
    """
    with _quiet():
        if old.recording is not None:
            replays = replay(old), replay(new)
            before, after = map(_replayed, replays)
            return History(replays[0].name, before, after, (RECORDED,))
        plans = plan_of(old), plan_of(new)
        played = _play(plans[0], old.mode), _play(plans[1], new.mode)
    notes = dict.fromkeys(note for each in played for note in each.notes)
    return History(plans[0].load.name, _played(played[0]), _played(played[1]), tuple(notes))


def _play(plan: Plan, mode: str | None) -> Backtest:
    long = plan.load.length > _LONG
    chosen = mode or ("fluid" if long else "requests")
    return fluid.play(plan) if chosen == "fluid" else requests.play(plan)


def _played(found: Backtest) -> Outcome:
    late = [w for w in found.score.windows if w.in_time < GOOD * w.requests]
    return Outcome(found.score.paid_hours, len(late) * WINDOW / 60, found.most, found.flips)


def _replayed(found: Replay) -> Outcome:
    counts = [pair.now for pair in found.pairs]
    steps = [after - before for before, after in pairwise(counts) if after != before]
    flips = sum((one > 0) is not (two > 0) for one, two in pairwise(steps))
    return Outcome(found.hours[1], None, max(counts), flips)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the loops' log of every decision to itself meanwhile."""
    log = logging.getLogger("leadtime")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
