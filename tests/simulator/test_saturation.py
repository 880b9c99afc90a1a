"""The unit of work is a lower bound, and what saturates a replica is an upper one."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Timestamp
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.presets import PRESETS, preset
from adapter.simulator.saturation import calibrate, saturated, work_of
from adapter.simulator.synthetic import CHAT_DECK, LLMD_DECK

LARGE = preset("llama-3.1-70b-4xh100")
SMALL = preset("llama-3.1-8b-h100")
CHAT = CHAT_DECK[:512]


@settings(max_examples=30, deadline=None)
@given(
    engine=st.sampled_from(PRESETS),
    cards=st.lists(st.tuples(st.integers(1, 12_000), st.integers(1, 400)), min_size=1, max_size=80),
)
def test_no_engine_does_a_second_of_work_in_less_than_a_second(engine, cards):
    """Whatever the batch: else a policy could beat the bound, which is counted in this work."""
    simulated = SimulatedEngine(engine)
    for prompt, output in cards:
        simulated.submit(Request(Timestamp(0.0), prompt, output))

    finished = simulated.advance(1e6)

    work = sum(work_of(engine)(*card) for card in cards)
    assert len(finished) == len(cards)
    assert work <= max(request.finished_at for request in finished)


@pytest.mark.parametrize(("prompt", "output"), [(1, 1), (1, 2), (1000, 7), (4000, 1000)])
def test_each_decoding_step_reads_the_context_that_there_is_then(prompt, output):
    """The first token comes with the prompt; then the context grows by one a step."""
    work, law = work_of(LARGE), LARGE

    steps = sum(law.b + law.c * (prompt + generated) for generated in range(1, output))

    assert work(prompt, output) - work(prompt, 1) == pytest.approx(law.kappa * steps)


def test_longer_requests_are_more_work():
    work = work_of(LARGE)

    assert work(2000, 100) > 1.9 * work(1000, 100) - work(1, 100)
    assert work(1000, 200) > work(1000, 100) > work(1000, 1) > 0


@pytest.mark.parametrize("deck", [CHAT, LLMD_DECK], ids=["chat", "ramp"])
@pytest.mark.parametrize("batch", [40, 100, 200])
def test_no_limit_of_the_batch_gets_more_out_of_a_replica(deck, batch):
    """70B, 4000 + 1000 tokens: an unlimited batch preempts and does 0.719, one of 100 0.732."""
    limited = saturated(replace(LARGE, max_num_seqs=batch), deck)

    assert 0.3 < limited <= 1.01 * saturated(LARGE, deck) <= 1.0


def test_the_ramp_s_long_answers_do_not_read_as_less_capacity_than_there_is():
    assert saturated(LARGE, LLMD_DECK) > 0.725


def test_requests_that_the_engine_cannot_hold_are_left_out():
    tiny = replace(LARGE, kv_tokens=4000)

    assert 0 < saturated(tiny, [(1000, 100), (9000, 10)]) <= 1


def test_the_rivals_are_told_what_an_operator_would_measure():
    """70B on chat: 12.4k prompt tokens/s; within the objective near saturation, not beyond."""
    told = calibrate(LARGE, CHAT)

    mean = sum(work_of(LARGE)(*card) for card in CHAT) / len(CHAT)
    most = saturated(LARGE, CHAT) / mean
    assert told.prefill_tokens_per_second == pytest.approx(12_357, rel=1e-3)
    assert 0.7 * most < told.requests_per_second < most
    assert (told.kv_tokens, told.batched_tokens, told.sequences) == (484_016, 8192, 1024)


def test_a_smaller_model_carries_more():
    small, large = calibrate(SMALL, CHAT), calibrate(LARGE, CHAT)

    assert small.requests_per_second > 2 * large.requests_per_second
