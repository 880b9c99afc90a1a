"""The outcome for a person at a terminal."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from adapter.cli.backtesting.cost import Prices
from adapter.scaling.duration import format_duration
from adapter.simulator.backtest.outcome import Backtest

_MODES: Final = {"requests": "requests played one by one", "fluid": "fluid"}
_SHOWN_HOURS: Final = 12

Line = tuple[str, str, str]
"""What, its figure, and what is to be said about it."""


def as_text(found: Backtest, prices: Prices) -> str:
    """Return the summary, the hours with misses, and what must be known about the figures."""
    rows = list(summary(found, prices))
    wide = max(len(name) for name, _, _ in rows)
    figures = max(len(figure) for _, figure, _ in rows)
    table = [f"{name:<{wide}}  {figure:>{figures}}  {said}".rstrip() for name, figure, said in rows]
    parts = [
        headline(found),
        setting(found),
        "",
        *table,
        "",
        *_misses(found),
        "",
        *(f"note: {note}" for note in found.notes),
    ]
    return "\n".join(parts) + "\n"


def headline(found: Backtest) -> str:
    """Return what was played."""
    plan = found.plan
    metadata = plan.policy.metadata
    hours = (plan.end - plan.judged_from) / 3600
    return (
        f"{metadata.namespace}/{metadata.name} on {plan.load.name}: {hours:.1f} h from "
        f"{moment(plan.judged_from)}, {_MODES[found.mode]}"
    )


def setting(found: Backtest) -> str:
    """Return what it was played with."""
    plan = found.plan
    scaled = "" if plan.scale == 1 else f", {plan.scale:g} x the load"
    warm = "" if not plan.warm_up else f", after {format_duration(plan.warm_up)} of warm-up"
    return (
        f"engine {plan.engine.name}, load time {format_duration(plan.load_time)}{scaled}{warm}, "
        f"seed {plan.seed}"
    )


def summary(found: Backtest, prices: Prices) -> Iterator[Line]:
    """Yield each figure with what belongs to it."""
    score, plan = found.score, found.plan
    worst = min(score.windows, key=lambda each: each.in_time / max(1, each.requests), default=None)
    promise = plan.objective
    yield (
        "in time",
        percent(score.attainment),
        f"of {score.requests:,} requests: first token within {promise.ttft:g} s + "
        f"{promise.prefills:g} x its prefill",
    )
    yield (
        "worst 10 minutes",
        percent(score.worst_window),
        "" if worst is None else f"from {moment(worst.begin)}",
    )
    yield "TTFT p50, p99", f"{_seconds(score.ttft_p50)}, {_seconds(score.ttft_p99)}", ""
    yield "paid", f"{score.paid_hours:,.1f} h", _paid(found, prices)
    yield from _bound(found, prices)
    yield "starts", f"{score.starts:,}", f"{score.starts_per_day:.1f} a day"
    yield (
        "most replicas",
        f"{found.most}",
        f"of {plan.policy.spec.replicas.max} allowed; {percent(found.at_most)} of the time at that",
    )
    yield "flips", f"{found.flips}", "times up after down, or down after up"


def _paid(found: Backtest, prices: Prices) -> str:
    hours = found.score.paid_hours
    said = [f"replica-hours, {found.score.mean_replicas:.1f} replicas on average"]
    gpu_hours, cost = prices.gpu_hours(hours), prices.cost(hours)
    if gpu_hours is not None:
        said.append(f"{gpu_hours:,.1f} GPU-hours")
    if cost is not None:
        said.append(f"{cost:,.2f} to pay")
    return "; ".join(said)


def _bound(found: Backtest, prices: Prices) -> Iterator[Line]:
    if found.bound_hours is None or found.ratio is None:
        yield "bound", "-", "nothing came, or no fleet could serve it"
        return
    cost = prices.cost(found.bound_hours)
    said = "replica-hours: nobody who serves 99% of the work in time pays less"
    yield (
        "bound",
        f"{found.bound_hours:,.1f} h",
        said if cost is None else f"{said}; {cost:,.2f} to pay",
    )
    yield "paid / bound", f"{found.ratio:.2f}", ""


def _misses(found: Backtest) -> Iterator[str]:
    """Yield the hours with the most misses, in the order of time."""
    missed = [hour for hour in found.hours if hour.missed]
    if not missed:
        yield "misses by hour: none"
        return
    worst = sorted(missed, key=lambda hour: -hour.missed)[:_SHOWN_HOURS]
    yield "misses by hour, UTC:"
    for hour in sorted(worst, key=lambda each: each.begin):
        share = hour.missed / hour.requests
        yield f"  {moment(hour.begin)}  {hour.missed:>8,} of {hour.requests:,} ({share:.2%})"
    rest = [hour for hour in missed if hour not in worst]
    if rest:
        yield f"  and {sum(hour.missed for hour in rest):,} in {len(rest)} other hours"


def moment(at: float) -> str:
    """Return a moment with its day, UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%a %d %b %Y %H:%M")


def percent(share: float) -> str:
    """Return it cut, not rounded: 98.996 % is not 99 %."""
    return f"{math.floor(share * 10_000 + 1e-9) / 100:.2f}%"


def _seconds(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f} s"
