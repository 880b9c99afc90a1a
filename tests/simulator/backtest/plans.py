"""Loads and plans that the backtest's tests start from: small and steady."""

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.load import Bin, Drawn, Load
from adapter.simulator.backtest.outcome import Plan
from adapter.simulator.synthetic import Curve, Steady
from tests.build import T0
from tests.simulator.worlds import ENGINE, a_policy

CARDS = [(1200, 120)]


def a_load(rate: float = 5.0, length: float = 1200.0, **more: object) -> Drawn:
    """Return a steady load of equal requests from T0 on, without a minute's noise."""
    given: dict[str, object] = {
        "name": "steady",
        "begin": T0,
        "length": Seconds(length),
        "rates": Curve(((0.0, rate),)),
        "decks": Steady(CARDS),
        "minute_sigma": 0.0,
        **more,
    }
    return Drawn(**given)  # type: ignore[arg-type]


def a_plan(load: Load | None = None, **more: object) -> Plan:
    """Return a plan for one to ten replicas that load within a minute."""
    given: dict[str, object] = {
        "policy": a_policy(most=10),
        "load": load or a_load(),
        "engine": ENGINE,
        "load_time": Seconds(60.0),
        **more,
    }
    return Plan(**given)  # type: ignore[arg-type]


def a_bin(after: float, requests: float = 600.0, *, seconds: float = 300.0, **more: object) -> Bin:
    """Return a bin that begins ``after`` T0, with requests of 1000 + 100 tokens."""
    return Bin(
        Timestamp(T0 + after),
        Seconds(seconds),
        requests,
        1000 * requests,
        100 * requests,
        **more,  # type: ignore[arg-type]
    )
