"""What came of a scaling benchmark as one HTML file: for each race, what was paid for what."""

from collections.abc import Mapping, Sequence

from adapter.cli.benchmarks.cell_text import cut_percent, percent, ranked, title
from adapter.cli.benchmarks.cells import code
from adapter.cli.benchmarks.spread import spread
from adapter.cli.benchmarks.standings import Race, Standing, races
from adapter.simulator.ablations import OURS
from adapter.simulator.matrix import Cell, Outcome
from adapter.simulator.report.chart import Dot, Rule, scatter_chart
from adapter.simulator.report.page import Section, page, paragraph, table
from adapter.simulator.report.scale import Axis
from adapter.simulator.saturation import GOOD
from adapter.simulator.trials import FAULTS

_MET, _MISSED = 0, 4
"""Colours of what met the objective, and of what did not."""

_HOW_TO_READ = (
    "Up is more in time, left is cheaper. Below the line the objective was missed: what was saved "
    "there is no merit. Ours is named; the mouse and the keyboard tell the others."
)


def as_html(outcomes: Mapping[Cell, Outcome]) -> str:
    """Return a page that stands alone."""
    return page(
        "What scaling cost, and who was served in time",
        [
            Section(title(race, standings), _chart(standings) + _tables(race, standings))
            for race, standings in races(outcomes).items()
        ],
        lead=(
            f"Simulated. The objective is {100 * GOOD:g} % in time, on every seed; the bound is "
            f"the least replica-hours that serve as much of the work."
        ),
        foot=f"Made by leadtime bench scaling, code {code()}; it asks no server for anything.",
    )


def _chart(standings: Sequence[Standing]) -> str:
    return scatter_chart(
        [_dot(one) for one in standings],
        title="Paid, and served in time",
        x=Axis("replica-hours paid / bound"),
        y=Axis("requests in time", unit=" %"),
        description=_HOW_TO_READ,
        rules=(
            Rule(100 * GOOD, f"objective, {100 * GOOD:g} %"),
            Rule(1.0, "bound", vertical=True),
        ),
    )


def _dot(one: Standing) -> Dot:
    return Dot(
        one.ratio,
        cut_percent(one.attainment),
        one.policy if one.fault is None else f"{one.policy}, {one.fault}",
        colour=_MET if one.good else _MISSED,
        strong=one.policy == OURS and one.fault is None,
        note=_met(one),
    )


def _met(one: Standing) -> str:
    good = sum(outcome.good for outcome in one.outcomes)
    if len(one.outcomes) == 1:
        return "met" if good else "miss"
    return f"{'met' if one.good else 'miss'}: met on {good} of {len(one.outcomes)} seeds"


def _tables(race: Race, standings: Sequence[Standing]) -> str:
    whole = [one for one in standings if one.fault is None]
    body = _standings(whole) if len(race) == 1 else _seeds(whole)
    return body + (_under_faults(standings) if len(whole) < len(standings) else "")


def _standings(standings: Sequence[Standing]) -> str:
    header = ("policy", "place", "in time", "worst 10 min", "paid h", "paid / bound", "starts")
    rows = [
        (
            one.policy,
            place,
            percent(one.attainment),
            percent(one.worst_window),
            f"{one.paid_hours:.2f}",
            f"{one.ratio:.2f}",
            str(one.outcomes[0].starts),
        )
        for place, one in ranked(standings)
    ]
    return table(header, rows, caption="The cheapest that met the objective first")


def _seeds(standings: Sequence[Standing]) -> str:
    header = (
        *("policy", "place", "in time", "95 % of means", "worst 10 min"),
        *("paid / bound", "95 % of means", "objective"),
    )
    rows = []
    for place, one in ranked(standings):
        shares = spread([outcome.attainment for outcome in one.outcomes])
        ratios = spread([outcome.ratio for outcome in one.outcomes])
        rows.append(
            (
                one.policy,
                place,
                percent(shares.mean),
                f"{percent(shares.low)} to {percent(shares.high)}",
                percent(one.worst_window),
                f"{ratios.mean:.2f}",
                f"{ratios.low:.2f} to {ratios.high:.2f}",
                _met(one),
            )
        )
    told = paragraph("Means over the seeds; the intervals are bootstraps over them.")
    return told + table(header, rows, caption="The cheapest that met the objective first")


def _under_faults(standings: Sequence[Standing]) -> str:
    whole = {one.policy: one for one in standings if one.fault is None}
    header = (
        *("fault", "policy", "in time without", "with", "paid h without", "with"),
        *("worst 10 min with", "objective"),
    )
    rows = [
        (
            fault,
            one.policy,
            percent(whole[one.policy].attainment),
            percent(one.attainment),
            f"{whole[one.policy].paid_hours:.2f}",
            f"{one.paid_hours:.2f}",
            percent(one.worst_window),
            _met(one),
        )
        for fault in FAULTS
        for one in standings
        if one.fault == fault
    ]
    return table(header, rows, caption="What each fault changed")
