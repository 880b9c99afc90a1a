"""Missing data where somebody answers: a replica that warms is no outage to be refused for."""

import pytest

from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import WARMING_SECONDS, Phase, Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import ConditionType, Decision, HoldReason
from adapter.scaling.evaluate import evaluate
from adapter.scaling.state import ScalingState
from tests.build import T0, a_fleet, a_gap, a_replica, a_spec, later, loading, silent

PLAIN = {"queue": {"targetInFlight": 10, "headroom": 1}}


def remembering(published: int, *, ago: float) -> ScalingState:
    """Return the memory of a fleet whose last good data is ``ago`` seconds old."""
    return ScalingState(
        published=published,
        started_at=Timestamp(T0 - 86_400.0),
        good_at=Timestamp(T0 - ago),
        recommendations=((Timestamp(T0 - ago), published),),
    )


def warming(uid: str = "w", *, since: float = T0 - 10.0) -> Replica:
    """Return a replica that answers and has not made a token yet; T0 is 08:00:00 UTC."""
    return a_replica(uid, phase=Phase.WARMING, since=since)


def decide(*replicas: Replica, state: ScalingState, stale_after: str = "30s") -> Decision:
    spec = a_spec(signals=PLAIN, staleAfter=stale_after)
    return evaluate(spec, a_fleet(*replicas), state)[0]


def test_an_idle_engine_that_restarted_holds_the_count_and_says_until_when():
    """It answers every scrape; ``staleAfter`` is over, and no client has come yet."""
    decision = decide(warming(since=T0 - 25), state=remembering(3, ago=40))

    (hold,) = decision.holds
    assert (decision.refusal, decision.published) == (None, 3)
    assert (hold.reason, hold.until) == (HoldReason.METRICS_GAP, T0 - 25 + WARMING_SECONDS)
    assert hold.because == (
        "Missing: no replica of the target serves, 1 on its way; pod-w answers since 07:59:35Z: "
        "it counts as serving after its first token, or at 08:00:35Z"
    )
    ready = next(each for each in decision.conditions if each.type is ConditionType.READY)
    assert (ready.status, ready.reason) == (False, "Holding")
    assert ready.message.endswith("or at 08:00:35Z")


def test_of_several_that_warm_the_first_to_count_is_named():
    decision = decide(
        warming("b", since=T0 - 5), warming("c", since=T0 - 50), state=remembering(3, ago=90)
    )

    assert "pod-c answers since 07:59:10Z" in decision.holds[0].because
    assert decision.holds[0].until == T0 - 5 + WARMING_SECONDS


def test_a_hold_of_stale_after_is_not_shortened_by_one_that_warms():
    decision = decide(warming(since=T0 - 59), state=remembering(3, ago=1), stale_after="2m")

    assert decision.holds[0].until == T0 + 119


def test_it_helps_too_where_another_replica_is_silent_for_good():
    """Of two engines one is dead and one was restarted: the second will count in a minute."""
    dead = silent(1, detail="pod-x: no connection")

    decision = decide(*dead, warming(since=T0 - 10), state=remembering(2, ago=300))

    assert (decision.refusal, decision.published) == (None, 2)
    assert decision.holds[0].because == (
        "Error: 1 of 1 serving replicas: pod-x: no connection; pod-w answers since 07:59:50Z: "
        "it counts as serving after its first token, or at 08:00:50Z"
    )


@pytest.mark.parametrize(
    "replica",
    [
        *loading(1),
        a_replica("w", phase=Phase.WARMING, sample=a_gap(Cause.TIMEOUT)),
        a_replica("l", phase=Phase.LOADING, since=T0 - 5),
        a_replica("n", phase=Phase.WARMING, since=None),
    ],
    ids=["loading", "warming and silent", "loading and answering", "since nobody knows when"],
)
def test_what_may_never_come_to_count_ends_no_refusal(replica: Replica):
    """Only warming has an end: a pod that the cluster calls loading may answer for ever."""
    decision = decide(replica, state=remembering(3, ago=31))

    assert decision.refusal is not None
    assert decision.refusal.startswith("stale: last sample 31 s old, spec.staleAfter is 30s; ")


def test_without_a_count_to_hold_the_refusal_says_when_there_will_be_one():
    decision = decide(warming(), state=ScalingState())

    assert decision.refusal == (
        "no data yet: no replica of the target serves, 1 on its way; pod-w answers since "
        "07:59:50Z: it counts as serving after its first token, or at 08:00:50Z"
    )


def test_a_count_that_was_refused_meanwhile_comes_back_no_lower_than_what_runs():
    """While it was an error somebody may have set five: three would take two of them away."""
    spec = a_spec(signals=PLAIN, staleAfter="30s", replicas={"min": 1, "max": 9})

    decision, state = evaluate(spec, a_fleet(warming(), spec_replicas=5), remembering(3, ago=300))

    assert (decision.refusal, decision.published, state.published) == (None, 5, 5)


def test_an_engine_that_counts_again_ends_the_gap():
    """The whole story of a restart: held while it warms, then decided on its own word."""
    spec = a_spec(signals=PLAIN, staleAfter="30s")
    warm = a_fleet(warming(since=T0))

    held, state = evaluate(spec, later(warm, 59), remembering(3, ago=10))
    back = a_fleet(a_replica("w", at=T0 + 60), at=T0 + 60)
    decided, _ = evaluate(spec, back, state)

    assert (held.published, decided.published) == (3, 3)
    assert decided.holds[0].reason is HoldReason.AFTER_GAP
