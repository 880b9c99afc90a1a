"""The outcome as one HTML file: replicas, who was late, and what it cost over time."""

from collections.abc import Iterator, Sequence
from itertools import accumulate

from adapter.cli.backtesting.cost import Prices
from adapter.cli.backtesting.text import headline, moment, percent, setting, summary
from adapter.simulator.backtest.outcome import Backtest
from adapter.simulator.report.chart import Rule, Series, Shape, Span, line_chart
from adapter.simulator.report.page import Section, details, facts, page, paragraph, table
from adapter.simulator.report.scale import Axis, Kind, number
from adapter.simulator.saturation import GOOD
from adapter.simulator.score import WINDOW

_TIME = Axis("time, UTC", Kind.TIME)
_HOUR = 3600.0

_MINUTES = 1440
"""Beyond so many moments ten minutes are drawn as one: a week of minutes is a smear."""

_DESIRED, _SERVING, _DEMAND, _BOUND, _LATE, _LOAD = 0, 2, 1, 5, 4, 6
"""The colours of what is drawn, the same in every chart."""


def as_html(found: Backtest, prices: Prices) -> str:
    """Return a page that stands alone."""
    metadata = found.plan.policy.metadata
    notes = "".join(paragraph(note, note=number == 0) for number, note in enumerate(found.notes))
    return page(
        f"Backtest of {metadata.namespace}/{metadata.name} on {found.plan.load.name}",
        (
            Section("Summary", facts(_facts(found, prices)) + notes + _figures(found, prices)),
            Section("Replicas", _replicas(found)),
            Section("Requests", _late(found) + _load(found) + _hours(found)),
            Section("Cost", _cost(found, prices)),
        ),
        lead=f"{headline(found)}; {setting(found)}.",
        foot="Made by leadtime backtest; it asks no server for anything.",
    )


def _facts(found: Backtest, prices: Prices) -> list[tuple[str, str]]:
    score, hours, ratio = found.score, found.bound_hours, found.ratio
    pairs = [
        ("in time", percent(score.attainment)),
        ("worst 10 minutes", percent(score.worst_window)),
        ("replica-hours paid", number(score.paid_hours)),
        ("the bound", "-" if hours is None else number(hours)),
        ("paid / bound", "-" if ratio is None else f"{ratio:.2f}"),
        ("starts", f"{score.starts:,}"),
    ]
    cost, gpu_hours = prices.cost(score.paid_hours), prices.gpu_hours(score.paid_hours)
    if gpu_hours is not None:
        pairs.append(("GPU-hours", number(gpu_hours)))
    if cost is not None:
        pairs.append(("to pay", f"{cost:,.2f}"))
    return pairs


def _figures(found: Backtest, prices: Prices) -> str:
    rows = [(name, figure, said) for name, figure, said in summary(found, prices)]
    return details("All figures", table(("", "figure", ""), rows, caption="Summary"))


def _replicas(found: Backtest) -> str:
    long = len(found.moments) > _MINUTES
    series = _by_ten_minutes(found) if long else _by_minute(found)
    if found.bound is not None:
        name = "the bound's plan, which knew the load"
        series.insert(1, Series(name, _planned(found), Shape.STEP, colour=_BOUND, dashed=True))
    return line_chart(
        series,
        title="Replicas",
        x=_TIME,
        y=Axis("replicas", least=0),
        description="Desired is what the policy publishes; serving is what was there, one load "
        "time later; demand is the largest of its signals, in replicas."
        + (" Ten minutes each: the most desired and demanded, the fewest serving." * long),
        spans=_gaps(found),
        rules=_limit(found),
    )


def _by_minute(found: Backtest) -> list[Series]:
    """Return what the fleet was like each minute, the most telling last: it is drawn on top."""
    moments = found.moments
    return [
        Series("serving", [(m.at, float(m.serving)) for m in moments], Shape.AREA, colour=_SERVING),
        Series("demand", [(m.at, m.demand) for m in moments], colour=_DEMAND),
        Series("desired", [(m.at, float(m.desired)) for m in moments], Shape.STEP, colour=_DESIRED),
    ]


