"""What a replica carries: found by carrying it, by the size of the pool, and never by guessing."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.metrics import Metric
from adapter.fleet.snapshot import Replica
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.evaluate import evaluate
from adapter.scaling.state import ScalingState, Sustained, WorkSlice
from adapter.scaling.sustained import (
    ALONE,
    FORGOTTEN,
    PACE,
    PLANNED,
    RISE,
    SMALLER,
    TOLERATED,
    class_of,
    edge_of,
    learned,
    replicas_for,
)
from tests.build import T0, a_fleet, a_histogram, a_reading, a_replica, a_spec, silent

KNOWN = {3: Sustained(10_000.0, T0)}
"""Pools of five to eight carry 10,000 at the edge: 9,000 planned."""


def a_minute(
    rate: float, *, slow: float = 0.0, first: float = 600.0, serving: int = 6
) -> tuple[WorkSlice, ...]:
    """Return a minute in which each of ``serving`` replicas did ``rate``."""
    replica_seconds = 30.0 * serving
    one = WorkSlice(
        T0, seconds=30.0, arrived=300.0, finished=300.0, prompt=rate * replica_seconds,
        output=0.0, first=first / 2, slow=slow * first / 2, replica_seconds=replica_seconds,
    )  # fmt: skip
    return (one, replace(one, start=Timestamp(T0 + 30.0)))


def after(
    rate: float, *, slow: float = 0.0, known=KNOWN, serving: int = 6, excused: bool = False, **more
) -> float:
    """Return the edge of the pool's size after one tick of 5 s."""
    rates = learned(
        known,
        a_minute(rate, slow=slow, serving=serving, **more),
        at=T0,
        seconds=Seconds(5.0),
        serving=serving,
        excused=excused,
    )
    return rates[class_of(serving)].edge if class_of(serving) in rates else math.nan


@pytest.mark.parametrize(
    ("replicas", "size"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (9, 4)]
)
def test_pools_of_like_size_are_one_class(replicas, size):
    assert class_of(replicas) == size


def test_near_the_plan_with_few_slow_ones_the_rate_rises():
    assert after(8_500.0) == pytest.approx(10_000 * math.exp(5 / PACE * TOLERATED))


def test_the_more_are_slow_the_less_it_rises():
    assert 10_000 < after(8_500.0, slow=0.02) < after(8_500.0)
    assert after(8_500.0, slow=TOLERATED) == pytest.approx(10_000)


def test_far_from_the_plan_few_slow_ones_prove_nothing():
    """Half the plan is easily carried."""
    assert after(4_500.0) == 10_000.0


def test_within_the_plan_more_slow_ones_lower_it():
    assert after(8_500.0, slow=0.53) == pytest.approx(10_000 * math.exp(-5 / PACE * 0.5))
    assert after(3_000.0, slow=0.53) < 10_000


def test_what_was_carried_beyond_the_plan_is_proof():
    risen = 9_000 + 3_000 * (1 - math.exp(-5 / RISE))

    assert after(12_000.0) == pytest.approx(
        risen * math.exp(5 / PACE * TOLERATED) / PLANNED, rel=1e-9
    )


def test_beyond_the_plan_slow_ones_are_no_surprise():
    assert after(9_500.0, slow=0.9) == 10_000.0


def test_slow_ones_of_a_backlog_are_excused():
    assert after(5_000.0, slow=0.9, excused=True) == 10_000.0


def test_the_first_lesson_is_what_is_done_now():
    assert after(4_500.0, known={}) == pytest.approx(5_000.0)
    assert after(4_500.0, slow=0.5, known={}) == pytest.approx(2_500.0)


@pytest.mark.parametrize("first", [0.0, 10.0])
def test_too_few_first_tokens_teach_nothing(first):
    assert after(9_500.0, first=first) == 10_000.0


def test_an_idle_fleet_and_an_empty_one_teach_nothing():
    assert after(0.0) == 10_000.0
    assert math.isnan(after(9_500.0, serving=0, known={}))


def test_what_was_not_met_for_a_day_is_forgotten():
    old = {0: Sustained(5_000.0, Timestamp(T0 - FORGOTTEN)), **KNOWN}

    rates = learned(old, (), at=T0, seconds=Seconds(5.0), serving=6, excused=False)

    assert rates == KNOWN


def test_a_larger_pool_carries_at_least_as_much_per_replica():
    assert edge_of(KNOWN, 5) == 10_000.0
    assert edge_of({**KNOWN, 4: Sustained(9_000.0, T0)}, 4) == 10_000.0


def test_a_smaller_pool_that_was_not_seen_is_taken_to_carry_less():
    assert edge_of(KNOWN, 2) == pytest.approx(10_000 * SMALLER)
    assert edge_of(KNOWN, 0) == pytest.approx(10_000 * SMALLER * SMALLER * ALONE)


def test_before_any_lesson_nothing_is_known():
    assert edge_of({}, 2) is None
    assert replicas_for(50_000.0, {}, 0.9) is None


def test_a_rate_needs_so_many_replicas_as_their_pool_carries():
    assert replicas_for(54_000.0, KNOWN, 0.9) == pytest.approx(6.0)
    assert replicas_for(54_000.0, KNOWN, 0.8) == pytest.approx(6.75)
    assert replicas_for(200_000.0, KNOWN, 1.0) == pytest.approx(20.0)
    assert replicas_for(0.0, KNOWN, 0.9) == 0.0


def test_where_the_smaller_pool_does_not_carry_it_the_least_of_the_next_does():
    """34,000 at the edge: four carry 8,500 each, which is all of it; a little more takes five."""
    assert replicas_for(34_000.0, KNOWN, 1.0) == pytest.approx(4.0)
    need = replicas_for(34_100.0, KNOWN, 1.0)

    assert need is not None
    assert math.ceil(need) == 5


