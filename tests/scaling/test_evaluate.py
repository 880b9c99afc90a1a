"""The decision as a whole: up at once, down slowly, held in the dark, never out of bounds."""

from collections.abc import Sequence

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Condition, ConditionType, Decision, HoldReason, Stage, Step
from adapter.scaling.evaluate import evaluate
from adapter.scaling.spec import ScalingSpec
from adapter.scaling.state import ScalingState
from tests.build import (
    T0,
    a_fleet,
    a_gap,
    a_reading,
    a_replica,
    a_spec,
    loading,
    serving,
    silent,
)

PLAIN = {"queue": {"targetInFlight": 10, "headroom": 1}}
"""Ten requests in flight are one replica."""


def plain(**sections: object) -> ScalingSpec:
    """Return a spec with a delay of four minutes: the default load time."""
    return a_spec(signals=PLAIN, **sections)


def remembering(published: int, *, wanted: int | None = None, ago: float = 5.0) -> ScalingState:
    """Return the memory of a fleet that was last told ``published``, ``ago`` seconds ago."""
    at = Timestamp(T0 - ago)
    return ScalingState(
        published=published,
        started_at=Timestamp(T0 - 86_400.0),
        good_at=at,
        recommendations=((at, published if wanted is None else wanted),),
    )


def decide(
    fleet: FleetSnapshot, state: ScalingState | None = None, spec: ScalingSpec | None = None
) -> Decision:
    return evaluate(spec or plain(), fleet, state or ScalingState())[0]


def play(fleets: Sequence[FleetSnapshot], spec: ScalingSpec, state: ScalingState) -> list[Decision]:
    decisions = []
    for fleet in fleets:
        decision, state = evaluate(spec, fleet, state)
        decisions.append(decision)
    return decisions


def step(decision: Decision, stage: Stage) -> Step:
    return next(step for step in decision.steps if step.stage is stage)


def condition(decision: Decision, kind: ConditionType) -> Condition:
    return next(condition for condition in decision.conditions if condition.type is kind)


def reasons(decision: Decision) -> list[HoldReason]:
    return [hold.reason for hold in decision.holds]


# --- up


def test_up_is_at_once_and_to_the_full_need() -> None:
    decision = decide(a_fleet(*serving(2, running=10, waiting=20)), remembering(2))

    assert decision.published == 6
    assert decision.because == "queue: 60 in flight / (10 x 1) per replica"
    assert decision.holds == ()


def test_what_is_loading_is_not_asked_for_again() -> None:
    """Need 4, 2 serve and 2 load: 4."""
    fleet = a_fleet(*serving(2, running=10, waiting=10), *loading(2))

    assert decide(fleet, remembering(4)).published == 4


@pytest.mark.parametrize(
    ("step", "published"), [(1, 3), ("50%", 3), ("100%", 4), (3, 5), ("1000%", 12)]
)
def test_a_step_up_is_no_larger_than_the_policy_allows(step: int | str, published: int) -> None:
    fleet = a_fleet(*serving(2, running=10, waiting=50))

    decision = decide(fleet, remembering(2), plain(scaleUp={"maxStep": step}))

    assert decision.published == published
    limited = condition(decision, ConditionType.SCALING_LIMITED)
    assert limited.reason == ("DesiredWithinRange" if published == 12 else "MaxStep")


def test_the_next_step_waits_for_the_replicas_of_the_last() -> None:
    """Published 4, of which 2 exist: ticks do not double the count, replicas do."""
    few = a_fleet(*serving(2, running=10, waiting=90))
    more = a_fleet(*serving(2, running=10, waiting=90), *loading(2))
    spec = plain(scaleUp={"maxStep": "100%"})

    assert decide(few, remembering(4), spec).published == 4
    assert decide(more, remembering(4), spec).published == 8


def test_float_noise_orders_no_replica() -> None:
    fleet = a_fleet(*serving(3, running=10.0000001))

    assert decide(fleet, remembering(3)).published == 3


