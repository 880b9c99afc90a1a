"""Skipping steps in closed form changes nothing: the engine against one step at a time.

All parameters and moments are multiples of powers of two, so that sums of steps are exact in
floating point, and "the same" means the same bits.
"""

import os
import subprocess
import sys
from copy import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.presets import EnginePreset
from tests.simulator.stepper import Stepper

GRAIN = 2.0**-20


def presets() -> st.SearchStrategy[EnginePreset]:
    """Return engines so small that requests fight for seats, tokens and KV cache.

    Some have steps of whole ticks of the traffic, so that arrivals and steps' ends coincide.
    """
    grains = st.sampled_from((0, 0, 1, 77, 2**10)).map(lambda count: count * GRAIN)
    return st.builds(
        EnginePreset,
        name=st.just("tiny"),
        a=st.one_of(st.sampled_from((2**10, 2**12)), st.integers(1, 2**14)).map(
            lambda count: count * GRAIN
        ),
        b=grains,
        c=st.sampled_from((0, 1, 13, 2**6)).map(lambda count: count * GRAIN),
        e=grains,
        alpha=grains,
        beta=st.sampled_from((0, 0, 1, 4)).map(lambda count: count * GRAIN),
        kappa=st.sampled_from((1.0, 1.25)),
        kv_tokens=st.integers(120, 400),
        max_num_seqs=st.integers(1, 9),
        max_num_batched_tokens=st.integers(9, 80),
        api_seconds=st.sampled_from((0.0, 2.0**-6)),
        token_seconds=st.just(2.0**-14),
        source=st.just("invented"),
    )


@st.composite
def traffic(draw: st.DrawFn) -> list[Request]:
    """Return requests in the order of arrival, several of them at one moment."""
    gaps = draw(st.lists(st.sampled_from((0, 0, 1, 3, 40, 700)), min_size=1, max_size=25))
    requests, moment = [], 0.0
    for gap in gaps:
        moment += gap / 1024
        prompt = draw(st.integers(1, 70))
        output = draw(st.integers(1, 45))
        requests.append(Request(moment, prompt, output, draw(st.integers(0, prompt))))
    return requests


@settings(max_examples=300, deadline=None)
@given(presets(), traffic(), st.lists(st.integers(1, 900), max_size=12))
def test_it_equals_one_step_at_a_time(preset, requests, strides):
    """Every moment, every gauge at every stop, every total: equal to the last bit."""
    engine, stepper = SimulatedEngine(preset), Stepper(preset)
    twins = [copy(request) for request in requests]
    for request, twin in zip(requests, twins, strict=True):
        engine.submit(request)
        stepper.submit(twin)
    held = tuple(stepper.coming)

    until = 0.0
    for stride in (*strides, 2**30):
        until += stride / 1024
        finished, expected = engine.advance(until), stepper.advance(until)

        assert [requests.index(one) for one in finished] == [twins.index(one) for one in expected]
        assert engine.running == len(stepper.batch)
        assert engine.waiting == len(stepper.queue)
        assert engine.kv_usage == stepper.used / preset.kv_tokens

    moments = [(one.first_token_at, one.finished_at) for one in requests]
    totals = engine.totals
    assert moments == [(one.first_token_at, one.finished_at) for one in twins]
    assert totals.steps == stepper.steps
    assert totals.generation_tokens == stepper.generated
    assert totals.preemptions == stepper.preemptions
    assert totals.queue_seconds == sum(one.taken_at - one.request.arrived_at for one in held)


@settings(max_examples=150, deadline=None)
@given(presets(), traffic(), st.integers(1, 900))
def test_nothing_is_lost_and_the_cache_never_overflows(preset, requests, stride):
    """All tokens asked for are made, all work promised is done, KV usage stays within 0..1."""
    engine = SimulatedEngine(preset)
    for request in requests:
        engine.submit(request)

    until, usages = 0.0, []
    while engine.in_flight:
        until += stride / 1024
        engine.advance(until)
        usages.append(engine.kv_usage)

    totals = engine.totals
    assert max(usages) <= 1.0
    assert usages[-1] == 0.0
    assert engine.outstanding_tokens == 0
    assert totals.requests == len(requests)
    assert totals.prompt_tokens == sum(one.prompt_tokens for one in requests)
    assert totals.generation_tokens == sum(one.output_tokens for one in requests)
    assert engine.ttft.count == len(requests)


@settings(max_examples=100, deadline=None)
@given(presets(), traffic(), st.lists(st.integers(1, 300), min_size=1, max_size=30))
def test_how_often_it_is_advanced_does_not_matter(preset, requests, strides):
    """Told the time once or thirty times: the same tokens at the same moments."""
    at_once, in_strides = SimulatedEngine(preset), SimulatedEngine(preset)
    twins = [copy(request) for request in requests]
    for request in requests:
        at_once.submit(request)
    at_once.advance(2.0**20)

    until, waiting = 0.0, list(twins)
    for stride in (*strides, 2**30):
        until += stride / 1024
        while waiting and waiting[0].arrived_at <= until:
            in_strides.submit(waiting.pop(0))
        in_strides.advance(until)

    assert [one.finished_at for one in twins] == [one.finished_at for one in requests]
    assert in_strides.totals == at_once.totals


def test_the_hash_seed_changes_nothing():
    """Two processes with different PYTHONHASHSEED print the same digest."""
    program = (
        "from tests.simulator.test_engine_exact import digest; import sys; "
        "sys.stdout.write(digest())"
    )

    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert digests == {digest()}


def digest() -> str:
    """Return what became of a few hundred requests, as text."""
    preset = EnginePreset(
        name="small", a=0.018, b=2e-5, c=1.6e-7, e=0.004, alpha=9.6e-5, beta=1e-9,
        kv_tokens=9000, source="invented",
    )  # fmt: skip
    engine = SimulatedEngine(preset)
    for index in range(300):
        engine.submit(Request(index / 7, 40 + 97 * index % 900, 1 + 31 * index % 200))
    moments = [request.finished_at for request in engine.advance(1e6)]
    return repr((moments, engine.totals))