@given(
    rates=st.dictionaries(
        st.integers(0, 6), st.floats(1.0, 1e6).map(lambda e: Sustained(e, T0)), min_size=1
    ),
    rate=st.floats(0.0, 1e7),
    more=st.floats(1.0, 3.0),
    headroom=st.floats(0.1, 1.0),
)
def test_more_work_never_needs_fewer_replicas(rates, rate, more, headroom):
    less, larger = replicas_for(rate, rates, headroom), replicas_for(rate * more, rates, headroom)

    assert less is not None
    assert larger is not None
    assert 0.0 <= less <= larger
    assert math.isfinite(larger)


@given(
    rate=st.floats(0.0, 1e6),
    slow=st.floats(0.0, 1.0),
    serving=st.integers(0, 40),
    excused=st.booleans(),
    seconds=st.floats(0.0, 60.0),
)
def test_a_lesson_moves_the_rate_by_little_and_keeps_it_above_zero(
    rate, slow, serving, excused, seconds
):
    """A tick of a minute: at most a tenth of the way to what was done, or a fifth down."""
    before = edge_of(KNOWN, class_of(serving))
    rates = learned(
        KNOWN, a_minute(rate, slow=slow, serving=max(1, serving)), at=T0, seconds=Seconds(seconds),
        serving=serving, excused=excused,
    )  # fmt: skip
    now = edge_of(rates, class_of(serving))

    assert before is not None
    assert now is not None
    assert 0.8 * before < now < max(1.1 * before, before + 0.12 * rate)


def a_server(name: str, at: float, *, version: str = "v1", done: float = 9_000.0) -> Replica:
    """Return a replica that did ``done`` prompt tokens and finished nine requests in 5 s."""
    ticks = (at - T0) / 5.0 + 1.0
    now, before = ({
        Metric.PROMPT_TOKENS: done * count,
        Metric.GENERATION_TOKENS: count,
        Metric.REQUESTS_FINISHED: 9.0 * count,
    } for count in (ticks, ticks - 1.0))  # fmt: skip
    sample = a_reading(at=at, running=6, more=now, ttft=a_histogram([0.4] * round(9 * ticks)))
    previous = a_reading(
        at=at - 5.0, running=6, more=before, ttft=a_histogram([0.4] * round(9 * (ticks - 1)))
    )
    return a_replica(name, version=version, sample=sample, previous=previous)


def played(ticks: int, *versions: str, state: ScalingState | None = None, start: float = T0):
    """Return decision and state after ``ticks`` of a fleet with one replica per version."""
    spec = a_spec(replicas={"min": 1, "max": 40})
    known = state or ScalingState()
    decision = None
    for tick in range(ticks):
        at = start + 5.0 * tick
        servers = (a_server(f"r{n}", at, version=v) for n, v in enumerate(versions))
        decision, known = evaluate(spec, a_fleet(*servers, at=at), known)
    return decision, known


def test_the_decision_says_the_work_the_rate_and_the_pool():
    decision, _ = played(30, "v1", "v1", "v1")

    queue = decision.demands[0]
    assert "requests/s x 1000 tokens of work over" in queue.because
    assert queue.because.endswith("per replica in a pool of 3")
    assert queue.evidence["work_per_request"] == pytest.approx(1000.0, rel=1e-3)


def test_a_configured_target_is_taken_instead_of_what_was_learned():
    _, state = played(30, "v1", "v1")
    spec = a_spec(signals={"queue": {"targetInFlight": 4, "headroom": 1.0}})

    decision, _ = evaluate(spec, a_fleet(a_server("r0", T0 + 200.0), at=T0 + 200.0), state)

    assert "6 in flight / (4 x 1)" in decision.demands[0].because


def test_another_version_begins_anew():
    _, before = played(30, "v1", "v1")
    _, after_release = played(1, "v2", "v2", state=before, start=T0 + 150.0)

    assert before.sustained
    assert (after_release.sustained, after_release.learned_on) == ({}, "v2")


def test_two_versions_together_teach_nothing():
    _, before = played(30, "v1", "v1")
    _, mixed = played(5, "v1", "v2", state=before, start=T0 + 150.0)

    assert mixed.sustained == before.sustained
    assert mixed.learned_on == "v1"


def test_a_silent_replica_lets_the_others_teach_nothing():
    _, before = played(30, "v1", "v1")
    at = T0 + 150.0
    fleet = a_fleet(a_server("r0", at), *silent(1), at=at)

    _, state = evaluate(a_spec(), fleet, before)

    assert state.sustained == before.sustained


def test_without_a_promised_first_token_nothing_is_learned():
    spec = a_spec(signals={"ttft": None})
    state = ScalingState()
    for tick in range(30):
        at = T0 + 5.0 * tick
        _, state = evaluate(spec, a_fleet(a_server("r0", at), at=at), state)

    assert state.sustained == {}


def test_being_asked_for_more_than_planned_is_remembered_as_an_excuse():
    _, state = played(30, "v1", "v1", "v1")
    few = a_fleet(a_server("r0", T0 + 150.0, done=27_000.0), at=T0 + 150.0)

    _, state = evaluate(a_spec(), few, state)

    assert state.asked_beyond_at == T0 + 150.0


def test_a_policy_without_a_queue_signal_is_never_asked_beyond():
    spec = a_spec(signals={"queue": None})
    _, state = evaluate(spec, a_fleet(a_server("r0", T0)), ScalingState())

    assert state.asked_beyond_at is None