# --- standby, replacements, shortage


def test_standby_adds_spare_replicas_to_the_need() -> None:
    decision = decide(a_fleet(*serving(2, running=10)), remembering(2), plain(standby={"floor": 2}))

    assert (decision.published, decision.standby) == (4, 2)


@pytest.mark.parametrize("phase", [Phase.STALLED, Phase.ISOLATED])
def test_a_replica_that_does_no_work_is_asked_for_once_more(phase: Phase) -> None:
    fleet = a_fleet(*serving(3, running=10), a_replica("z", phase=phase))

    decision = decide(fleet, remembering(4))

    assert decision.published == 4
    assert step(decision, Stage.REPLACE).because == "1 for stalled or isolated pod-z"
    assert decision.census.stalled == 1
    assert condition(decision, ConditionType.REPLICAS_STALLED).status


def test_replacements_at_most_double_the_need() -> None:
    """When everything stalls, more of the same is no cure."""
    lost = [a_replica(f"z{n}", phase=Phase.STALLED) for n in range(9)]

    decision = decide(a_fleet(*serving(2, running=10), *lost), remembering(2))

    assert decision.published == 4
    assert "pod-z0, pod-z1, pod-z2 and 6 more" in step(decision, Stage.REPLACE).because


def test_an_overdue_replica_is_ordered_again() -> None:
    """Loading for more than 1.5 x 4 min is no longer supply; one in four needed, at least one."""
    late = loading(2, since=T0 - 361.0)
    decision = decide(a_fleet(*serving(2, running=10, waiting=10), *late), remembering(4))

    assert decision.published == 5
    assert "1 for pod-l000, pod-l001, loading for more than 360 s" in (
        step(decision, Stage.REPLACE).because
    )
    assert (decision.census.loading, decision.census.overdue) == (2, 2)


def test_an_overdue_replica_that_nobody_needs_is_not_ordered_again() -> None:
    late = loading(2, since=T0 - 361.0)

    assert decide(a_fleet(*serving(4, running=10), *late), remembering(4)).published == 4


def test_a_replica_of_unknown_age_is_awaited() -> None:
    unknown = a_replica("l", phase=Phase.LOADING, sample=a_gap(), since=None)

    assert decide(a_fleet(*serving(1, running=20), unknown), remembering(2)).census.overdue == 0


@pytest.mark.parametrize(
    ("fleet", "words"),
    [
        (
            a_fleet(*serving(2, running=30), unscheduled="0/9 nodes have a free GPU"),
            "0/9 nodes have a free GPU",
        ),
        (
            a_fleet(*serving(2, running=30), *loading(1, since=T0 - 301.0, phase=Phase.PENDING)),
            "pod-l000 without a node for 300 s or more",
        ),
    ],
)
def test_a_shortage_freezes_up_and_leaves_down_free(fleet: FleetSnapshot, words: str) -> None:
    up = decide(fleet, remembering(3))

    assert up.published == 3
    assert condition(up, ConditionType.CAPACITY_SHORTAGE).message == words
    assert condition(up, ConditionType.SCALING_LIMITED).reason == "CapacityShortage"

    idle = a_fleet(*serving(3), unscheduled="none")

    assert decide(idle, remembering(3, wanted=1, ago=60.0)).published == 1


# --- down


def test_down_waits_for_the_delay_and_says_how_long() -> None:
    decision = decide(a_fleet(*serving(5)), remembering(5, ago=60.0))

    assert decision.published == 5
    assert reasons(decision) == [HoldReason.SCALE_DOWN_DELAY]
    assert decision.holds[0].until == T0 + 180.0
    assert decision.holds[0].because == "scale-down delay, 3m left: 5 were wanted 1m ago"


