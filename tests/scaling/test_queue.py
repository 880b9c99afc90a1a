"""The queue signal: work in hand over what a replica carries, never more than arrivals need."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.snapshot import FleetSnapshot, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.capacity import learned_in_flight
from adapter.scaling.demand import Demand
from adapter.scaling.progress import Judged, judge
from adapter.scaling.signals.queue import QueueSection, target_in_flight
from adapter.scaling.state import RatePoint, ScalingState
from adapter.scaling.view import View, look, skew_limit
from tests.build import T0, a_fleet, a_reading, a_replica, loading, serving, silent

TEN = QueueSection(target_in_flight=10, headroom=1)


def seen(
    fleet: FleetSnapshot,
    *,
    state: ScalingState | None = None,
    target: float = 10,
    judged: Judged | None = None,
) -> View:
    """Return the facts of ``fleet`` with a lead time of four minutes."""
    return look(
        judged or judge(fleet, {}),
        state or ScalingState(),
        lead=Seconds(240.0),
        target=target,
    )


def asked(fleet: FleetSnapshot, **more: object) -> Demand:
    return TEN.demand(seen(fleet, **more))  # type: ignore[arg-type]


def test_running_and_waiting_count_alike() -> None:
    demand = asked(a_fleet(*serving(2, running=8, waiting=7)))

    assert demand.replicas == 3.0
    assert demand.floor is None
    assert demand.because == "30 in flight / (10 x 1) per replica"
    assert demand.evidence["waiting_requests"] == 14


def test_headroom_plans_with_a_part_of_the_target() -> None:
    section = QueueSection(target_in_flight=10, headroom=0.5)

    assert section.demand(seen(a_fleet(*serving(1, running=10)))).replicas == 2.0


@pytest.mark.parametrize(
    "phase", [Phase.WARMING, Phase.DRAINING, Phase.STALLED, Phase.ISOLATED, Phase.LOADING]
)
def test_work_at_a_replica_that_is_no_capacity_is_demand(phase: Phase) -> None:
    fleet = a_fleet(*serving(1, running=10), a_replica("z", phase=phase, running=5, waiting=5))

    assert asked(fleet).replicas == 2.0


def test_idle_is_a_number_and_that_number_is_zero() -> None:
    """Gauges that are there and flat prove that nobody asks; they are no gap."""
    demand = asked(a_fleet(*serving(3)))

    assert demand.replicas == 0.0
    assert not demand.blocks_down


def test_silent_replicas_are_average_on_the_way_up_and_busy_on_the_way_down() -> None:
    light = asked(a_fleet(*serving(2, running=2), *silent(2)))
    heavy = asked(a_fleet(*serving(2, running=20), *silent(2)))

    assert light.replicas == pytest.approx(0.4 + 0.4)
    assert light.floor == pytest.approx(0.4 + 2)
    assert heavy.replicas == pytest.approx(4 + 4)
    assert heavy.floor == pytest.approx(4 + 4)
    assert light.because.endswith("; 2 silent replicas as the average of 2")


def test_a_reading_without_a_number_that_the_engine_has_is_silence() -> None:
    broken = a_replica("z", running=1, waiting=None, missing={Metric.REQUESTS_WAITING: "NaN"})

    demand = asked(a_fleet(*serving(1, running=10), broken))

    assert demand.floor == 2.0


def test_when_everyone_is_silent_nobody_can_tell() -> None:
    demand = asked(a_fleet(*silent(3)))

    assert demand.replicas is None
    assert demand.blocks_down


def test_a_warming_replica_alone_cannot_tell() -> None:
    """Engines export zeros for up to 18 s before they mean them (vllm#49538)."""
    demand = asked(a_fleet(a_replica("w", phase=Phase.WARMING)))

    assert demand.replicas is None
    assert demand.blocks_down


def test_stalled_replicas_alone_tell_what_they_hold() -> None:
    demand = asked(a_fleet(a_replica("z", phase=Phase.STALLED, running=20), *silent(1)))

    assert demand.replicas == 3.0


def test_an_engine_that_exports_no_load_is_a_fact_about_the_policy() -> None:
    never = (Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING, Metric.REQUEST_SECONDS)
    fleet = a_fleet(*serving(2, running=None, waiting=None, unserved=never))

    demand = asked(fleet)

    assert demand.unserved
    assert not demand.blocks_down


def test_the_load_of_an_engine_without_gauges_for_one_half_is_the_other_half() -> None:
    queue = serving(
        1,
        prefix="q",
        waiting=10,
        running=None,
        unserved=(Metric.REQUESTS_RUNNING, Metric.REQUEST_SECONDS),
    )
    batch = serving(1, prefix="r", waiting=None, running=10, unserved=(Metric.REQUESTS_WAITING,))

    assert asked(a_fleet(*queue)).replicas == 1.0
    assert asked(a_fleet(*batch)).replicas == 1.0


def triton(
    *, busy: float, seconds: float = 5.0, waiting: float = 0, finished: float = 9
) -> FleetSnapshot:
    """Return one Triton that finished requests of ``busy`` seconds in all since the last tick."""
    before, now = (
        a_reading(
            at=T0 - seconds * back,
            engine="triton",
            running=None,
            waiting=waiting,
            unserved=(Metric.REQUESTS_RUNNING,),
            more={
                Metric.REQUEST_SECONDS: 100 + busy * (1 - back),
                Metric.REQUESTS_FINISHED: 10 + finished * (1 - back),
            },
        )
        for back in (1, 0)
    )
    return a_fleet(a_replica("t", sample=now, previous=before))


def test_littles_law_tells_the_load_of_an_engine_without_a_running_gauge() -> None:
    """100 request-seconds in 5 s are 20 in flight on average, and 10 more wait."""
    assert asked(triton(busy=100, waiting=10)).replicas == 3.0


def test_littles_law_looks_at_the_last_minute_because_durations_come_in_lumps() -> None:
    """A request of 60 s that ends in a tick of 5 s is one in flight, not twelve."""
    quiet = [RatePoint(Timestamp(T0 - 5.0 * n), 5.0, 0.0, 0.0, 1, queued=False) for n in (11, 1)]
    past = [quiet[0]] * 10 + [quiet[1]]

    demand = asked(triton(busy=60), state=ScalingState(rates=tuple(past)))

    assert demand.replicas == pytest.approx(0.1)


@pytest.mark.parametrize(
    "sample",
    [
        a_reading(engine="triton", running=None, unserved=(Metric.REQUESTS_RUNNING,),
                  more={Metric.REQUEST_SECONDS: 1}),
        a_reading(engine="triton", running=None, unserved=(Metric.REQUESTS_RUNNING,),
                  missing={Metric.REQUEST_SECONDS: "no series"}),
    ],
)  # fmt: skip
def test_littles_law_needs_two_readings(sample: object) -> None:
    demand = asked(a_fleet(a_replica("t", sample=sample)))  # type: ignore[arg-type]

    assert demand.replicas is None
    assert demand.blocks_down


def test_littles_law_without_request_counts_takes_the_last_tick() -> None:
    fleet = triton(busy=50)
    for reading in (fleet.replicas[0].reading, fleet.replicas[0].previous):
        assert reading is not None
        for values in (reading.values, reading.ranks[""].values):
            values.pop(Metric.REQUESTS_FINISHED, None)  # type: ignore[attr-defined]

    assert asked(fleet).replicas == 1.0


def test_a_reading_that_does_not_move_in_time_tells_no_rate() -> None:
    assert asked(triton(busy=50, seconds=0.0)).blocks_down


# --- skew


@pytest.mark.parametrize(
    ("queues", "limit"),
    [
        ([40.0], float("inf")),
        ([40.0, 0.0], 4.0),
        ([40.0, 0.0, 0.0, 0.0], 4.0),
        ([40.0, 40.0, 0.0, 0.0], 4.0),
        ([10.0, 10.0, 10.0, 10.0], 30.0),
        ([40.0, 40.0, 40.0, 0.0], 120.0),
    ],
)
def test_what_waits_at_few_is_skew_and_what_waits_at_most_is_load(
    queues: list[float], limit: float
) -> None:
    assert skew_limit(queues) == limit


def test_a_stuck_queue_is_no_demand() -> None:
    fleet = a_fleet(*serving(1, running=10), a_replica("z", phase=Phase.STALLED, waiting=213))
    judged = Judged(fleet, judge(fleet, {}).works, {}, frozenset({"z"}))

    assert asked(fleet, judged=judged).replicas == 1.0


# --- arrivals


def pool(
    *, waiting: float, finished: float, grew: float = 0.0, running: float = 10
) -> FleetSnapshot:
    """Return one replica after a tick of ten seconds."""
    before = a_reading(
        at=T0 - 10.0, running=running, waiting=waiting - grew,
        more={Metric.REQUESTS_FINISHED: 0},
    )  # fmt: skip
    now = a_reading(running=running, waiting=waiting, more={Metric.REQUESTS_FINISHED: finished})
    return a_fleet(a_replica("a", sample=now, previous=before))


def test_a_backlog_asks_for_what_its_arrivals_need_and_a_part_more() -> None:
    """100 finished and 100 more in flight in 10 s: 20/s over 10/s, and 960 s to drain 480."""
    demand = asked(pool(waiting=480, finished=100, grew=100))

    assert demand.replicas == pytest.approx(20 / 10 + 480 / 10 / 960)
    assert "20 requests/s over 10 per replica" in demand.because
    assert "would be 49.0" in demand.because


def test_evidence_only_lowers_the_naive_number() -> None:
    """Much arrives and little waits: what is in flight is the answer."""
    demand = asked(pool(waiting=10, finished=10, grew=10))

    assert demand.replicas == 2.0


@pytest.mark.parametrize("finished", [0, 9])
def test_counters_that_stand_still_prove_nothing(finished: float) -> None:
    assert asked(pool(waiting=480, finished=finished)).replicas == 49.0


def test_what_runs_is_needed_whatever_the_rates_say() -> None:
    """First sight of a queue: 30 running are three replicas, though one keeps up."""
    assert asked(pool(waiting=5, finished=100, running=30)).replicas == 3.0


def test_once_capacity_is_known_a_full_batch_is_one_replica() -> None:
    """A queue fills every batch; that must not order replicas by itself while it drains."""
    queued = RatePoint(Timestamp(T0 - 20.0), 10.0, 100.0, 100.0, 1, queued=True)

    demand = asked(pool(waiting=5, finished=100, running=30), state=ScalingState(rates=(queued,)))

    assert demand.replicas == pytest.approx(1.0 + 5 / 10 / 960, abs=1e-6)


def test_rates_older_than_two_minutes_say_nothing() -> None:
    old = RatePoint(Timestamp(T0 - 121.0), 10.0, 100.0, 100.0, 1, queued=True)

    view = seen(pool(waiting=0, finished=100, running=30), state=ScalingState(rates=(old,)))

    assert view.flow is not None
    assert not view.flow.settled
    assert not view.queued_lately
    assert len(view.rates) == 1


def test_capacity_is_read_from_the_latest_queueing() -> None:
    """Twice as long prompts halve what a replica does; half a minute of that is enough."""
    points = tuple(
        RatePoint(Timestamp(T0 - 10.0 * n), 10.0, 100.0, 200.0 if n > 4 else 100.0, 1, queued=True)
        for n in range(10, 0, -1)
    )

    view = seen(pool(waiting=5, finished=100), state=ScalingState(rates=points))

    assert view.flow is not None
    assert view.flow.capacity == pytest.approx(10.0)


def test_the_present_tick_does_not_change_a_capacity_that_is_known() -> None:
    """Else one more waiting request could turn a slow tick into evidence, and ask for fewer."""
    queued = RatePoint(Timestamp(T0 - 10.0), 10.0, 100.0, 100.0, 1, queued=True)

    view = seen(pool(waiting=5, finished=200), state=ScalingState(rates=(queued,)))

    assert view.flow is not None
    assert view.flow.capacity == pytest.approx(10.0)


def test_requests_that_were_given_up_are_no_negative_arrivals() -> None:
    """25 aborts are counted nowhere (vllm#31503): the load does not fall below nothing."""
    view = seen(pool(waiting=0, finished=0, grew=-25))

    assert view.rates[0].arrived_requests == 0.0


def test_a_burst_counts_at_once() -> None:
    """Arrivals are the larger of the last ten seconds' and the last minute's mean."""
    calm = tuple(
        RatePoint(Timestamp(T0 - 10.0 * n), 10.0, 10.0, 10.0, 1, queued=True)
        for n in range(6, 0, -1)
    )

    view = seen(pool(waiting=400, finished=100, grew=400), state=ScalingState(rates=calm))

    assert view.flow is not None
    assert view.flow.arriving == pytest.approx(50.0)


def test_loading_replicas_tell_no_rate() -> None:
    assert seen(a_fleet(*serving(1), *loading(2))).flow is None


# --- the target


def test_the_target_is_configured_learned_or_the_prior() -> None:
    assert target_in_flight(QueueSection(target_in_flight=8), 31.0) == 8
    assert target_in_flight(QueueSection(), 31.0) == 31.0
    assert target_in_flight(QueueSection(), None) == 16.0
    assert target_in_flight(None, None) == 16.0


def queueing(running: float, *, waiting: float = 4, before: float = 5) -> FleetSnapshot:
    past = a_reading(at=T0 - 10.0, running=running, waiting=before)
    now = a_reading(running=running - 1, waiting=waiting)
    return a_fleet(a_replica("a", sample=now, previous=past), *serving(3, running=1))


def test_the_target_is_learned_from_replicas_that_have_a_queue() -> None:
    """The first lesson stands; later ones move it over minutes, by a factor of two at a time."""
    view = seen(queueing(40))

    assert learned_in_flight(None, view) == 40
    assert learned_in_flight(40.0, view) == 40
    assert learned_in_flight(10.0, view) == pytest.approx(10 + 10 * (1 - 2.718281828 ** (-1 / 12)))


@pytest.mark.parametrize(
    "fleet",
    [
        queueing(40, before=0),
        queueing(40, waiting=0),
        queueing(40, waiting=5),
        a_fleet(*serving(2, running=40, waiting=9)),
        a_fleet(a_replica("w", phase=Phase.WARMING, running=40, waiting=9)),
        a_fleet(*silent(2)),
    ],
    ids=["queue just began", "queue is gone", "skewed", "first reading", "warming", "silent"],
)
def test_who_teaches_nothing(fleet: FleetSnapshot) -> None:
    assert learned_in_flight(None, seen(fleet)) is None
    assert learned_in_flight(7.0, seen(fleet)) == 7.0


def test_a_batch_of_none_is_no_lesson() -> None:
    """A queue before an empty batch is a stall in the making, not a capacity of zero."""
    past = a_reading(at=T0 - 10.0, running=0, waiting=5)
    now = a_reading(running=0, waiting=5)

    view = seen(a_fleet(a_replica("a", sample=now, previous=past)))

    assert learned_in_flight(None, view) is None
