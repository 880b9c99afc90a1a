"""The physics of one engine, law by law."""

import math
from dataclasses import replace

import pytest

from adapter.fleet.histogram import Histogram
from adapter.simulator.engine import TTFT_BOUNDS, Request, SimulatedEngine
from adapter.simulator.presets import PRESETS, EnginePreset, preset

PLAIN = EnginePreset(
    name="plain", a=0.01, b=0.0, c=0.0, e=0.0, alpha=1e-4, beta=0.0, kappa=1.0, kv_tokens=10_000,
    max_num_seqs=8, max_num_batched_tokens=1000, api_seconds=0.0, token_seconds=0.0,
    source="a step takes 10 ms, or 0.1 ms for each prompt token",
)  # fmt: skip


def an_engine(*requests: Request, law: EnginePreset = PLAIN) -> SimulatedEngine:
    engine = SimulatedEngine(law)
    for request in requests:
        engine.submit(request)
    return engine


@pytest.mark.parametrize("law", PRESETS, ids=lambda law: law.name)
@pytest.mark.parametrize("prompt", [1, 700, 2048, 9000, 30_000])
def test_alone_the_first_token_takes_the_isolated_prefill(law, prompt):
    """Prompts in one chunk and in several: the promise to users is built on this number."""
    request = Request(5.0, prompt, 3)
    engine = an_engine(request, law=law)

    engine.advance(math.inf)

    alone = law.isolated_prefill_seconds(prompt) + law.api_seconds
    assert request.first_token_at == pytest.approx(5.0 + alone)


def test_a_token_costs_its_step():
    """A prompt of 200 takes 20 ms; each of the 9 further tokens takes 10 ms."""
    request = Request(0.0, 200, 10)
    engine = an_engine(request)

    engine.advance(math.inf)

    assert request.first_token_at == pytest.approx(0.02)
    assert request.finished_at == pytest.approx(0.11)
    assert engine.totals.steps == 10


def test_a_decode_step_grows_with_sequences_and_context():
    """Two sequences of 100 and 300 tokens: 2 b + 400 c over the floor, then 402 c, then 404 c."""
    law = replace(PLAIN, b=1e-3, c=1e-5)
    short, long = Request(0.0, 100, 4), Request(0.0, 300, 4)
    engine = an_engine(short, long, law=law)

    engine.advance(math.inf)

    expected = 0.04 + sum(0.01 + 2 * 1e-3 + context * 1e-5 for context in (400, 402, 404))
    assert short.finished_at == long.finished_at == pytest.approx(expected)


def test_the_api_server_adds_its_time_to_first_and_last_token():
    """15 ms on the first, 15 ms and 46 us a token on the last."""
    law = replace(PLAIN, api_seconds=0.015, token_seconds=46e-6)
    request = Request(0.0, 100, 101)
    engine = an_engine(request, law=law)

    engine.advance(math.inf)

    assert request.first_token_at == pytest.approx(0.01 + 0.015)
    assert request.finished_at == pytest.approx(0.01 + 1.0 + 0.015 + 101 * 46e-6)


def test_cached_tokens_are_not_computed():
    """900 of 1000 from the prefix cache: 10 ms and not 100; the prompt counts whole."""
    request = Request(0.0, 1000, 1, cached_tokens=900)
    engine = an_engine(request)
    promised = engine.outstanding_tokens

    engine.advance(math.inf)

    assert promised == 101
    assert request.first_token_at == pytest.approx(0.01)
    assert engine.totals.prompt_tokens == 1000
    assert engine.totals.cached_prompt_tokens == 900


def test_a_prompt_that_is_cached_whole_computes_its_last_token():
    """As vLLM: logits need one position."""
    engine = an_engine(Request(0.0, 64, 1, cached_tokens=64))

    engine.advance(math.inf)

    assert engine.totals.cached_prompt_tokens == 63


def test_cached_tokens_lengthen_the_attention_of_the_rest():
    """Of (s + p)^2 - s^2: the last 100 of 1000 attend to 1000."""
    law = replace(PLAIN, beta=1e-6)
    request = Request(0.0, 1000, 1, cached_tokens=900)
    engine = an_engine(request, law=law)

    engine.advance(math.inf)

    assert request.first_token_at == pytest.approx(0.01 + 1e-6 * (1000**2 - 900**2))