@pytest.mark.parametrize(("ago", "published"), [(239.9, 5), (240.0, 1), (900.0, 1)])
def test_the_delay_is_a_span_of_time_not_a_number_of_ticks(ago: float, published: int) -> None:
    """Ticks that were missed do not stretch it (data as good as ever: staleAfter is 1 h)."""
    decision = decide(a_fleet(*serving(5)), remembering(5, ago=ago), plain(staleAfter="1h"))

    assert decision.published == published


@pytest.mark.parametrize(
    ("section", "load_time", "delay"),
    [
        ({"delay": "90s"}, 600.0, 90.0),
        ({"delayFactor": 0.5}, 600.0, 300.0),
        ({}, 600.0, 600.0),
        ({}, 10.0, 120.0),
        ({}, 4000.0, 1800.0),
    ],
)
def test_the_delay_is_the_measured_load_time_between_its_bounds(
    section: dict[str, object], load_time: float, delay: float
) -> None:
    decision = decide(
        a_fleet(*serving(5), load_time=load_time), remembering(5), plain(scaleDown=section)
    )

    assert decision.holds[0].until == T0 - 5.0 + delay
    assert decision.lead_time == load_time


def test_down_goes_to_the_largest_need_of_the_delay() -> None:
    state = ScalingState(
        published=9,
        good_at=T0,
        recommendations=((Timestamp(T0 - 300), 9), (Timestamp(T0 - 100), 4)),
    )

    assert decide(a_fleet(*serving(9)), state).published == 4


def test_only_idle_replicas_are_given_up() -> None:
    fleet = a_fleet(*serving(2), *serving(4, prefix="t", running=1))

    decision = decide(fleet, remembering(6, wanted=1, ago=60))

    assert decision.published == 4
    assert step(decision, Stage.STABILIZE).because == "2 idle of 5 to spare go; the others work"


def test_a_replica_that_is_on_its_way_out_is_not_given_up_twice() -> None:
    """6 still exist though 4 are published: the two idle ones are spoken for."""
    fleet = a_fleet(*serving(2), *serving(4, prefix="t", running=1))

    assert decide(fleet, remembering(4, wanted=1, ago=60)).published == 4


def test_silence_is_not_idleness() -> None:
    fleet = a_fleet(*serving(1, running=1), *silent(3))

    decision = decide(fleet, remembering(4, wanted=1, ago=60))

    assert decision.published == 4


def test_without_only_idle_the_count_follows_the_delay() -> None:
    fleet = a_fleet(*serving(6, running=1))

    decision = decide(fleet, remembering(6, wanted=1, ago=60), plain(scaleDown={"onlyIdle": False}))

    assert decision.published == 1


def test_a_fleet_that_is_a_little_busy_everywhere_comes_down_in_the_end() -> None:
    """Round robin: nobody is ever idle. One in ten, at least one, per further delay of 4 min."""
    fleets = [a_fleet(*serving(20, running=1), at=T0 + 60.0 * n) for n in range(14)]

    decisions = play(fleets, plain(), remembering(20, wanted=2, ago=60))

    counts = [decision.published for decision in decisions]
    assert counts == [20] * 4 + [18] * 4 + [17] * 4 + [16] * 2
    assert decisions[0].holds[0].reason is HoldReason.NOT_IDLE
    assert decisions[0].holds[0].because == "none of 18 to spare is idle; 4m left to wait"


def test_nothing_goes_down_during_a_rollout() -> None:
    decision = decide(a_fleet(*serving(5), rollout=True), remembering(5, wanted=1, ago=60))

    assert decision.published == 5
    assert reasons(decision)[0] is HoldReason.ROLLOUT
    assert condition(decision, ConditionType.ROLLOUT_IN_PROGRESS).status


def test_nothing_goes_down_while_a_replica_loads_for_unserved_demand() -> None:
    """sie#293: a replica was deleted seconds before it would have served."""
    fleet = a_fleet(*serving(1, running=30), *loading(4, since=T0 - 100))

    decision = decide(fleet, remembering(5, wanted=1, ago=60))

    assert decision.published == 5
    assert reasons(decision)[0] is HoldReason.LOADING_UNSERVED
    assert decision.holds[0].until == T0 - 100 + 360


