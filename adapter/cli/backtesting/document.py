"""The outcome for scripts: JSON with everything, CSV with a row for ten minutes."""

import csv
import io
import json
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from adapter.cli.backtesting.cost import Prices
from adapter.simulator.backtest.load import COUNTERFACTUAL
from adapter.simulator.backtest.outcome import Backtest

Value = str | int | float | bool | None


def as_json(found: Backtest, prices: Prices) -> str:
    """Return one object: what was played, the summary, the hours and the timeline."""
    plan = found.plan
    document = {
        "policy": f"{plan.policy.metadata.namespace}/{plan.policy.metadata.name}",
        "load": {
            "name": plan.load.name,
            "begin": _iso(plan.load.begin),
            "seconds": plan.load.length,
            "warmUpSeconds": plan.warm_up,
            "scale": plan.scale,
            "gaps": [{"begin": _iso(begin), "end": _iso(end)} for begin, end in plan.load.gaps],
        },
        "mode": found.mode,
        "engine": plan.engine.name,
        "loadTimeSeconds": plan.load_time,
        "seed": plan.seed,
        "notes": list(found.notes),
        "summary": _summary(found, prices),
        "hours": [
            {"begin": _iso(hour.begin), "requests": hour.requests, "missed": hour.missed}
            for hour in found.hours
        ],
        "timeline": list(timeline(found)),
    }
    return json.dumps(document, indent=2) + "\n"


def as_csv(found: Backtest, prices: Prices) -> str:
    """Return a row for ten minutes; what must be known about all of them stands in the first."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow((*_COLUMNS, "cost", "note"))
    note = " ".join(found.notes)
    for row in timeline(found):
        paid = row["paidHours"]
        cost = prices.cost(paid) if isinstance(paid, float) else None
        writer.writerow((*("" if v is None else v for v in row.values()), _blank(cost), note))
        note = ""
    return buffer.getvalue()


def timeline(found: Backtest) -> Iterator[dict[str, Value]]:
    """Yield ten minutes each: counts are the most, replicas that serve the fewest."""
    for one in found.stretches:
        yield {
            "begin": _iso(one.begin),
            "desired": one.desired,
            "serving": one.serving,
            "loading": one.loading,
            "demand": None if one.demand is None else round(one.demand, 3),
            "inFlight": round(one.in_flight, 1),
            "boundPlan": one.planned,
            "requests": one.requests,
            "missed": one.missed,
            "paidHours": round(one.paid_hours, 4),
            "gap": one.gap,
        }


_COLUMNS: Final = (
    "begin",
    "desired",
    "serving",
    "loading",
    "demand",
    "in_flight",
    "bound_plan",
    "requests",
    "missed",
    "paid_hours",
    "gap",
)


def _summary(found: Backtest, prices: Prices) -> dict[str, Value]:
    score, hours = found.score, found.bound_hours
    return {
        "attainment": score.attainment,
        "worstTenMinutes": score.worst_window,
        "requests": score.requests,
        "missed": score.requests - score.in_time,
        "refused": score.refused,
        "lost": score.lost,
        "unfinished": score.unfinished,
        "ttftP50Seconds": _known(score.ttft_p50),
        "ttftP99Seconds": _known(score.ttft_p99),
        "paidHours": score.paid_hours,
        "gpuHours": prices.gpu_hours(score.paid_hours),
        "cost": prices.cost(score.paid_hours),
        "boundHours": hours,
        "boundCost": None if hours is None else prices.cost(hours),
        "ratio": found.ratio,
        "meanReplicas": score.mean_replicas,
        "mostReplicas": found.most,
        "atMaximumShare": found.at_most,
        "starts": score.starts,
        "startsPerDay": score.starts_per_day,
        "flips": found.flips,
        "counterfactual": COUNTERFACTUAL,
    }


def _known(value: float) -> float | None:
    """Return it, or None of nobody served: NaN is no JSON."""
    return None if math.isnan(value) else value


def _blank(cost: float | None) -> str:
    return "" if cost is None else f"{cost:.4f}"


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
