"""What holds for every policy, fleet and history: the promises of the decision."""

import hashlib
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from adapter.fleet.reading import Cause
from adapter.scaling.decision import ConditionType, Decision, HoldReason, Stage
from adapter.scaling.evaluate import evaluate
from adapter.scaling.spec import ScalingSpec
from adapter.scaling.stabilize import delay_of
from adapter.scaling.state import ScalingState, dump_state, load_state
from tests.build import T0, a_fleet, a_gap, a_spec, later, serving
from tests.scaling.worlds import Tick, fleets, histories, played, specs, with_load, with_replica

WHOLE = settings(max_examples=60, deadline=None)


def wanted(decision: Decision) -> int:
    """Return the recommendation, before any brake."""
    return next(step.after for step in decision.steps if step.stage is Stage.GAPS)


def in_outage(decision: Decision) -> bool:
    return any(hold.reason is HoldReason.METRICS_GAP for hold in decision.holds)


@WHOLE
@given(specs, histories)
def test_the_count_is_never_outside_the_bounds(spec: ScalingSpec, history: list[Tick]) -> None:
    decisions, _ = played(spec, fleets(history))

    assert all(
        spec.replicas.min <= decision.published <= spec.replicas.max for decision in decisions
    )


@WHOLE
@given(specs, histories)
def test_the_count_never_goes_below_what_was_wanted_within_the_delay(
    spec: ScalingSpec, history: list[Tick]
) -> None:
    decisions, _ = played(spec, fleets(history))

    served = [decision for decision in decisions if decision.refusal is None]
    for before, decision in pairwise(served):
        delay = delay_of(spec.scale_down, decision.lead_time)
        recent = [d for d in served if 0 <= decision.at - d.at < delay]
        needed = min(spec.replicas.max, max(wanted(d) for d in recent))
        assert decision.published >= min(before.published, needed)


@WHOLE
@given(specs, histories)
def test_nothing_goes_down_in_a_gap_nor_for_a_whole_delay_after_it(
    spec: ScalingSpec, history: list[Tick]
) -> None:
    decisions, _ = played(spec, fleets(history))

    served = [decision for decision in decisions if decision.refusal is None]
    for before, decision in pairwise(served):
        delay = delay_of(spec.scale_down, decision.lead_time)
        gaps = [d for d in decisions if in_outage(d) and 0 <= decision.at - d.at < delay]
        if gaps:
            assert decision.published >= before.published


@WHOLE
@given(specs, histories)
def test_nothing_goes_down_during_a_rollout(spec: ScalingSpec, history: list[Tick]) -> None:
    snapshots = fleets(history)
    decisions, _ = played(spec, snapshots)

    rolling = {fleet.at for fleet in snapshots if fleet.rollout}
    for before, decision in pairwise(d for d in decisions if d.refusal is None):
        if decision.at in rolling:
            assert decision.published >= before.published


@WHOLE
@given(specs, histories)
def test_a_restart_at_any_tick_changes_nothing(spec: ScalingSpec, history: list[Tick]) -> None:
    snapshots = fleets(history)
    through, _ = played(spec, snapshots)

    state, resumed = ScalingState(), []
    for fleet in snapshots:
        decision, state = evaluate(spec, fleet, load_state(dump_state(state)))
        resumed.append(decision)

    assert resumed == through


@WHOLE
@given(
    specs,
    histories,
    st.integers(0, 4),
    st.sampled_from([(1, 0), (40, 0), (0, 1), (0, 30), (5, 5)]),
)
def test_more_load_never_asks_for_fewer(
    spec: ScalingSpec, history: list[Tick], index: int, more: tuple[int, int]
) -> None:
    """With the same memory; more waiting, or more running, at any one replica."""
    *past, now = fleets(history)
    assume(index < len(now.replicas))
    _, state = played(spec, past)
    heavier = with_load(now, index, waiting=more[0], running=more[1])

    before, _ = evaluate(spec, now, state)
    after, _ = evaluate(spec, heavier, state)

    assert wanted(after) >= wanted(before)
    assert after.published >= before.published