# --- without memory


def test_without_memory_what_runs_is_needed_for_one_delay() -> None:
    fleets = [a_fleet(*serving(5), *loading(1), at=T0 + t) for t in (0, 120, 239, 240, 300)]

    decisions = play(fleets, plain(), ScalingState())

    assert [decision.published for decision in decisions] == [6, 6, 6, 1, 1]
    assert reasons(decisions[1])[0] is HoldReason.NO_MEMORY
    assert "2m left" in decisions[1].holds[0].because


def test_the_scale_target_knows_better_what_runs() -> None:
    assert decide(a_fleet(*serving(5), spec_replicas=8)).published == 8


def test_memory_that_was_refused_meanwhile_does_not_undercut_what_runs() -> None:
    """An hour without data, refused: somebody scaled to 9 by hand, and 3 were remembered."""
    decision = decide(a_fleet(*serving(9), spec_replicas=9), remembering(3, ago=3600.0))

    assert decision.published == 9
    assert reasons(decision)[0] is HoldReason.AFTER_GAP


# --- bounds and modes


@pytest.mark.parametrize(
    ("running", "published", "reason"),
    [(0, 3, "TooFewReplicas"), (15, 5, "DesiredWithinRange"), (90, 7, "TooManyReplicas")],
)
def test_the_bounds_win(running: float, published: int, reason: str) -> None:
    spec = plain(replicas={"min": 3, "max": 7})

    decision = decide(a_fleet(*serving(3, running=running)), remembering(2), spec)

    assert decision.published == published
    assert condition(decision, ConditionType.SCALING_LIMITED).reason == reason


def test_a_lowered_maximum_is_obeyed_at_once() -> None:
    fleet = a_fleet(*serving(9, running=10), rollout=True)

    assert decide(fleet, remembering(9), plain(replicas={"min": 1, "max": 4})).published == 4


def test_advisory_mode_computes_what_is_wanted_and_publishes_what_is() -> None:
    fleet = a_fleet(*serving(2, running=30), spec_replicas=2)

    decision, state = evaluate(plain(mode="advisory"), fleet, remembering(5))

    assert (decision.desired, decision.published) == (6, 2)
    assert state.published == 2


def test_off_refuses_and_remembers_nothing() -> None:
    state = remembering(5)

    decision, after = evaluate(plain(mode="off"), a_fleet(*serving(2, running=30)), state)

    assert decision.refusal == (
        "mode is off: nothing is computed; set spec.mode to active or advisory"
    )
    assert decision.published == 5
    assert after is state
    assert condition(decision, ConditionType.READY).reason == "Off"
    assert decision.because == ""


# --- missing data


def test_silence_everywhere_holds_the_count_loudly() -> None:
    decision = decide(a_fleet(*silent(4)), remembering(7, ago=30.0))

    assert decision.published == 7
    assert decision.refusal is None
    assert decision.held
    assert reasons(decision) == [HoldReason.METRICS_GAP]
    assert decision.holds[0].until == T0 + 90.0
    assert decision.data_at == T0 - 30.0
    available = condition(decision, ConditionType.METRICS_AVAILABLE)
    assert (available.status, available.reason) == (False, "Error")
    assert available.message == "4 of 4 serving replicas: no answer"
    assert condition(decision, ConditionType.READY).reason == "Holding"


def test_after_the_limit_the_count_is_refused_with_cause_and_age() -> None:
    fleet = a_fleet(*silent(4, detail="pod-x: no answer within 5 s"))

    decision, state = evaluate(plain(), fleet, remembering(7, ago=312.0))

    assert decision.refusal == (
        "stale: last sample 312 s old, spec.staleAfter is 2m; "
        "4 of 4 serving replicas: pod-x: no answer within 5 s"
    )
    assert decision.published == 7
    assert state.published == 7
    assert condition(decision, ConditionType.READY).message == decision.refusal


