from contextlib import aclosing

import pytest

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.deployment import Deployment
from adapter.cli.demonstration.users import Users
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.starts import LoadTimes
from adapter.simulator.workload import Arrival
from tests.build import T0
from tests.fakes import FakeClock


@pytest.fixture
def clock():
    return FakeClock()


@pytest.fixture
async def deployment(clock):
    deployment = Deployment(
        "llama",
        model=scene.MODEL,
        preset=scene.PRESET,
        load_times=LoadTimes(Seconds(75.0), seed=1),
        clock=clock,
    )
    async with aclosing(deployment):
        yield deployment


def users(deployment: Deployment, *arrivals: tuple[float, int, int]) -> Users:
    given = (Arrival(Seconds(at), prompt, output) for at, prompt, output in arrivals)
    return Users(given, begin=T0, deployment=deployment)


def after(seconds: float) -> Timestamp:
    return Timestamp(T0 + seconds)


async def test_each_request_goes_to_the_pod_with_the_fewest_in_flight(deployment):
    await deployment.open(3)

    users(deployment, *[(0.1, 500, 400)] * 6).advance(after(1))

    assert [pod.engine.in_flight for pod in deployment.pods] == [2, 2, 2]


async def test_a_request_that_has_not_arrived_is_not_sent(deployment):
    await deployment.open(1)
    late = users(deployment, (0.1, 500, 400), (5.0, 500, 400))

    late.advance(after(1))
    assert late.traffic(after(1)).in_flight == 1

    late.advance(after(6))
    assert late.traffic(after(6)).in_flight == 2


async def test_first_tokens_in_time_are_good(deployment):
    await deployment.open(1)
    few = users(deployment, *[(0.1 * n, 500, 40) for n in range(10)])

    few.advance(after(5))

    assert (few.judged, few.good) == (10, 10)
    assert few.traffic(after(5)).ttft_p95 == pytest.approx(0.1, abs=0.1)


async def test_a_flood_is_served_and_not_in_time(deployment):
    """60 prompts of 8,000 tokens at once: about 0.6 s of prefill each, allowed are 3.2 s."""
    await deployment.open(1)
    flood = users(deployment, *[(0.1, 8000, 4)] * 60)

    flood.advance(after(120))

    assert flood.judged == 60
    assert 3 <= flood.good <= 10
    assert flood.traffic(after(40)).ttft_p95 > 20


async def test_without_a_serving_pod_the_users_wait_and_their_time_runs(deployment, clock):
    """Nobody serves for 10 s: two requests count as in flight, and both are late in the end."""
    waiting = users(deployment, (1.0, 500, 40), (2.0, 500, 40))
    waiting.advance(after(10))
    assert waiting.traffic(after(10)).in_flight == 2
    assert waiting.traffic(after(10)).ttft_p95 is None
    assert waiting.traffic(after(10)).kv_usage == 0

    clock.pass_by(10)
    await deployment.open(1)
    waiting.advance(after(12))

    assert (waiting.judged, waiting.good) == (2, 0)


async def test_in_the_end_the_overdue_count_as_missed_and_the_open_do_not(deployment):
    """At 10 s the first is 9 s old and overdue, the second arrived half a second ago."""
    waiting = users(deployment, (1.0, 500, 40), (9.5, 500, 40))
    waiting.advance(after(10))

    waiting.give_up(after(10))

    assert (waiting.judged, waiting.good) == (1, 0)


async def test_the_load_is_of_the_last_minute(deployment):
    """One a second for 90 s is 1.0/s; a minute of silence later it is none."""
    await deployment.open(1)
    steady = users(deployment, *[(float(n), 100, 4) for n in range(91)])

    steady.advance(after(90))
    assert steady.traffic(after(90)).load == pytest.approx(1.0, abs=0.02)

    steady.advance(after(151))
    assert steady.traffic(after(151)).load == 0
    assert steady.traffic(after(151)).ttft_p95 is None


async def test_a_draining_pod_gets_nothing_new_but_works_on(deployment):
    await deployment.open(2)
    some = users(deployment, *[(0.1, 500, 400)] * 4, *[(2.0, 500, 400)] * 4)
    some.advance(after(1))
    deployment.set_replicas(1)

    some.advance(after(3))

    (draining,) = deployment.phase(Phase.DRAINING)
    (serving,) = deployment.phase(Phase.SERVING)
    assert draining.engine.in_flight == 2
    assert serving.engine.in_flight == 6
    assert some.judged == 8