@WHOLE
@given(specs, histories)
def test_losing_every_reading_never_lowers_the_count(
    spec: ScalingSpec, history: list[Tick]
) -> None:
    *past, now = fleets(history)
    _, state = played(spec, past)
    silent = now
    for index in range(len(now.replicas)):
        silent = with_replica(silent, index, a_gap(Cause.TIMEOUT, at=now.at))

    decision, _ = evaluate(spec, silent, state)

    assert decision.published >= (state.published or 0)


@settings(WHOLE, suppress_health_check=[HealthCheck.filter_too_much])
@given(specs, histories, st.integers(0, 4))
def test_losing_one_reading_never_lowers_the_count_within_the_delay(
    spec: ScalingSpec, history: list[Tick], index: int
) -> None:
    """A second after a count that good data asked for, one replica falls silent."""
    snapshots = fleets(history)
    assume(index < len(snapshots[-1].replicas))
    decisions, state = played(spec, snapshots)
    last = decisions[-1]
    assume(last.refusal is None and not in_outage(last) and wanted(last) >= last.published)
    now = with_replica(later(snapshots[-1], 1.0), index, a_gap(Cause.TIMEOUT, at=last.at + 1.0))

    decision, _ = evaluate(spec, now, state)

    assert decision.published >= last.published


@pytest.mark.parametrize("busy", range(0, 14, 2))
def test_a_silent_replica_counts_as_busy_on_the_way_down(busy: int) -> None:
    """A reading of up to one replica's worth (14.4 in flight) that is lost asks for no fewer."""
    spec = a_spec(signals={"queue": {"targetInFlight": 16}})
    heard = a_fleet(*serving(3, running=busy))
    lost = with_replica(heard, 1, a_gap())

    known, _ = evaluate(spec, heard, ScalingState(published=3, good_at=T0))
    unknown, _ = evaluate(spec, lost, ScalingState(published=3, good_at=T0))

    assert wanted(unknown) >= wanted(known)


@WHOLE
@given(specs, histories)
def test_every_hold_says_why_and_until_when(spec: ScalingSpec, history: list[Tick]) -> None:
    """Only a rollout has no end of its own: it ends with the rollout."""
    decisions, _ = played(spec, fleets(history))

    for decision in decisions:
        for hold in decision.holds:
            assert hold.because
            assert hold.until is not None or hold.reason is HoldReason.ROLLOUT
        assert all(step.because for step in decision.steps)
        assert [step.stage for step in decision.steps] == list(Stage)
        kinds = [condition.type for condition in decision.conditions]
        assert kinds == list(dict.fromkeys(kinds))
        assert ConditionType.READY in kinds


@WHOLE
@given(specs, histories)
def test_the_steps_are_a_chain_from_the_last_count_to_the_published_one(
    spec: ScalingSpec, history: list[Tick]
) -> None:
    decisions, _ = played(spec, fleets(history))

    for decision in decisions:
        for first, second in pairwise(decision.steps):
            assert second.before == first.after
        assert decision.steps[-1].after == decision.published
        assert decision.steps[-2].after == decision.desired


_PLAY = """
from tests.scaling.test_properties import digest
print(digest())
"""


def digest() -> str:
    """Return the digest of every decision and memory of a fixed, eventful history."""
    told = hashlib.sha256()
    state = ScalingState()
    for number in range(60):
        load = (number * 7) % 31
        quiet = serving(3, running=load, waiting=max(0, load - 16))
        fleet = a_fleet(
            *quiet,
            *serving(2, prefix="t", running=load),
            at=T0 + 15.0 * number,
            rollout=number % 20 == 19,
        )
        if number % 9 == 8:
            fleet = with_replica(fleet, number % 5, a_gap(Cause.STALE))
        decision, state = evaluate(a_spec(), fleet, state)
        told.update(repr(decision).encode())
        told.update(dump_state(state))
    return told.hexdigest()


@pytest.mark.slow
def test_the_same_history_gives_the_same_bytes_under_any_hash_seed() -> None:
    root = Path(__file__).parents[2]

    digests = {
        subprocess.run(
            [sys.executable, "-c", _PLAY],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(root)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "4242")
    }

    assert digests == {digest() + "\n"}