def test_without_any_data_ever_the_count_is_refused_at_once() -> None:
    decision, state = evaluate(plain(), a_fleet(*loading(2)), ScalingState())

    assert decision.refusal == ("no data yet: no replica of the target serves, 2 on their way")
    assert decision.published == 2
    assert state.published is None
    assert state.started_at is None


def test_what_a_replica_on_its_way_answers_is_part_of_the_refusal() -> None:
    """A fixed address counts as loading until it answers well: it may never, and says why."""
    wrong = "http://a/: no series of model 'lama'; did you mean 'llama'?"
    fleet = a_fleet(
        *loading(1),
        a_replica("a", phase=Phase.LOADING, sample=a_gap(Cause.UNREACHABLE, detail="refused")),
        a_replica("b", phase=Phase.LOADING, sample=a_gap(Cause.WRONG_MODEL, detail=wrong)),
        a_replica("c", phase=Phase.LOADING, sample=a_gap(Cause.WRONG_MODEL, detail="the same")),
    )

    decision, _ = evaluate(plain(), fleet, ScalingState())

    assert decision.refusal == (
        f"no data yet: no replica of the target serves, 4 on their way; 2 of them: {wrong}"
    )


def test_an_empty_fleet_is_no_zero() -> None:
    decision = decide(a_fleet(), remembering(7))

    assert decision.published == 7
    assert "no replica of the target serves" in decision.holds[0].because


def test_a_limit_names_the_demand_that_it_limited() -> None:
    """Alone, "max 4" hides that twelve were wanted, and why."""
    spec = plain(replicas={"min": 2, "max": 4})

    capped = decide(a_fleet(*serving(3, running=40)), remembering(3), spec)
    lifted = decide(a_fleet(*serving(1)), remembering(1), spec)
    shortened = decide(
        a_fleet(*serving(3, running=40)), remembering(3), plain(scaleUp={"maxStep": 2})
    )

    assert capped.because == "max 4, 12 wanted: queue: 120 in flight / (10 x 1) per replica"
    assert lifted.because.startswith("min 2, 1 wanted: queue: 0 in flight / ")
    assert shortened.because.startswith(
        "one step of 2 from 3 replicas at a time, 12 wanted: queue: 120 in flight"
    )


def test_in_a_gap_the_clause_names_what_is_missing() -> None:
    """It stands in the log line: "no signal can say" sends nobody anywhere."""
    decision = decide(a_fleet(*silent(4, detail="pod-x: no answer within 5 s")), remembering(4))

    assert decision.because == "Error: 4 of 4 serving replicas: pod-x: no answer within 5 s"


@pytest.mark.parametrize("replicas", [silent(4), loading(4), ()])
@pytest.mark.parametrize("signal", ["ttft", "kvCache"])
def test_signals_that_only_raise_do_not_make_a_blackout_good_data(
    signal: str, replicas: tuple[Replica, ...]
) -> None:
    """Without the queue signal nobody missed the metrics: ten went to one in a blackout."""
    spec = a_spec(signals={"queue": None, "kvCache": None, "ttft": None, signal: {}})

    held = decide(a_fleet(*replicas), remembering(10, wanted=1, ago=100.0), spec)
    refused = decide(a_fleet(*replicas), remembering(10, wanted=1, ago=300.0), spec)

    assert held.published == 10
    assert [hold.reason for hold in held.holds] == [HoldReason.METRICS_GAP]
    assert condition(held, ConditionType.METRICS_AVAILABLE).status is False
    assert refused.refusal is not None
    assert refused.refusal.startswith("stale: last sample 300 s old, spec.staleAfter is 2m; ")


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [
        (silent(2, cause=Cause.STALE), "Stale"),
        (silent(2, cause=Cause.NO_ENGINE), "Missing"),
        (silent(2, cause=Cause.HTTP_STATUS), "Error"),
        (serving(2, waiting=None, missing={Metric.REQUESTS_WAITING: "NaN"}), "NaN"),
        (serving(2, running=None, missing={Metric.REQUESTS_RUNNING: "+Inf"}), "NaN"),
        (serving(2, running=None, missing={Metric.REQUESTS_RUNNING: "impossible value -1"}), "NaN"),
        (serving(2, running=None), "Missing"),
        (
            serving(
                2,
                waiting=None,
                missing={Metric.REQUESTS_WAITING: "rank 2 does not report nv_inference_pending"},
            ),
            "Missing",
        ),
        ((*silent(2, cause=Cause.STALE), *silent(1, prefix="a", cause=Cause.TIMEOUT)), "Stale"),
    ],
)
def test_the_reason_is_that_of_the_commonest_cause(
    replicas: tuple[Replica, ...], reason: str
) -> None:
    decision = decide(a_fleet(*replicas), remembering(3))

    assert condition(decision, ConditionType.METRICS_AVAILABLE).reason == reason