def test_prompts_share_the_steps_token_budget_in_their_order():
    """1500 and 300 tokens, 1000 a step: 0.1 s, then 500 + 300 in 0.08 s."""
    first, second = Request(0.0, 1500, 1), Request(0.0, 300, 1)
    engine = an_engine(first, second)

    engine.advance(math.inf)

    assert first.first_token_at == second.first_token_at == pytest.approx(0.18)


def test_a_decoding_sequence_keeps_its_token_while_others_prefill():
    """A prompt of 1000 next to a decoder has 999 tokens in the first step and 1 in the second."""
    decoder, prompt = Request(0.0, 1, 50), Request(0.005, 1000, 1)
    engine = an_engine(decoder, prompt)

    engine.advance(math.inf)

    assert prompt.first_token_at == pytest.approx(0.01 + 0.0999 + 0.01)
    assert decoder.finished_at == pytest.approx(0.01 + 0.0999 + 48 * 0.01)


def test_nobody_overtakes_in_the_queue():
    """The head needs more KV cache than is left: the small one behind it waits as well."""
    holder = Request(0.0, 6000, 200)
    large, small = Request(1.0, 5000, 1), Request(1.0, 10, 1)
    engine = an_engine(holder, large, small)

    engine.advance(1.5)
    queued = (engine.running, engine.waiting)
    engine.advance(math.inf)

    assert queued == (1, 2)
    assert large.first_token_at == pytest.approx(holder.finished_at + 0.5)
    assert small.first_token_at > large.first_token_at


def test_the_batch_has_a_number_of_seats():
    """Nine requests, eight seats: the ninth begins when one finishes."""
    requests = [Request(0.0, 10, 5 + index) for index in range(9)]
    engine = an_engine(*requests)

    engine.advance(0.02)
    batch = (engine.running, engine.waiting)
    engine.advance(math.inf)

    assert batch == (8, 1)
    assert requests[8].first_token_at > requests[0].finished_at


def test_a_request_that_comes_during_a_step_is_in_no_gauge_yet():
    """The step that could take it up has not begun: neither running nor waiting, but in flight."""
    engine = an_engine(Request(0.0, 1000, 10), Request(0.05, 10, 1))

    engine.advance(0.06)
    during = (engine.running, engine.waiting, engine.in_flight)
    engine.advance(0.105)
    afterwards = (engine.running, engine.waiting, engine.in_flight)

    assert during == (1, 0, 2)
    assert afterwards == (2, 0, 2)


def test_a_full_cache_preempts_the_latest_who_recomputes_later():
    """Both grow from 4,900 to 5,050: at 10,000 the second gives way, and keeps its first token."""
    law = replace(PLAIN, max_num_batched_tokens=10_000)
    first, second = Request(0.0, 4900, 150), Request(0.0, 4900, 150)
    engine = an_engine(first, second, law=law)

    engine.advance(1.9)
    before = (engine.running, engine.waiting, engine.kv_usage)
    engine.advance(2.3)
    after = (engine.running, engine.waiting, engine.totals.preemptions)
    engine.advance(math.inf)

    assert before == (2, 0, pytest.approx(0.9984, abs=1e-3))
    assert after == (1, 1, 1)
    assert second.first_token_at == first.first_token_at
    again = 0.4901 + 0.01 * 48
    assert second.finished_at == pytest.approx(first.finished_at + again, abs=0.02)


def test_recomputing_is_more_work_but_no_more_prompt():
    """What preemption throws away is outstanding again, and the prompt counts once."""
    law = replace(PLAIN, max_num_batched_tokens=10_000)
    engine = an_engine(Request(0.0, 4900, 150), Request(0.0, 4900, 150), law=law)

    engine.advance(1.9)
    before = engine.outstanding_tokens
    engine.advance(2.1)
    after = engine.outstanding_tokens
    engine.advance(math.inf)

    assert after - before > 4900 - 60
    assert engine.outstanding_tokens == 0
    assert engine.totals.prompt_tokens == 9800


def test_a_prompt_under_way_is_the_first_to_go():
    """4,700 tokens at 7 a step beside a decoder that fills the cache: it gives its 2,100 back."""
    law = replace(PLAIN, max_num_batched_tokens=8)
    decoder, late = Request(0.0, 5000, 900), Request(6.5, 4700, 5)
    engine = an_engine(decoder, late, law=law)

    engine.advance(10.0)
    state = (engine.running, engine.waiting, engine.totals.preemptions, late.first_token_at)
    promised = engine.outstanding_tokens
    engine.advance(math.inf)

    assert state == (1, 1, 1, None)
    assert promised == 4705 + round((decoder.finished_at - 10.0) / 0.01)
    assert late.first_token_at > decoder.finished_at