def _by_ten_minutes(found: Backtest) -> list[Series]:
    stretches = list(found.stretches)
    return [
        Series(
            "serving", [(s.begin, float(s.serving)) for s in stretches], Shape.AREA, colour=_SERVING
        ),
        Series("demand", [(s.begin, s.demand) for s in stretches], colour=_DEMAND),
        Series(
            "desired", [(s.begin, float(s.desired)) for s in stretches], Shape.STEP, colour=_DESIRED
        ),
    ]


def _limit(found: Backtest) -> tuple[Rule, ...]:
    """Return the policy's maximum where it was in the way: far above, it would flatten the rest."""
    most = found.plan.policy.spec.replicas.max
    return (Rule(float(most), f"maximum {most}"),) if found.most >= most else ()


def _planned(found: Backtest) -> list[tuple[float, float | None]]:
    plan = () if found.bound is None else found.bound.plan
    begin = found.plan.judged_from
    return [(begin + place * found.slot, float(count)) for place, count in enumerate(plan)]


def _late(found: Backtest) -> str:
    points: list[tuple[float, float | None]] = [
        (window.begin, 100 * (1 - window.in_time / max(1, window.requests)))
        for window in found.score.windows
    ]
    return line_chart(
        [Series("late", _held(points), Shape.AREA, colour=_LATE)],
        title="Late requests",
        x=_TIME,
        y=Axis("late, of the requests of ten minutes", least=0, unit="%"),
        description="Late are those whose first token came after the promise, and those lost, "
        "refused or never served.",
        spans=_gaps(found),
        rules=(Rule(100 * (1 - GOOD), "what the bound may miss"),),
    )


def _load(found: Backtest) -> str:
    end = found.plan.end
    points: list[tuple[float, float | None]] = [
        (window.begin, window.requests / min(WINDOW, end - window.begin))
        for window in found.score.windows
        if window.begin < end  # what is left over at the end is judged there, and came before
    ]
    return line_chart(
        [Series("requests a second", _held(points), Shape.STEP, colour=_LOAD)],
        title="Load",
        x=_TIME,
        y=Axis("requests a second, mean of ten minutes", least=0),
        spans=_gaps(found),
    )


def _held(points: Sequence[tuple[float, float | None]]) -> list[tuple[float, float | None]]:
    """Return ``points`` with the last one held for its window."""
    return [*points, (points[-1][0] + WINDOW, points[-1][1])] if points else []


def _hours(found: Backtest) -> str:
    rows = [
        (moment(h.begin), f"{h.requests:,}", f"{h.missed:,}", f"{h.missed / h.requests:.2%}")
        for h in found.hours
        if h.missed
    ]
    if not rows:
        return paragraph("No request was late.")
    body = table(("hour, UTC", "requests", "late", "share"), rows, caption="Hours with late ones")
    count = "1 hour" if len(rows) == 1 else f"{len(rows)} hours"
    return details(f"Late requests by hour ({count})", body)


def _cost(found: Backtest, prices: Prices) -> str:
    worth = prices.cost(1.0)
    unit = 1.0 if worth is None else worth
    series = [Series("paid", [(m.at, m.paid_hours * unit) for m in found.moments], colour=_DESIRED)]
    if found.bound is not None:
        plan = list(_plan_paid(found, unit))
        name = "the bound's plan, its starts left out"
        series.append(Series(name, plan, colour=_BOUND, dashed=True))
    what = "replica-hours" if worth is None else "to pay"
    return line_chart(
        series,
        title="Paid so far",
        x=_TIME,
        y=Axis(what, least=0),
        description="From the node on: loading and draining replicas cost as much as others.",
        spans=_gaps(found),
    )


def _plan_paid(found: Backtest, unit: float) -> Iterator[tuple[float, float | None]]:
    hours = accumulate(found.slot / _HOUR * (count or 0.0) for _, count in _planned(found))
    for (at, _), paid in zip(_planned(found), hours, strict=True):
        yield at + found.slot, paid * unit


def _gaps(found: Backtest) -> tuple[Span, ...]:
    name = "no history: the load is made up"
    return tuple(Span(begin, end, name) for begin, end in found.plan.load.gaps)
