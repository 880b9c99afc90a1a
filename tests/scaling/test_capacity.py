"""What a replica carries: slowly raised by what came in time, fast lowered by what is late."""

import math

import pytest

from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Seconds
from adapter.scaling.capacity import LEAST, learned_in_flight
from adapter.scaling.progress import judge
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.state import ScalingState
from adapter.scaling.view import View, look
from tests.build import T0, a_fleet, a_histogram, a_reading, a_replica, serving, silent

TWO_SECONDS = TtftSection(objective="2s", quantile=0.95)
TICK = 15.0

WELL = 0.4
NEARLY = 1.8
LATE = 3.0


def seen(fleet: FleetSnapshot, *, target: float = 16) -> View:
    return look(judge(fleet, {}), ScalingState(), lead=Seconds(240.0), target=target)


def ran(
    name: str,
    first_token: float | None,
    *,
    running: float = 40,
    before: float = 40,
    waiting: float = 0,
    waited: float | None = None,
    phase: Phase = Phase.SERVING,
    tick: float = TICK,
) -> Replica:
    """Return a replica whose first tokens between the readings all took ``first_token``."""
    none, ten = a_histogram([]), a_histogram([] if first_token is None else [first_token] * 10)
    past = a_reading(
        at=T0 - tick,
        running=before,
        waiting=waiting if waited is None else waited,
        ttft=none,
    )
    now = a_reading(running=running, waiting=waiting, ttft=ten)
    return a_replica(name, phase=phase, sample=now, previous=past)


def learned(
    *replicas: Replica, known: float | None = 20.0, ttft: TtftSection | None = TWO_SECONDS
) -> float | None:
    return learned_in_flight(known, seen(a_fleet(*replicas)), ttft=ttft)


def test_the_target_rises_to_what_is_carried_in_time() -> None:
    """A tick of 15 s counts 2.5 % against the 600 s before it: 20 becomes 20.5 on the way to 40."""
    assert learned(ran("a", WELL)) == pytest.approx(20 + 20 * (1 - math.exp(-15 / 600)))


def test_before_anything_was_learned_it_rises_from_the_target_in_use() -> None:
    view = seen(a_fleet(ran("a", WELL)), target=30)

    rising = learned_in_flight(None, view, ttft=TWO_SECONDS)

    assert rising == pytest.approx(30 + 10 * (1 - math.exp(-15 / 600)))
    assert learned(ran("a", WELL, running=9, before=9), known=None) is None


def test_one_lesson_moves_it_towards_twice_as_much_at_the_most() -> None:
    assert learned(ran("a", WELL, running=900, before=900)) == learned(ran("a", WELL))


def test_it_rises_to_the_median_of_those_that_carry_more() -> None:
    others = (ran("b", WELL, running=24, before=24), ran("c", WELL, running=3, before=3))
    expected = 20 + (32 - 20) * (1 - math.exp(-15 / 600))

    assert learned(ran("a", WELL), *others) == pytest.approx(expected)


@pytest.mark.parametrize(
    "replica",
    [
        ran("a", WELL, running=18, before=18),
        ran("a", WELL, running=60, before=20),
        ran("a", WELL, running=20, before=60),
        ran("a", NEARLY),
        ran("a", NEARLY, waiting=5),
        ran("a", WELL, waiting=5, running=20, before=20),
        ran("a", LATE),
        ran("a", LATE, waiting=5, waited=0),
        ran("a", LATE, waiting=0, waited=5),
        ran("a", LATE, waiting=5, running=0, before=0),
        ran("a", None),
        ran("a", WELL, tick=0.0),
        ran("a", WELL, phase=Phase.WARMING),
        ran("a", LATE, waiting=9, phase=Phase.WARMING),
        ran("a", WELL, phase=Phase.DRAINING),
        silent(1)[0],
        serving(1, running=40)[0],
    ],
    ids=[
        "less than known",
        "a burst that came",
        "a burst that went",
        "in time without a margin",
        "a queue, in time all the same",
        "a queue behind a long prompt",
        "late without a queue: a long prompt",
        "queue just began",
        "queue is gone",
        "a queue before an empty batch",
        "nobody got a first token",
        "the same reading again",
        "warming and fast",
        "warming and slow",
        "draining",
        "silent",
        "first reading",
    ],
)
def test_what_teaches_nothing(replica: Replica) -> None:
    assert learned(replica) == 20.0