def test_an_idle_engine_begins_when_something_comes():
    engine = an_engine(Request(7.0, 100, 1))

    before = engine.advance(6.9)
    (request,) = engine.advance(7.1)

    assert before == []
    assert request.finished_at == pytest.approx(7.01)


def test_a_request_that_waited_elsewhere_enters_now():
    """Its time to first token runs from its arrival: a router held it for 3 s."""
    engine = an_engine()
    engine.advance(10.0)
    request = Request(7.0, 100, 1)

    engine.submit(request)
    engine.advance(11.0)

    assert request.first_token_at == pytest.approx(10.01)
    assert engine.ttft.sum_seconds == pytest.approx(3.01)
    assert engine.totals.queue_seconds == pytest.approx(3.0)


def test_what_has_not_ended_has_not_happened():
    """A step of 100 ms is not seen at 99, and seen at 100."""
    request = Request(0.0, 1000, 1)
    engine = an_engine(request)

    too_early = engine.advance(0.099)
    state = (request.first_token_at, engine.totals.generation_tokens, engine.running)
    in_time = engine.advance(0.1001)

    assert too_early == []
    assert state == (None, 0, 1)
    assert in_time == [request]


def test_first_tokens_are_counted_in_vllms_buckets():
    """10 ms and 0.1 s: the first in le=0.01, both in le=0.25."""
    engine = an_engine(Request(0.0, 90, 1), Request(1.0, 1000, 1))

    engine.advance(math.inf)

    ttft = engine.ttft
    counts = dict(zip(ttft.bounds, ttft.counts, strict=True))
    assert isinstance(ttft, Histogram)
    assert ttft.bounds == (*TTFT_BOUNDS, math.inf)
    assert (counts[0.005], counts[0.01], counts[0.08], counts[0.25], ttft.count) == (0, 1, 1, 2, 2)
    assert ttft.sum_seconds == pytest.approx(0.11)


def test_durations_and_queue_times_add_up_when_requests_end():
    """Two prompts of a whole budget each: the second is taken up after 0.1 s."""
    engine = an_engine(Request(0.0, 1000, 1), Request(0.0, 1000, 1))

    engine.advance(math.inf)

    assert engine.totals.request_seconds == pytest.approx(0.1 + 0.2)
    assert engine.totals.queue_seconds == pytest.approx(0.1)


@pytest.mark.parametrize(
    "request_",
    [Request(0.0, 0, 1), Request(0.0, 1, 0), Request(0.0, 5, 1, 6), Request(0.0, 5, 1, -1)],
)
def test_a_request_for_nothing_is_refused(request_):
    with pytest.raises(ValueError, match="expected tokens in and out"):
        an_engine(request_)


def test_a_request_that_never_fits_is_refused():
    """It would wait for ever; a real engine answers 400."""
    engine = an_engine()

    with pytest.raises(ValueError, match="plain holds 9900 tokens"):
        engine.submit(Request(0.0, 9000, 901))

    assert engine.in_flight == 0


def test_a_pool_saturates_where_the_reference_measured_it():
    """70B on 4 H100s with Azure's 2023 chat of 1155 in and 211 out: 9.3 requests/s at the most."""
    law = preset("llama-3.1-70b-4xh100")
    engine = an_engine(*(Request(0.0, 1155, 211) for _ in range(4000)), law=law)

    last = engine.advance(math.inf)[-1].finished_at

    assert 4000 / last == pytest.approx(9.3, rel=0.1)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_num_seqs": 0}, "max_num_seqs is 0, expected 1 to max_num_batched_tokens"),
        ({"max_num_seqs": 1001}, "max_num_seqs is 1001"),
        ({"kv_tokens": 0}, "kv_tokens is 0, expected 1 up"),
        ({"a": 0.0}, "a is 0.0, expected above 0"),
        ({"beta": -1e-9}, "beta is -1e-09, expected 0 or more"),
        ({"alpha": math.nan}, "alpha is nan, expected 0 or more"),
    ],
)
def test_an_impossible_preset_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        replace(PLAIN, **wrong)


def test_presets_are_found_by_name_and_say_where_they_come_from():
    names = [law.name for law in PRESETS]

    assert len(set(names)) == len(names) == 8
    assert all(preset(name).source for name in names)
    with pytest.raises(KeyError, match=r"no engine preset 'gpt-2'; there are llama-3.1-8b-h100"):
        preset("gpt-2")
