"""Single requests: the product's own loop in a world, and what is written down of it."""

import pytest

from adapter.controller.ports import FleetSource
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest import requests
from adapter.simulator.backtest.load import Requests
from adapter.simulator.workload import Arrival
from tests.build import T0
from tests.simulator.backtest.plans import a_load, a_plan
from tests.simulator.worlds import ENGINE, a_policy


def test_a_light_hour_costs_a_replica_and_nobody_is_late():
    found = requests.play(a_plan(a_load(rate=1.0, length=3600.0)))

    assert found.mode == "requests"
    assert found.score.attainment > 0.999
    assert found.score.paid_hours >= 1
    assert found.score.seconds == 3600
    assert len(found.moments) == 61
    assert [moment.at - T0 for moment in found.moments[:2]] == [0, 60]


def test_no_policy_in_time_pays_less_than_the_bound():
    found = requests.play(a_plan(a_load(rate=12.0, length=1800.0)))

    assert found.score.attainment > 0.99
    assert found.ratio is not None
    assert found.ratio >= 1


def test_what_is_before_the_warm_up_is_neither_judged_nor_paid():
    plan = a_plan(a_load(rate=4.0, length=2400.0), warm_up=Seconds(1200.0))

    found = requests.play(plan)

    assert found.score.requests == pytest.approx(4800, rel=0.05)
    assert found.moments[0].at == T0 + 1200
    assert found.moments[0].paid_hours == 0
    assert found.moments[-1].paid_hours == pytest.approx(found.score.paid_hours)


def test_the_scale_multiplies_what_comes():
    once, twice = (
        requests.play(a_plan(a_load(rate=1.0, length=1200.0), scale=scale)) for scale in (1.0, 2.0)
    )

    assert twice.score.requests == pytest.approx(2 * once.score.requests, rel=0.15)


def test_an_advisory_policy_moves_the_fleet_all_the_same():
    plan = a_plan(a_load(rate=25.0, length=1200.0), policy=a_policy(most=10, mode="advisory"))

    found = requests.play(plan)

    assert found.most > found.asked[0][1]
    assert found.score.starts > 0


def test_requests_of_a_log_are_played_as_they_came():
    every = tuple(Arrival(Seconds(2.0 * n), 1000, 50) for n in range(300))
    load = Requests("log", T0, every, Seconds(600.0))

    found = requests.play(a_plan(load))

    assert found.score.requests == 300
    assert [window.requests for window in found.score.windows] == [300]


def test_what_no_engine_could_hold_is_a_miss():
    sizes = (1000, ENGINE.kv_tokens)
    every = tuple(Arrival(Seconds(10.0 * n), sizes[n % 2], 50) for n in range(60))

    found = requests.play(a_plan(Requests("log", T0, every, Seconds(600.0))))

    assert found.score.refused == 30
    assert found.score.attainment == 0.5


def test_progress_rises_to_the_end():
    told: list[float] = []

    requests.play(a_plan(a_load(length=1500.0)), told=told.append)

    assert told == sorted(told)
    assert told[-1] == 1.0


def test_something_may_stand_between_the_loop_and_what_it_sees():
    seen: list[FleetSnapshot] = []

    class Glass:
        def __init__(self, inner: FleetSource) -> None:
            self._inner = inner

        async def snapshot(self, at: Timestamp) -> FleetSnapshot:
            seen.append(await self._inner.snapshot(at))
            return seen[-1]

        async def close(self) -> None:
            await self._inner.close()

    requests.play(a_plan(a_load(length=300.0)), through=Glass)

    assert [fleet.at - T0 for fleet in seen[:3]] == [0, 15, 30]


def test_equal_seeds_give_equal_runs():
    plan = a_plan(a_load(rate=6.0, length=900.0, minute_sigma=0.07))

    one, two = requests.play(plan), requests.play(plan)

    assert (one.score, one.moments, one.asked) == (two.score, two.moments, two.asked)