def test_a_queue_with_late_first_tokens_halves_it_within_minutes() -> None:
    """One minute of it takes 0.5 x (1 - 1/e) = 32 %, however many ran meanwhile."""
    late = learned(ran("a", LATE, waiting=9, running=200, tick=60.0))

    assert late == pytest.approx(20 * (1 - 0.5 * (1 - math.exp(-1))))


def test_late_replicas_count_by_their_share_and_nobody_raises_meanwhile() -> None:
    """One of four may have met a long prompt: it weighs a quarter of what all four would."""
    others = [ran(name, WELL, waiting=3) for name in "bcd"]
    one = learned(ran("a", LATE, waiting=9), *others)

    assert one == pytest.approx(20 * (1 - 0.5 * (1 - math.exp(-15 / 4 / 60))))


def test_a_replica_with_a_skewed_queue_teaches_nothing() -> None:
    """Ten wait at one and nobody elsewhere: the router's fault, not the target's."""
    calm = [ran(name, WELL, running=2, before=2) for name in "bcd"]

    assert learned(ran("a", LATE, waiting=10), *calm) == 20.0


def test_an_objective_that_cannot_be_met_never_orders_a_replica_per_request() -> None:
    known: float | None = 20.0
    for _ in range(1000):
        known = learned(ran("a", LATE, waiting=9), known=known)

    assert known == LEAST
    assert learned(ran("a", LATE, waiting=9), known=2.5) == 2.5


def test_it_keeps_clear_of_a_level_that_is_late_for_a_tenth_of_the_time() -> None:
    """Of 40 in flight that are late in one tick of ten, 28 to 31 are kept, from either side."""
    for known in (8.0, 60.0):
        target: float | None = known
        for tick in range(400):
            late, well = ran("a", LATE, waiting=9), ran("a", WELL)
            target = learned(late if tick % 10 == 0 else well, known=target)

        assert target is not None
        assert 27.5 < target < 31.5


@pytest.mark.parametrize("ttft", [None, TWO_SECONDS], ids=["signal off", "no first tokens"])
def test_where_first_tokens_tell_nothing_the_queue_alone_teaches(ttft: TtftSection | None) -> None:
    token = LATE if ttft is None else None
    replica = ran("a", token, waiting=9)

    assert learned(replica, known=None, ttft=ttft) == 40
    assert learned(replica, ttft=ttft) == pytest.approx(20 + 20 * (1 - math.exp(-15 / 120)))


def test_a_queue_alone_moves_it_towards_half_at_the_most() -> None:
    replica = ran("a", None, waiting=9, running=1, before=1)

    assert learned(replica) == pytest.approx(20 - 10 * (1 - math.exp(-15 / 120)))


def test_the_same_reading_again_is_no_first_lesson() -> None:
    assert learned(ran("a", None, waiting=9, tick=0.0), known=None) is None


def test_late_ones_are_believed_before_those_that_only_have_a_queue() -> None:
    late = ran("a", LATE, waiting=9)
    queued = ran("b", None, waiting=9)

    assert learned(late, queued) == pytest.approx(20 * (1 - 0.5 * (1 - math.exp(-7.5 / 60))))


@pytest.mark.parametrize(("objective", "rises"), [("900ms", True), ("700ms", False)])
def test_what_is_in_time_follows_the_objective(objective: str, *, rises: bool) -> None:
    """Ten in the bucket up to 0.5 s have their 80th percentile at 0.4 s; half of 0.9 is 0.45."""
    promise = TtftSection(objective=objective, quantile=0.8)
    target = learned(ran("a", WELL), ttft=promise)

    assert target is not None
    assert (target > 20.0) is rises
