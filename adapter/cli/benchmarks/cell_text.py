"""What came of a scaling benchmark, for scripts and for people."""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from adapter.cli.benchmarks.spread import spread
from adapter.cli.benchmarks.standings import Race, Standing, races
from adapter.simulator.matrix import Cell, Outcome
from adapter.simulator.trials import FAULTS

_ROUNDING: Final = 1e-6
"""What a mean of equal shares may have lost to floating point; no request in 10^10 is as much."""


def as_json(outcomes: dict[Cell, Outcome]) -> str:
    """Return one object, whose ``cells`` are in the order of play."""
    return json.dumps({"cells": [_row(*each) for each in outcomes.items()]}, indent=2)


def _row(cell: Cell, outcome: Outcome) -> dict[str, str | int | float | None]:
    course = cell.course
    return {
        "trace": course.trace,
        "engine": course.engine,
        "loadTimeSeconds": course.load_time,
        "fleet": course.fleet,
        "policy": cell.policy,
        "fault": cell.fault,
        "seed": course.seed,
        "attainment": outcome.attainment,
        "paidHours": outcome.paid_hours,
        "boundHours": outcome.bound_hours,
        "ratio": outcome.ratio,
        "worstTenMinutes": outcome.worst_window,
        "starts": outcome.starts,
        "ttftP99Seconds": outcome.ttft_p99,
        "tunedTo": outcome.tuned_to,
    }


def as_text(outcomes: dict[Cell, Outcome]) -> str:
    """Return a table for each race: the cheapest that met the objective first, then the rest.

    Those that missed it are ranked by how many they served in time: what they paid is no merit.
    Of several seeds it tells means; under faults, what each fault changed.
    """
    tables = []
    for race, standings in races(outcomes).items():
        if any(one.fault for one in standings):
            lines = under_faults(standings)
        else:
            lines = (_of_one_seed if len(race) == 1 else _of_seeds)(standings)
        tables.append("\n".join((title(race, standings), *lines)))
    return "\n\n".join(tables)


def title(race: Race, standings: Sequence[Standing]) -> str:
    """Return what the race was, and its bound: from the least to the most of its seeds."""
    course = race[0]
    bounds = [outcome.bound_hours for outcome in standings[0].outcomes]
    ends = dict.fromkeys(f"{bound:.2f}" for bound in (min(bounds), max(bounds)))
    seeds = f"seed {course.seed}" if len(race) == 1 else f"seeds {course.seed} to {race[-1].seed}"
    return (
        f"{course.trace}, {course.engine}, load {course.load_time:g} s, fleet {course.fleet}, "
        f"{seeds}: bound {' to '.join(ends)} replica-hours"
    )


def _of_one_seed(standings: Sequence[Standing]) -> Iterator[str]:
    yield "     policy                    in time   paid h  ratio  starts  TTFT p99"
    for mark, one in ranked(standings):
        (outcome,) = one.outcomes
        p99 = "-" if outcome.ttft_p99 is None else f"{outcome.ttft_p99:.1f} s"
        yield (
            f"{mark:>4} {one.policy:<24}{percent(outcome.attainment):>9}"
            f"{outcome.paid_hours:>9.2f}{outcome.ratio:>7.2f}{outcome.starts:>8}{p99:>10}"
        )


def _of_seeds(standings: Sequence[Standing]) -> Iterator[str]:
    yield "means, [95 % of them by bootstrap over the seeds]; a miss on any seed is a miss"
    yield "     policy                    in time                     ratio                  met"
    for mark, one in ranked(standings):
        shares = spread([outcome.attainment for outcome in one.outcomes])
        ratios = spread([outcome.ratio for outcome in one.outcomes])
        met = f"{sum(outcome.good for outcome in one.outcomes)} of {len(one.outcomes)}"
        share_ends = f"[{percent(shares.low)}, {percent(shares.high)}]"
        ratio_ends = f"[{ratios.low:.2f}, {ratios.high:.2f}]"
        yield (
            f"{mark:>4} {one.policy:<24}{percent(shares.mean):>9} {share_ends:<20}"
            f"{ratios.mean:>7.2f} {ratio_ends:<15}{met:>8}"
        )


def under_faults(standings: Sequence[Standing]) -> Iterator[str]:
    """Yield a table of what each fault changed, beside the same run without it."""
    whole = {one.policy: one for one in standings if one.fault is None}
    yield f"{'':51}in time          paid h  worst 10 min"
    yield f"     {'fault':<18} {'policy':<24} without    with  without   with      with"
    for fault, one in ((fault, one) for fault in FAULTS for one in standings):
        if one.fault == fault:
            before = whole[one.policy]
            yield (
                f"{'' if one.good else 'miss':>4} {fault:<18} {one.policy:<24}"
                f"{percent(before.attainment):>8}{percent(one.attainment):>8}"
                f"{before.paid_hours:>9.2f}{one.paid_hours:>7.2f}{percent(one.worst_window):>9}"
            )


def ranked(standings: Sequence[Standing]) -> Iterator[tuple[str, Standing]]:
    """Yield the standings in order, each with its place; one that missed has none."""
    for place, one in enumerate(sorted(standings, key=lambda one: one.rank), start=1):
        yield f"{place}." if one.good else "miss", one


def percent(share: float) -> str:
    """Return it cut, not rounded: 98.996 % is not 99 %."""
    return f"{cut_percent(share):.2f}%"


def cut_percent(share: float) -> float:
    """Return the percents with two digits, the others cut."""
    return int(share * 10_000 + _ROUNDING) / 100
