"""The loop closed over a fluid pool: a backlog that grows while replicas load is no demand."""

from dataclasses import dataclass, field

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.snapshot import FleetSnapshot, Replica
from adapter.scaling.evaluate import evaluate
from adapter.scaling.state import ScalingState
from tests.build import T0, a_fleet, a_reading, a_replica, a_spec, loading

BATCH = 16.0
"""Requests that a replica runs at once."""


@dataclass
class Engine:
    """One replica that finishes a fixed number of requests per second."""

    name: str
    asked_at: float
    ready_at: float
    in_flight: float = 0.0
    finished: float = 0.0
    readings: list[object] = field(default_factory=list)

    def pass_time(self, seconds: float, arrived: float, *, per_second: float) -> None:
        self.in_flight += arrived
        done = min(self.in_flight, seconds * per_second)
        self.in_flight -= done
        self.finished += done

    def replica(self, at: float) -> Replica:
        if at < self.ready_at:
            return loading(1, prefix=self.name, since=self.asked_at)[0]
        reading = a_reading(
            at=at,
            running=min(BATCH, self.in_flight),
            waiting=max(0.0, self.in_flight - BATCH),
            more={Metric.REQUESTS_FINISHED: self.finished},
        )
        self.readings.append(reading)
        previous = self.readings[-2] if len(self.readings) > 1 else None
        return a_replica(self.name, sample=reading, previous=previous)  # type: ignore[arg-type]


@dataclass
class Pool:
    """Engines behind one router; what waits is spread evenly, or stays where it is."""

    load: float
    per_second: float = 10.0
    load_seconds: float = 60.0
    sticky: bool = False
    engines: list[Engine] = field(default_factory=lambda: [Engine("e000", T0, ready_at=T0)])

    def run(self, *, ticks: int, tick: float = 5.0, **spec: object) -> list[int]:
        """Play ``ticks`` with the published count obeyed at once; return what was published."""
        state, published = ScalingState(), []
        policy = a_spec(replicas={"min": 1, "max": 1000}, **spec)
        for number in range(ticks):
            at = T0 + number * tick
            decision, state = evaluate(policy, self._snapshot(at), state)
            published.append(decision.published)
            self._obey(decision.published, at)
            self._pass_time(at, tick)
        return published

    def _snapshot(self, at: float) -> FleetSnapshot:
        replicas = [engine.replica(at) for engine in self.engines]
        return a_fleet(
            *replicas, at=at, spec_replicas=len(self.engines), load_time=self.load_seconds
        )

    def _obey(self, count: int, at: float) -> None:
        for number in range(len(self.engines), count):
            self.engines.append(Engine(f"e{number:03}", at, ready_at=at + self.load_seconds))

    def _pass_time(self, at: float, seconds: float) -> None:
        up = [engine for engine in self.engines if engine.ready_at <= at]
        if not self.sticky:
            even = sum(engine.in_flight for engine in up) / len(up)
            for engine in up:
                engine.in_flight = even
        for engine in up:
            arrived = self.load * seconds / len(up)
            engine.pass_time(seconds, arrived, per_second=self.per_second)


@pytest.mark.parametrize("sticky", [False, True])
def test_a_hundred_a_second_at_ten_each_and_a_minute_to_load_peaks_at_fourteen(
    *, sticky: bool
) -> None:
    """WVA#1019: a replica per waiting request ends at 22,745 of them; 10 keep up, 12 have slack."""
    pool = Pool(load=100.0, sticky=sticky)

    published = pool.run(ticks=240)

    assert 12 <= max(published) <= 14
    assert published[1] >= 11  # one tick after the first sight of a queue


@pytest.mark.parametrize("load_seconds", [20.0, 240.0, 600.0])
def test_the_peak_does_not_grow_with_the_load_time(load_seconds: float) -> None:
    """The backlog of a load time is worked off over four, whatever the load time is."""
    pool = Pool(load=100.0, load_seconds=load_seconds)

    published = pool.run(ticks=400)

    assert max(published) <= 14


def test_the_backlog_is_gone_in_the_end() -> None:
    pool = Pool(load=100.0)

    pool.run(ticks=240)

    assert sum(engine.in_flight for engine in pool.engines) < len(pool.engines) * BATCH


def test_sixty_seconds_of_loading_order_once() -> None:
    """inference-sim#1109: 60 s of loading, 15 s ticks: one scale-up, not four."""
    pool = Pool(load=35.0)

    published = pool.run(ticks=4, tick=15.0, signals={"queue": {"targetInFlight": 16}})

    assert len(set(published[1:])) == 1


def test_without_finished_requests_the_backlog_counts_in_full() -> None:
    """Frozen counters prove nothing: the naive number stands."""
    pool = Pool(load=10.0, per_second=0.0)

    published = pool.run(ticks=3, signals={"queue": {"targetInFlight": 16, "headroom": 1}})

    assert published == [1, 4, 7]


def test_the_fleet_comes_down_when_the_load_is_gone() -> None:
    pool = Pool(load=100.0)
    pool.run(ticks=120)
    peak = len(pool.engines)

    pool.load = 0.0
    published = pool.run(ticks=120)

    assert published[0] == peak
    assert published[-1] == 1
