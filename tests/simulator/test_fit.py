"""A preset from a log: known engines are found again, and real ones are met."""

from dataclasses import replace

import pytest

from adapter.simulator.fit import Short, fit, limits_of, predict
from adapter.simulator.replay import Spread, compare
from adapter.simulator.request_log import read_log
from tests.simulator.logs import KNOWN, REAL, a_log, real_log

SEATED = replace(KNOWN, max_num_seqs=16)
CROWDED = replace(KNOWN, kv_tokens=9000)


def log_of(preset, **more):
    return read_log(a_log(preset, **more), name="log.csv")


def test_a_log_that_the_engine_wrote_is_met_by_its_own_preset():
    """The first token comes, and the last, where the log has them."""
    found = compare(log_of(KNOWN), KNOWN)

    assert found.requests == 120
    assert found.ttft_error < 1e-9
    assert found.e2e_error < 1e-9
    assert found.model_tpot.p50 == pytest.approx(found.log_tpot.p50)


def test_the_limits_show_in_the_queue():
    """16 seats; 9,000 tokens of KV cache; neither: roomy, and said so."""
    seats = limits_of(log_of(SEATED, rate=20.0))
    cache = limits_of(log_of(CROWDED, rate=20.0))
    neither = limits_of(log_of(KNOWN, rate=2.0))

    assert (seats.short, seats.max_num_seqs) == (Short.SEATS, pytest.approx(16, abs=1))
    assert (cache.short, cache.kv_tokens) == (Short.KV_CACHE, pytest.approx(9000, rel=0.1))
    assert (neither.short, neither.max_num_seqs) == (Short.NOTHING, 256)


def test_a_request_larger_than_the_usual_one_fits_the_cache():
    """What was answered must have fitted: the estimate is never below it."""
    log = log_of(CROWDED, rate=20.0)
    huge = replace(log[-1], input_tokens=30_000)

    assert limits_of([*log, huge]).kv_tokens > 30_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "rate", "ttft_error", "e2e_error"),
    [(SEATED, 20.0, 0.025, 0.01), (CROWDED, 20.0, 0.06, 0.03), (KNOWN, 8.0, 0.08, 0.01)],
    ids=["seats", "cache", "light"],
)
def test_a_known_engine_is_found_again(law, rate, ttft_error, e2e_error):
    """From its log alone.

    Where nobody queues, a first token is as exact as the step it falls in: 10 of 100 ms.
    """
    log = log_of(law, rate=rate)

    preset = fit(log, limits_of(log), name="found", source="a test")

    found = compare(log, preset)
    assert found.ttft_error < ttft_error
    assert found.e2e_error < e2e_error
    assert preset.name == "found"


@pytest.mark.slow
def test_proportions_are_taken_from_the_others():
    """An engine three times as slow: its b and e stand to its a as the fast one's do."""
    slow = replace(KNOWN, a=0.06, b=12e-5, c=6e-7, e=0.03, alpha=3e-4)
    log = log_of(slow, rate=2.0)

    prediction = predict(log, limits_of(log), others=[KNOWN], name="slow")

    preset = prediction.preset
    assert preset.b / preset.a == pytest.approx(KNOWN.b / KNOWN.a, rel=0.01)
    assert preset.e / preset.a == pytest.approx(KNOWN.e / KNOWN.a, rel=0.01)
    assert prediction.comparison.e2e_error < 0.02


@pytest.mark.slow
def test_a_cache_too_small_for_a_logged_request_is_never_chosen():
    """What costs infinitely much ends nothing: a queue for two seats asks for a tiny cache."""
    log = log_of(replace(KNOWN, max_num_seqs=2), count=40, rate=2.0)
    largest = max(one.input_tokens + one.output_tokens for one in log)
    tight = replace(
        limits_of(log), kv_tokens=round(1.02 * largest), max_num_seqs=256, short=Short.KV_CACHE
    )

    preset = fit(log, tight, name="found", source="a test")

    assert largest <= preset.admissible_tokens < 1.1 * largest


@pytest.mark.slow
def test_what_a_log_does_not_show_stays_within_reach():
    """No cost of a sequence, and one request at a time: b goes down, and not to nothing."""
    log = log_of(replace(KNOWN, b=0.0), count=40, rate=0.05)

    preset = fit(log, limits_of(log), name="found", source="a test")

    assert compare(log, preset).e2e_error < 0.01
    assert preset.b > 0


def test_percentiles_of_nothing_are_no_number():
    assert repr(Spread.of([])) == "Spread(p50=nan, p90=nan, p99=nan)"
    assert Spread.of(range(1, 101)) == Spread(50, 90, 99)


@pytest.fixture(scope="module")
def real():
    """Return every real log with its limits and its preset."""
    logs = {name: read_log(real_log(name).read_bytes(), name=name) for name in REAL}
    limits = {name: limits_of(log) for name, log in logs.items()}
    fits = {name: fit(log, limits[name], name=name, source="x") for name, log in logs.items()}
    return logs, limits, fits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ttft_error", "e2e_error"),
    list(zip(REAL, (0.04, 0.05, 0.03), (0.012, 0.010, 0.007), strict=True)),
)
def test_real_engines_are_met(real, name, ttft_error, e2e_error):
    """Mean error of the last token at most 1.2, 1.0 and 0.7 %; percentiles within 3 %."""
    logs, _, fits = real

    found = compare(logs[name], fits[name])

    assert found.e2e_error < e2e_error
    assert found.ttft_error < ttft_error
    assert fits[name].a >= fits[name].e
    for log_s, model_s in (
        (found.log_ttft, found.model_ttft),
        (found.log_tpot, found.model_tpot),
    ):
        for percentile in ("p50", "p90", "p99"):
            assert getattr(model_s, percentile) == pytest.approx(
                getattr(log_s, percentile), rel=0.03
            )


@pytest.mark.slow
@pytest.mark.parametrize("name", REAL)
def test_real_engines_are_foretold_from_the_others(real, name):
    """Two logs fitted, the third calibrated on 100 requests: the other 200 within 2.5 %."""
    logs, limits, fits = real
    others = [preset for other, preset in fits.items() if other != name]

    prediction = predict(logs[name], limits[name], others=others, name=name)

    assert prediction.calibrated_on == 100
    assert prediction.comparison.requests == 200
    assert prediction.comparison.e2e_error < 0.025
    assert prediction.comparison.ttft_error < 0.06