def test_some_silence_is_said_and_decided_with() -> None:
    decision = decide(a_fleet(*serving(3, running=10), *silent(1)), remembering(4))

    available = condition(decision, ConditionType.METRICS_AVAILABLE)
    assert (available.status, available.reason) == (True, "Partial")
    assert available.message == (
        "1 of 4 serving replicas are silent, first pod-x000: Error: no answer"
    )
    assert not decision.held


def test_silent_replicas_are_not_given_up_even_after_the_delay() -> None:
    """8 idle and 2 silent: down to the two that may be busy."""
    decision = decide(a_fleet(*serving(8), *silent(2)), remembering(10, wanted=1, ago=60.0))

    assert decision.published == 2
    assert step(decision, Stage.COMBINE).because.endswith("; silent replicas count as busy")


def test_other_signals_may_still_raise_in_a_gap() -> None:
    """The queue gauge is NaN, but the cache is full and requests are preempted."""
    before, now = (
        a_replica(
            "a", waiting=None, running=30, kv=0.9, at=at, more={Metric.PREEMPTIONS: events}
        ).reading
        for at, events in ((T0 - 5, 1), (T0, 9))
    )
    fleet = a_fleet(a_replica("a", sample=now, previous=before))

    decision = decide(fleet, remembering(1), plain())

    assert decision.published == 2
    assert reasons(decision) == [HoldReason.METRICS_GAP]


def test_standby_does_not_pile_up_in_a_gap() -> None:
    fleets = [a_fleet(*silent(4), at=T0 + 5.0 * n) for n in range(5)]

    decisions = play(fleets, plain(standby={"floor": 2}), remembering(7))

    assert {decision.published for decision in decisions} == {7}


def test_after_a_gap_nothing_goes_down_for_a_whole_delay() -> None:
    gap = [a_fleet(*silent(5), at=T0 + t) for t in (0, 60)]
    good = [a_fleet(*serving(5), at=T0 + t) for t in (65, 150, 240, 304, 305)]

    decisions = play([*gap, *good], plain(), remembering(5, wanted=1))

    assert [decision.published for decision in decisions] == [5] * 6 + [1]
    assert reasons(decisions[2])[0] is HoldReason.AFTER_GAP
    assert decisions[2].holds[0].because == "data came back; 4m left of a whole delay"


def test_ticks_that_never_came_are_a_gap() -> None:
    decision = decide(a_fleet(*serving(5)), remembering(5, wanted=1, ago=121.0))

    assert decision.published == 5
    assert reasons(decision)[0] is HoldReason.AFTER_GAP


