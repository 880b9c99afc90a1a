"""The hours that are judged are those in which something happens, and loads scale."""

from datetime import UTC, datetime

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.stretches import KNOWN, QUICK, WHOLE, Hours, Scaled, stretch
from adapter.simulator.synthetic import SCENARIOS, Curve
from adapter.simulator.traces import TraceError

HOUR = 3600.0


def test_every_load_has_its_hours():
    assert set(WHOLE) == set(KNOWN)


def test_the_quick_ones_need_no_files():
    assert set(QUICK) <= set(SCENARIOS)


@pytest.mark.parametrize("hours", [WHOLE, QUICK], ids=["whole", "quick"])
def test_no_stretch_reaches_beyond_its_scenario(hours):
    for name in hours.keys() & SCENARIOS.keys():
        part = stretch(name, hours[name])

        assert part.since + part.length <= SCENARIOS[name].length


@pytest.mark.parametrize(
    ("name", "hours", "moment"),
    [
        ("flash-crowd", WHOLE, 34.0),
        ("flash-crowd", QUICK, 34.0),
        ("longer-prompts", WHOLE, 59.0),
        ("longer-prompts", QUICK, 59.0),
        ("clocks-change", WHOLE, 170.0),
        ("bursts", WHOLE, 35.2),
    ],
)
def test_what_a_scenario_is_about_happens_while_it_is_judged(name, hours, moment):
    """``moment`` in hours since the scenario's begin."""
    part = hours[name]

    assert part.since + part.warm_up < moment < part.since + part.warm_up + part.judged


def test_the_peak_is_that_of_the_judged_hours():
    """15 requests/s, swing 0.6, four times of it at the crowd; hours before see less."""
    crowd = stretch("flash-crowd", Hours(since=33.0, warm_up=0.5, judged=1.0))
    before = stretch("flash-crowd", Hours(since=32.0, warm_up=0.5, judged=1.0))

    assert crowd.peak == pytest.approx(4 * crowd.rates.rate(34.5 * HOUR) / 4, rel=0.05)
    assert before.peak < crowd.peak / 3


def test_twice_the_load_is_twice_the_requests_at_the_same_hours():
    part = stretch("office-week", Hours(since=38.0, warm_up=0.05, judged=0.1))

    single, double = (sum(1 for _ in part.play(f, seed=3).arrivals()) for f in (1.0, 2.0))

    assert double == pytest.approx(2 * single, rel=0.05)
    assert all(one.after < part.length for one in part.play(1.0, seed=3).arrivals())


@pytest.mark.parametrize(("factor", "expected"), [(0.5, 3.0), (1.0, 5.0), (4.0, 5.0)])
def test_a_thinned_load_is_less_bursty_and_copies_are_as_bursty(factor, expected):
    scaled = Scaled(Curve(((0.0, 2.0), (600.0, 2.0)), (5.0, 5.0)), factor)

    assert scaled.dispersion(10.0) == expected
    assert scaled.rate(10.0) == 2.0 * factor


def test_a_load_that_does_not_know_how_bursty_it_was_stays_so():
    assert Scaled(Curve(((0.0, 2.0),)), 0.5).dispersion(1.0) is None


def test_synthetic_weeks_begin_on_a_monday():
    part = stretch("office-week", Hours(since=24.0, warm_up=0.5, judged=0.5))

    assert datetime.fromtimestamp(part.begin, UTC).strftime("%a %H:%M") == "Tue 00:00"


def test_a_trace_keeps_its_date(tmp_path, monkeypatch):
    """Azure's conversations: the judged day, 24 hours on, is their Monday."""
    (tmp_path / "azure2024_conv_week_digitised.csv").write_text(
        "timestamp_s,requests_per_min\n0,600\n604800,1200\n"
    )
    (tmp_path / "azure2024_token_quantiles_digitised.csv").write_text(
        "percentile,conv_input_tokens,conv_output_tokens\n0,10,1\n100,2000,300\n"
    )
    monkeypatch.setenv("LEADTIME_TRACES", str(tmp_path))

    part = stretch("azure-conv", WHOLE["azure-conv"])

    judged = datetime.fromtimestamp(part.begin + part.warm_up, UTC)
    assert judged.strftime("%a %H:%M") == "Mon 00:00"
    assert part.judged == Seconds(24 * HOUR)
    assert 10.0 < part.peak < 20.0


def test_a_missing_trace_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADTIME_TRACES", str(tmp_path / "nowhere"))

    with pytest.raises(TraceError, match="set LEADTIME_TRACES"):
        stretch("azure-conv", WHOLE["azure-conv"])
