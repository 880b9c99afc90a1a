"""From rates to requests: the right number, the right lengths, as bursty as asked for."""

import itertools
import tracemalloc
from statistics import fmean, pvariance

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.synthetic import (
    CHAT_DECK,
    DAY,
    LLMD_RAMP,
    SCENARIOS,
    Burst,
    Curve,
    Play,
    Shift,
    Steady,
    Week,
    lognormal_deck,
    quantile_deck,
)

ONE = Steady([(100, 10)])


def counts(play: Play, window: float) -> list[int]:
    found = [0] * int(play.length / window)
    for arrival in play.arrivals():
        found[int(arrival.after // window)] += 1
    return found


def played(rates, *, length: float, seed: int = 1, **more: object) -> Play:
    return Play(rates=rates, decks=ONE, length=Seconds(length), seed=seed, **more)  # type: ignore[arg-type]


def test_requests_come_in_order_within_the_length_and_alike_for_a_seed():
    play = played(Curve(((0.0, 30.0),)), length=300)

    found = list(play.arrivals())

    moments = [arrival.after for arrival in found]
    assert moments == sorted(moments)
    assert moments[0] >= 0
    assert moments[-1] < 300
    assert found == list(play.arrivals())
    assert found != list(played(Curve(((0.0, 30.0),)), length=300, seed=2).arrivals())


def test_the_number_of_requests_is_that_of_the_curve():
    """A triangle of 0 to 20 to 0 over two hours: 72,000 requests, to 2 %."""
    triangle = Curve(((0.0, 0.0), (3600.0, 20.0), (7200.0, 0.0)))

    assert sum(counts(played(triangle, length=7200), 60)) == pytest.approx(72_000, rel=0.02)


def test_without_noise_counts_are_poisson():
    """Variance over mean is 1 for counts of a second."""
    found = counts(played(Curve(((0.0, 20.0),)), length=8_000, minute_sigma=0.0), 1)

    assert pvariance(found) / fmean(found) == pytest.approx(1.0, abs=0.06)


def test_a_minute_has_the_noise_of_the_azure_weeks():
    """Sigma 7 % of a minute's rate: variance over mean of 1 + 0.07^2 x 600 = 3.94."""
    found = counts(played(Curve(((0.0, 10.0),)), length=60 * 800), 60)

    assert pvariance(found) / fmean(found) == pytest.approx(3.94, rel=0.12)
    assert fmean(found) == pytest.approx(600, rel=0.01)


def test_a_known_dispersion_is_kept():
    """Index 6 in windows of ten minutes, as ServeGen's m-large has it."""
    curve = Curve(((0.0, 0.5),), dispersions=(6.0,))

    found = counts(played(curve, length=600 * 1200), 600)

    assert pvariance(found) / fmean(found) == pytest.approx(6.0, rel=0.12)
    assert fmean(found) == pytest.approx(300, rel=0.01)


@pytest.mark.parametrize(("dispersion", "rate"), [(1.0, 3.0), (6.0, 0.0)])
def test_nothing_is_modulated_that_is_not_bursty_or_not_there(dispersion, rate):
    found = counts(played(Curve(((0.0, rate),), (dispersion,)), length=6000), 1)

    assert fmean(found) == pytest.approx(rate, rel=0.05)


def test_a_silent_stretch_has_no_requests():
    curve = Curve(((0.0, 5.0), (100.0, 5.0), (100.0, 0.0), (200.0, 0.0), (200.0, 5.0)))

    found = counts(played(curve, length=300), 100)

    assert found[1] == 0
    assert min(found[0], found[2]) > 400


def test_a_play_may_begin_in_the_middle():
    """From 100 s on the rate is 9: seconds count from there."""
    curve = Curve(((0.0, 1.0), (100.0, 1.0), (100.0, 9.0)))

    found = counts(played(curve, length=1000, since=Seconds(100.0)), 1000)

    assert found[0] == pytest.approx(9000, rel=0.04)


def test_a_play_holds_no_more_than_one_request():
    """A hundred thousand requests in less than 100 kB: a week is as small."""
    requests = played(Curve(((0.0, 1000.0),)), length=100).arrivals()
    next(requests)

    tracemalloc.start()
    number = sum(1 for _ in requests)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert number > 90_000
    assert peak < 100_000


def test_a_curve_is_linear_between_points_and_level_outside():
    curve = Curve(((10.0, 2.0), (20.0, 4.0), (20.0, 8.0)))

    assert [curve.rate(x) for x in (0.0, 10.0, 15.0, 19.999, 20.0, 99.0)] == pytest.approx(
        [2, 2, 3, 4, 8, 8], abs=1e-3
    )
    assert curve.dispersion(15.0) is None
    assert curve.length == 20


def test_a_dispersion_holds_from_its_point_on():
    curve = Curve(((0.0, 1.0), (10.0, 1.0)), dispersions=(2.0, 5.0))

    assert [curve.dispersion(x) for x in (0.0, 9.9, 10.0, 50.0)] == [2.0, 2.0, 5.0, 5.0]


def test_thinning_loses_burstiness_and_copies_keep_it():
    """Half of the requests of index 7 have index 4; two independent copies still have 7."""
    curve = Curve(((0.0, 10.0),), dispersions=(7.0,))

    assert (curve.times(0.5).rate(0), curve.times(0.5).dispersion(0)) == (5.0, 4.0)
    assert (curve.times(2.0).rate(0), curve.times(2.0).dispersion(0)) == (20.0, 7.0)


def test_a_quantile_deck_has_the_tables_marginals_and_no_correlation():
    """Half of the prompts up to 100, all up to 200; quantiles need not be evenly spaced."""
    deck = quantile_deck(
        [(0.0, 1), (0.5, 100), (1.0, 200)], [(0.0, 1000), (0.9, 1000), (0.95, 3000)]
    )
    prompts, outputs = zip(*deck, strict=True)

    assert sorted(prompts)[len(prompts) // 2] == pytest.approx(100, abs=1)
    assert (min(prompts), max(prompts)) == (1, 200)
    assert sorted(outputs)[int(0.9 * len(outputs)) - 2] == 1000
    assert sum(output == 3000 for output in outputs) / len(outputs) == pytest.approx(0.05, abs=0.01)
    low = fmean(output for prompt, output in deck if prompt < 100)
    assert low == pytest.approx(fmean(outputs), rel=0.05)


def test_a_lognormal_deck_has_its_medians_and_no_empty_request():
    deck = lognormal_deck((900.0, 0.8), (2.0, 2.0))

    assert sorted(p for p, _ in deck)[len(deck) // 2] == pytest.approx(900, rel=0.05)
    assert min(o for _, o in deck) == 1


def test_a_shift_lengthens_prompts_for_good():
    shift = Shift([(100, 10)], at=Seconds(50.0), factor=2.0)

    assert (shift.deck(49.9), shift.deck(50.0)) == ([(100, 10)], [(200, 10)])


def test_a_week_has_days_and_a_weekend():
    """Peak at 14:00 with 1.6 of the mean, night at 0.4, and half of it on Saturday."""
    week = Week(10.0)

    assert week.rate(14 * 3600) == pytest.approx(16.0)
    assert week.rate(2 * 3600) == pytest.approx(4.0)
    assert week.rate(5 * DAY + 14 * 3600) == pytest.approx(8.0)
    assert week.rate(7 * DAY + 14 * 3600) == pytest.approx(16.0)
    assert week.dispersion(0.0) is None


def test_clocks_that_are_set_forward_bring_the_day_an_hour_earlier():
    week = Week(10.0, clocks_change=Seconds(DAY))

    assert week.rate(14 * 3600) == pytest.approx(16.0)
    assert week.rate(DAY + 13 * 3600) == pytest.approx(16.0)


def test_a_burst_rises_stays_and_falls():
    burst = Burst(Seconds(100.0), times=3.0, length=Seconds(50.0), rise=Seconds(10.0))

    factors = [burst.factor(x) for x in (99, 100, 105, 110, 160, 165, 170, 999)]

    assert factors == pytest.approx([1, 1, 2, 3, 3, 2, 1, 1])


def test_llmds_ramp_has_the_published_steps():
    """2, 4, 6, 8, 10, 4, 1 requests a second: 330 s, five times 360 s, 300 s."""
    assert [LLMD_RAMP.rate(x) for x in (329, 330, 1049, 1411, 1769, 1771, 2131)] == [
        *(2, 4, 6, 10, 10, 4, 1)
    ]
    assert LLMD_RAMP.length == 2430


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_plays(name):
    scenario = SCENARIOS[name]

    found = list(itertools.islice(scenario.play(seed=1).arrivals(), 2000))
    short = list(scenario.play(seed=1, length=Seconds(30.0)).arrivals())

    assert len(found) == 2000
    assert short == found[: len(short)]
    assert scenario.length >= 2430


def test_a_flash_crowd_is_four_times_the_load():
    rates = SCENARIOS["flash-crowd"].rates

    assert rates.rate(DAY + 10.2 * 3600) / rates.rate(10.2 * 3600) == pytest.approx(4.0)


def test_the_chat_deck_is_that_of_a_conversation():
    assert fmean(prompt for prompt, _ in CHAT_DECK) == pytest.approx(1240, rel=0.03)
    assert fmean(output for _, output in CHAT_DECK) == pytest.approx(115, rel=0.03)