def test_a_clock_set_back_holds_nothing_for_longer_than_a_delay() -> None:
    year = 365 * 86_400.0
    state = ScalingState(
        published=5,
        started_at=Timestamp(T0 + year),
        good_at=Timestamp(T0 + year),
        gap_ended_at=Timestamp(T0 + year),
        busy_since=Timestamp(T0 + year),
        recommendations=((Timestamp(T0 + year), 5),),
    )
    fleets = [a_fleet(*serving(5), at=T0 + t) for t in (0, 60, 120, 180, 239, 240)]

    decisions = play(fleets, plain(), state)

    assert [decision.published for decision in decisions] == [5] * 5 + [1]
    assert all(hold.until == T0 + 240 for hold in decisions[0].holds)


# --- signals that are off or not exported


def test_no_signal_at_all_is_refused_with_the_fix() -> None:
    spec = a_spec(signals={"queue": None, "kvCache": None, "ttft": None})

    decision = decide(a_fleet(*serving(2)), remembering(2), spec)

    assert decision.refusal == "no signal is on: set signals.queue (or kvCache, ttft) in the policy"


def test_signals_that_the_engine_never_exports_are_refused_with_the_fix() -> None:
    never = (
        Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING, Metric.REQUEST_SECONDS,
        Metric.KV_CACHE_USAGE, "ttft",
    )  # fmt: skip
    fleet = a_fleet(*serving(2, running=None, waiting=None, kv=None, unserved=never))

    decision = decide(fleet, remembering(2))

    assert decision.refusal is not None
    assert decision.refusal.startswith("no configured signal is served: queue: the engine exports")
    served = condition(decision, ConditionType.SIGNAL_SERVED)
    assert not served.status
    assert served.message == "the engine exports nothing for queue, kvCache, ttft; set them to null"


def test_one_signal_that_is_not_exported_holds_nothing() -> None:
    fleet = a_fleet(*serving(2, running=30, kv=None, unserved=(Metric.KV_CACHE_USAGE,)))

    decision = decide(fleet, remembering(2))

    assert decision.published == 6
    assert decision.refusal is None
    assert not condition(decision, ConditionType.SIGNAL_SERVED).status


def test_signals_that_only_raise_keep_the_busy_replicas() -> None:
    """KvCache alone: silent until something waits, and no reason to cut a stream."""
    spec = a_spec(signals={"queue": None, "ttft": None})
    fleet = a_fleet(*serving(3), *serving(2, prefix="t", running=9))

    decision = decide(fleet, remembering(5, wanted=1, ago=60), spec)

    assert decision.published == 2
    assert step(decision, Stage.COMBINE).because == "no signal asks: 2 replicas are busy"


def test_the_decision_is_valid_until_its_data_is_stale() -> None:
    decision = decide(a_fleet(*serving(1)), remembering(1), plain(staleAfter="90s"))

    assert decision.valid_until == T0 + 90.0


def test_a_signal_that_still_tells_less_never_lowers_the_held_count():
    """The queue reads NaN, the KV cache tells 1 of 4: still 4, long after the 10 s delay."""

    def moment(tick: int) -> FleetSnapshot:
        at = T0 + 5.0 * tick
        kept = {"running": None, "waiting": None, "kv": 0.1, "missing": {"requests_waiting": "NaN"}}
        before, now = (
            a_reading(at=when, more={Metric.PREEMPTIONS: count}, **kept)
            for when, count in ((at - 5.0, tick), (at, tick + 1.0))
        )
        replicas = (a_replica(f"s{n}", sample=now, previous=before) for n in range(4))
        return a_fleet(*replicas, at=at, spec_replicas=4)

    signals = {**PLAIN, "kvCache": {"target": 0.8}, "ttft": None}
    down = {"delay": "10s", "onlyIdle": False}
    spec = a_spec(signals=signals, scaleDown=down, staleAfter="10m")
    decisions = play([moment(tick) for tick in range(24)], spec, remembering(4))

    assert {demand.replicas is None for demand in decisions[-1].demands} == {True, False}
    assert [decision.published for decision in decisions] == [4] * 24
