"""The summary for people: every figure, cut and not rounded, and what must be known about it."""

import math

import pytest

from adapter.cli.backtesting.cost import Prices
from adapter.cli.backtesting.text import as_text, moment, percent
from adapter.fleet.units import Seconds
from adapter.simulator.backtest.load import COUNTERFACTUAL
from adapter.simulator.backtest.outcome import Backtest
from tests.build import T0
from tests.simulator.backtest.outcomes import (
    a_backtest,
    a_bound,
    a_moment,
    a_score,
    a_window,
    asked,
)
from tests.simulator.backtest.plans import a_load, a_plan

FREE = Prices()


def lines(found: Backtest, prices: Prices = FREE) -> dict[str, str]:
    """Return the summary by its names, spaces made single."""
    table = as_text(found, prices).split("\n\n")[1]
    return {
        line.split("  ")[0].strip(): " ".join(line.split("  ", 1)[1].split())
        for line in table.splitlines()
    }


class TestHead:
    def test_it_says_what_was_played(self):
        first, second, *_ = as_text(a_backtest(), FREE).splitlines()

        assert first == (
            "default/chat on steady: 1.0 h from Fri 15 Jan 2027 08:00, requests played one by one"
        )
        assert second == "engine llama-3.1-70b-4xh100, load time 1m, seed 1"

    def test_scale_and_warm_up_are_said_only_where_there_are_any(self):
        plan = a_plan(a_load(length=7200.0), scale=0.25, warm_up=Seconds(3600.0), seed=7)

        first, second, *_ = as_text(a_backtest(plan=plan, mode="fluid"), FREE).splitlines()

        assert first.endswith("1.0 h from Fri 15 Jan 2027 09:00, fluid")
        assert second.endswith("load time 1m, 0.25 x the load, after 1h of warm-up, seed 7")


class TestSummary:
    def test_the_names_are_these(self):
        assert list(lines(a_backtest())) == [
            "in time",
            "worst 10 minutes",
            "TTFT p50, p99",
            "paid",
            "bound",
            "paid / bound",
            "starts",
            "most replicas",
            "flips",
        ]

    def test_in_time_says_of_how_many_and_within_what(self):
        found = a_backtest(score=a_score([a_window(0, 2000, 1979)]))

        assert lines(found)["in time"] == (
            "98.95% of 2,000 requests: first token within 2 s + 2 x its prefill"
        )

    def test_the_worst_ten_minutes_have_a_time(self):
        windows = [a_window(0), a_window(600, 100, 61), a_window(1200, 100, 62)]

        assert lines(a_backtest(score=a_score(windows)))["worst 10 minutes"] == (
            "61.00% from Fri 15 Jan 2027 08:10"
        )

    def test_without_a_request_there_is_no_such_time(self):
        said = lines(a_backtest(score=a_score()))

        assert said["worst 10 minutes"] == "100.00%"
        assert said["in time"].startswith("100.00% of 0 requests")

    def test_nobody_served_has_no_first_token(self):
        never = Seconds(math.nan)

        said = lines(a_backtest(score=a_score(ttft_p50=never, ttft_p99=never)))

        assert said["TTFT p50, p99"] == "-, -"

    def test_first_tokens_are_in_seconds(self):
        assert lines(a_backtest())["TTFT p50, p99"] == "0.10 s, 1.50 s"

    def test_paid_is_told_without_a_price_and_with_one(self):
        assert lines(a_backtest())["paid"] == "12.0 h replica-hours, 12.0 replicas on average"
        assert lines(a_backtest(), Prices(4, 2.5))["paid"] == (
            "12.0 h replica-hours, 12.0 replicas on average; 48.0 GPU-hours; 120.00 to pay"
        )

    def test_the_bound_has_its_price_as_well(self):
        said = lines(a_backtest(bound=a_bound(hours=8.0)), Prices(4, 2.5))

        assert said["bound"] == (
            "8.0 h replica-hours: nobody who serves 99% of the work in time pays less; 80.00 to pay"
        )
        assert said["paid / bound"] == "1.50"

    def test_without_a_bound_it_says_why_and_tells_no_ratio(self):
        said = lines(a_backtest(bound=None))

        assert said["bound"] == "- nothing came, or no fleet could serve it"
        assert "paid / bound" not in said

    def test_starts_are_told_by_the_day(self):
        assert lines(a_backtest())["starts"] == "3 72.0 a day"

    def test_the_most_replicas_stand_beside_the_maximum(self):
        moments = tuple(a_moment(60 * n, desired=10 if n < 30 else 2) for n in range(60))

        said = lines(a_backtest(asked=asked(2, 10, 2), moments=moments))

        assert said["most replicas"] == "10 of 10 allowed; 50.00% of the time at that"

    def test_flips_are_turns(self):
        assert lines(a_backtest(asked=asked(2, 4, 2, 4)))["flips"].startswith("2 times up after")


class TestMisses:
    def test_none_is_said(self):
        assert "misses by hour: none" in as_text(a_backtest(), FREE)

    def test_each_hour_with_some_is_a_line(self):
        windows = [a_window(0, 100, 99), a_window(3600, 100, 100), a_window(7200, 2000, 1500)]

        text = as_text(a_backtest(score=a_score(windows)), FREE)

        assert "  Fri 15 Jan 2027 08:00         1 of 100 (1.00%)" in text
        assert "  Fri 15 Jan 2027 10:00       500 of 2,000 (25.00%)" in text
        assert "09:00  " not in text

    def test_of_many_the_worst_dozen_in_the_order_of_time_and_a_sum(self):
        windows = [a_window(3600 * n, 1000, 1000 - n) for n in range(1, 21)]

        text = as_text(a_backtest(score=a_score(windows)), FREE)

        shown = [line for line in text.splitlines() if " of 1,000 (" in line]
        assert len(shown) == 12
        assert shown == sorted(shown, key=lambda line: int(line.split(" of ")[0].split()[-1]))
        assert f"and {sum(range(1, 9))} in 8 other hours" in text


def test_the_notes_stand_at_the_end_one_a_line():
    plan = a_plan(a_load(length=3600.0, remarks=("Made up.",)))

    text = as_text(a_backtest(plan=plan), FREE)

    assert text.endswith(f"note: {COUNTERFACTUAL}\nnote: Made up.\n")


@pytest.mark.parametrize(
    ("share", "said"),
    [(0.98996, "98.99%"), (0.99, "99.00%"), (1.0, "100.00%"), (0.0, "0.00%"), (0.29, "29.00%")],
)
def test_shares_are_cut_and_not_rounded(share, said):
    """98.996 % has not met an objective of 99 %; and 0.29 is 29 %, whatever floats make of it."""
    assert percent(share) == said


def test_moments_are_utc_with_their_day():
    assert moment(T0) == "Fri 15 Jan 2027 08:00"
