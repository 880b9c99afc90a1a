"""Our rules against the reference formulas handed over with the task, on random input."""

import importlib.util
import math
import os
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.aibrix import AibrixAutoscaler, Strategy
from adapter.simulator.rivals.kaito import KaitoScaler, Threshold
from adapter.simulator.rivals.knative import KnativeKpa
from adapter.simulator.rivals.kthena import Kthena
from adapter.simulator.rivals.llmd_queue_guard import guarded
from adapter.simulator.rivals.llmd_slo_aware import LlmdSloAware
from adapter.simulator.rivals.observation import Gauge, RouterFacts
from adapter.simulator.rivals.port import Seat
from adapter.simulator.rivals.ray_serve import RayServe
from adapter.simulator.rivals.window import Window
from adapter.simulator.rivals.wva_v1 import Load, WvaV1
from adapter.simulator.rivals.wva_v2 import WvaV2
from tests.simulator.rivals.build import pods, running, seen, silent, values_once

MANY = settings(max_examples=100, deadline=None)
APA = AibrixAutoscaler(Strategy.APA)
KPA = AibrixAutoscaler(Strategy.KPA)


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    root = Path(os.environ.get("LEADTIME_SHARED", Path(__file__).parents[4] / "shared"))
    path = root / "reference" / "peers_baselines.py"
    if not path.is_file():
        pytest.skip(f"{path} is absent: the peers' reference formulas come with ../shared")
    spec = importlib.util.spec_from_file_location("peers_baselines", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_references_own_vectors_hold(reference):
    reference.selftest()


@MANY
@given(st.integers(1, 60), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_aibrix(reference, current, stable, panic):
    theirs, _ = reference.aibrix_kpa(current, stable, panic, 0.5, lo=0, hi=10_000)

    assert APA.apa(stable, current=current) == reference.aibrix_apa(
        current, stable, 0.5, lo=0, hi=10_000
    )
    assert KPA.kpa(stable, panic, current=current) == theirs


@MANY
@given(st.integers(1, 20), st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_aibrix_cooldown(reference, current, wants):
    theirs, history = reference.AibrixStab(), Window()
    for tick, wanted in enumerate(wants):
        at = Timestamp(10.0 * tick)
        history = history.plus(at, float(wanted), keep=Seconds(300.0))

        ours = APA.cooled(history, wanted, current=current, at=at)

        assert ours == theirs.step(at, wanted, current)


@MANY
@given(
    st.integers(0, 8),
    st.lists(
        st.tuples(st.integers(1, 12), st.floats(0.0, 200.0), st.floats(0.0, 400.0)), max_size=30
    ),
    st.sampled_from([0.0, 60.0, 900.0]),
    st.integers(1, 3),
)
def test_knative(reference, first, story, delay, activation):
    rule = KnativeKpa(delay=Seconds(delay), activation=activation)
    state = rule.begin(seen(*running(*[1.0] * first), at=0.0, spec=first))
    theirs = reference.KnativeKPA(7.0, ready0=first, delay=delay, activation=activation)
    for tick, (ready, stable, panic) in enumerate(story):
        at = Timestamp(20.0 * tick)

        ours, state = rule.judge(state, at=at, ready=ready, stable=stable, panic=panic)

        assert ours == theirs.step(at, ready, stable, panic)


loads = st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 20.0))


@MANY
@given(
    st.lists(loads, min_size=1, max_size=8),
    st.integers(1, 8),
    st.integers(0, 9),
    st.integers(0, 2),
)
def test_wva_v1(reference, each, current, desired, pending):
    theirs, _ = reference.wva_v1(each, current, desired, pending)

    ours = WvaV1().target(
        [Load(*pair) for pair in each], current=current, desired=desired, pending=pending
    )

    assert ours == theirs


@MANY
@given(
    st.lists(loads, min_size=1, max_size=8),
    st.integers(0, 5),
    st.integers(0, 4000),
)
def test_wva_v2(reference, each, pending, prompt):
    """Before any history: ours begins every example anew."""
    held = [int(kv * 100_000) for kv, _ in each]
    theirs, _ = reference.wva_v2(
        [
            {"total": 100_000, "in_use": tokens, "queue": int(queue), "avg_in": prompt}
            for tokens, (_, queue) in zip(held, each, strict=True)
        ],
        len(each) + pending,
        pending,
        hist_k2=_mean([t for t, (_, q) in zip(held, each, strict=True) if int(q) >= 5 and t > 0]),
    )
    facts = pods(*[(t / 100_000, float(int(q))) for t, (_, q) in zip(held, each, strict=True)])
    router = RouterFacts(prompt_tokens_mean=float(prompt))

    (ours,) = values_once(
        WvaV2(kv_tokens=100_000), seen(*facts, *silent(pending, ready=False), router=router)
    )

    assert ours == pytest.approx(theirs, abs=1)


@MANY
@given(st.floats(0.0, 100.0), st.integers(1, 20), st.integers(1, 20), st.floats(0.05, 1.0))
def test_ray_serve(reference, total, ready, ordered, down_factor):
    """At once in both directions, for what the counter of ticks does is another clock."""
    rule = RayServe(up_delay=Seconds(0.0), down_delay=Seconds(0.0), down_factor=down_factor)
    theirs = reference.RayServe(up=0.0, dn=0.0, dnf=down_factor)
    facts = (*running(*[1.0] * min(ready, ordered)), *silent(max(0, ordered - ready), ready=False))
    observation = seen(*facts, spec=ordered, router=RouterFacts(in_flight_requests=total))

    ours = Seat(rule, observation).wish(observation)

    assert ours.replicas == theirs.step(total, min(ready, ordered), ordered)


@MANY
@given(
    st.lists(st.floats(0.0, 30.0), min_size=1, max_size=6), st.integers(1, 12), st.integers(0, 4)
)
def test_kthena(reference, load, current, unready):
    theirs = reference.kthena(load, 10.0, current, unready)

    ours = Kthena().count(load, 10.0, current=current, unready=unready)

    assert abs(ours - theirs) <= _rounding(sum(load) / 10.0)


@MANY
@given(st.tuples(st.floats(0.0, 20.0), st.floats(0.0, 60.0)), st.integers(0, 6), st.integers(1, 6))
def test_kaito(reference, values, ready, ordered):
    rule = KaitoScaler(
        thresholds=(
            Threshold(Gauge.WAITING, up=10.0, down=1.0),
            Threshold(Gauge.RUNNING, up=30.0, down=1.0),
        )
    )

    ours = rule.factor(values, ready=ready, ordered=ordered)

    assert ours == reference.kaito(values, [10.0, 30.0], [1.0, 1.0], ready, ordered)


@MANY
@given(st.integers(0, 250), st.integers(1, 60), st.integers(0, 60))
def test_llmd_slo_aware(reference, percent, ordered, ready):
    theirs = reference.llmd_slo(percent / 100, ordered, min(ready, ordered))

    ours = LlmdSloAware().count(percent / 100, ordered=ordered, ready=min(ready, ordered))

    assert ours == theirs


@MANY
@given(
    st.none() | st.just(math.nan) | st.floats(0.0, 9.0),
    st.none() | st.just(math.nan) | st.floats(0.0, 0.3),
)
def test_llmd_slo_aware_sample(reference, ttft, tpot):
    router = RouterFacts(ttft_p90_seconds=ttft, tpot_p90_seconds=tpot)

    assert LlmdSloAware().sample(router) == reference.llmd_slo_signal(ttft, tpot)


@MANY
@given(st.integers(0, 200), st.integers(0, 400), st.integers(1, 30), st.integers(0, 30))
def test_llmd_queue_guard(reference, queued, run, replicas, unavailable):
    ours = guarded(max(queued / 1, run / 16), replicas, unavailable)

    assert ours == reference.llmd_queue_guard(queued, run, replicas, unavailable)


def _mean(numbers: list[int]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _rounding(ratio: float) -> int:
    """Return 1 where a quotient is whole or on a tolerance, and either answer is right."""
    return int(any(abs(ratio - edge) < 1e-9 for edge in (round(ratio), 0.9, 1.1)))
