"""Outcomes that were never played: a test names only what it is about."""

from collections.abc import Sequence

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.outcome import Backtest, Moment
from adapter.simulator.bound import Bound
from adapter.simulator.score import Score, Window
from tests.build import T0
from tests.simulator.backtest.plans import a_load, a_plan


def a_moment(after: float, **more: object) -> Moment:
    """Return a minute ``after`` T0 with two replicas that serve and are wanted."""
    given: dict[str, object] = {
        "at": Timestamp(T0 + after),
        "demand": 1.5,
        "desired": 2,
        "serving": 2,
        "loading": 0,
        "in_flight": 10.0,
        "paid_hours": 2 * after / 3600,
        **more,
    }
    return Moment(**given)  # type: ignore[arg-type]


def a_window(after: float, requests: int = 1000, in_time: int = 1000) -> Window:
    """Return ten minutes from ``after`` T0 on."""
    return Window(Timestamp(T0 + after), requests, in_time)


def a_score(windows: Sequence[Window] = (), **more: object) -> Score:
    """Return the score of ``windows``, an hour with three starts."""
    requests = sum(window.requests for window in windows)
    given: dict[str, object] = {
        "requests": requests,
        "in_time": sum(window.in_time for window in windows),
        "finished": requests,
        "refused": 0,
        "lost": 0,
        "unfinished": 0,
        "worst_window": min((w.in_time / max(1, w.requests) for w in windows), default=1.0),
        "ttft_p50": Seconds(0.1),
        "ttft_p99": Seconds(1.5),
        "paid_hours": 12.0,
        "starts": 3,
        "seconds": Seconds(3600.0),
        "windows": tuple(windows),
        **more,
    }
    return Score(**given)  # type: ignore[arg-type]


def a_bound(*plan: int, hours: float = 8.0) -> Bound:
    """Return a bound of so many replica-hours, with a plan."""
    paid = Seconds(hours * 3600)
    return Bound(paid=paid, plan=plan or (1,) * 60, plan_paid=paid, plan_missed=0.0)


def a_backtest(**more: object) -> Backtest:
    """Return an hour in which nothing happened but what ``more`` says."""
    given: dict[str, object] = {
        "plan": a_plan(a_load(length=3600.0)),
        "mode": "requests",
        "score": a_score([a_window(600 * n) for n in range(6)]),
        "moments": tuple(a_moment(60 * n) for n in range(61)),
        "asked": ((T0, 2),),
        "bound": a_bound(),
        "slot": Seconds(60.0),
        **more,
    }
    return Backtest(**given)  # type: ignore[arg-type]


def asked(
    *counts: int, every: float = 300.0, first: float = 0.0
) -> tuple[tuple[Timestamp, int], ...]:
    """Return counts asked for one after the other, the first at ``first`` after T0."""
    return tuple((Timestamp(T0 + first + every * n), count) for n, count in enumerate(counts))
