"""How many requests a second one simulated engine answers, on one core."""

from functools import partial
from typing import Final

from adapter.cli.benchmarks.figure import Figure
from adapter.cli.benchmarks.stopwatch import cpu_seconds
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.presets import preset
from adapter.simulator.workload import Arrival, Workload

PRESET: Final = "llama-3.1-70b-4xh100"
REQUESTS: Final = 10_000
STRIDE: Final = 5.0
"""Seconds between two looks at the engine: a usual scrape interval."""

RATES: Final = {"light": 2.0, "busy": 5.5}
"""Requests a second; a little more than the latter and the queue grows."""

PROMISED: Final = {"busy": 150_000.0}
"""Requests simulated a second at the least, at the rate that a fleet is sized for."""


def measure(*, within: float = 2.0) -> tuple[Figure, ...]:
    """Return the requests a second at each rate, measured for ``within`` seconds each."""
    return tuple(_figure(name, rate, within=within) for name, rate in RATES.items())


def _figure(name: str, rate: float, *, within: float) -> Figure:
    length = Seconds(REQUESTS / rate)
    chat = list(Workload(length, seed=1, curve=((0.0, rate), (1.0, rate))).arrivals())
    seconds = cpu_seconds(partial(_play, chat), within=within)
    speed = f"{name}.requestsPerSecond"
    return Figure(speed, len(chat) / seconds, at_least=PROMISED.get(name))


def _play(chat: list[Arrival]) -> None:
    engine, until, sent = SimulatedEngine(preset(PRESET)), 0.0, 0
    while sent < len(chat) or engine.in_flight:
        until += STRIDE
        while sent < len(chat) and chat[sent].after <= until:
            one = chat[sent]
            engine.submit(Request(Timestamp(one.after), one.prompt_tokens, one.output_tokens))
            sent += 1
        engine.advance(until)
