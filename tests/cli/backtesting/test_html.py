"""The page: what is drawn of which figures, and that a long one stays legible and small."""

import re
from html import escape

from adapter.cli.backtesting.cost import Prices
from adapter.cli.backtesting.html import as_html
from adapter.simulator.backtest.load import COUNTERFACTUAL, of_bins
from adapter.simulator.backtest.outcome import Backtest
from tests.simulator.backtest.outcomes import (
    a_backtest,
    a_bound,
    a_moment,
    a_score,
    a_window,
    asked,
)
from tests.simulator.backtest.plans import a_bin, a_load, a_plan

FREE = Prices()


def page(found: Backtest, prices: Prices = FREE) -> str:
    return as_html(found, prices)


def figure(text: str, title: str) -> str:
    """Return the chart of that title, with its table."""
    return text.split(f"<h3>{title}</h3>")[1].split("<figure>", maxsplit=1)[0]


def facts(text: str) -> dict[str, str]:
    return dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))


class TestFacts:
    def test_the_large_figures_are_these(self):
        assert facts(page(a_backtest())) == {
            "in time": "100.00%",
            "worst 10 minutes": "100.00%",
            "replica-hours paid": "12",
            "the bound": "8",
            "paid / bound": "1.50",
            "starts": "3",
        }

    def test_prices_add_two(self):
        said = facts(page(a_backtest(), Prices(4, 2.5)))

        assert (said["GPU-hours"], said["to pay"]) == ("48", "120.00")

    def test_without_a_bound_there_is_a_dash(self):
        said = facts(page(a_backtest(bound=None)))

        assert (said["the bound"], said["paid / bound"]) == ("-", "-")

    def test_every_figure_of_the_text_stands_in_a_table(self):
        text = page(a_backtest())

        assert "<summary>All figures</summary>" in text
        assert ">flips</th>" in text


class TestNotes:
    def test_the_first_one_cannot_be_overlooked(self):
        text = page(a_backtest(mode="fluid"))

        assert f'<p class="note" role="note">{escape(COUNTERFACTUAL)}</p>' in text
        assert "<p>Fluid: " in text


class TestReplicas:
    def test_an_hour_is_drawn_by_the_minute(self):
        text = figure(page(a_backtest()), "Replicas")

        assert "Ten minutes each" not in text
        for name in ("serving", "demand", "desired", "which knew the load"):
            assert name in text

    def test_more_than_a_day_is_drawn_by_ten_minutes(self):
        plan = a_plan(a_load(length=30 * 3600.0))
        moments = tuple(a_moment(60 * n) for n in range(30 * 60))

        assert "Ten minutes each" in figure(
            page(a_backtest(plan=plan, moments=moments)), "Replicas"
        )

    def test_without_a_bound_its_plan_is_not_drawn(self):
        assert "which knew the load" not in page(a_backtest(bound=None))

    def test_the_maximum_is_drawn_where_it_was_in_the_way(self):
        assert "maximum 10" in page(a_backtest(asked=asked(2, 10)))
        assert "maximum 10" not in page(a_backtest(asked=asked(2, 9)))

    def test_what_nobody_could_tell_is_a_gap_in_the_line(self):
        moments = [a_moment(60 * n, demand=None if 20 <= n < 40 else 1.0) for n in range(61)]

        text = figure(page(a_backtest(moments=tuple(moments))), "Replicas")

        (path,) = re.findall(r'<path class="line c1" d="([^"]*)"', text)
        assert path.count("M") == 2

    def test_gaps_of_the_history_are_marked(self):
        load = of_bins("h", [a_bin(0), a_bin(900), a_bin(1200, seconds=2400)])

        text = figure(page(a_backtest(plan=a_plan(load))), "Replicas")

        assert "<title>no history: the load is made up</title>" in text


class TestRequests:
    def test_late_ones_are_told_by_hour(self):
        windows = [a_window(0, 100, 99), a_window(3600, 100, 100)]

        text = page(a_backtest(score=a_score(windows)))

        assert "Late requests by hour (1 hour)" in text
        assert "1.00%" in text

    def test_where_nobody_was_late_it_is_said(self):
        assert "No request was late." in page(a_backtest())

    def test_the_last_window_counts_only_the_time_it_had(self):
        """Five minutes of ten: 300 requests are one a second and not half of one."""
        plan = a_plan(a_load(length=900.0))
        found = a_backtest(
            plan=plan,
            score=a_score([a_window(0, 600, 600), a_window(600, 300, 300)]),
            moments=tuple(a_moment(60 * n) for n in range(16)),
        )

        text = figure(page(found), "Load")

        cells = re.findall(r"<td>([^<]*)</td>", text)
        assert set(cells) <= {"1", "-"}

    def test_what_is_left_over_at_the_end_is_late_and_no_load(self):
        """A request that never ended is judged at the end, where no time is left."""
        windows = [a_window(600 * n) for n in range(6)] + [a_window(3600, 7, 0)]

        text = page(a_backtest(score=a_score(windows)))

        assert "Late requests by hour (1 hour)" in text
        assert "7" in figure(text, "Late requests")

    def test_a_load_without_a_request_is_still_a_page(self):
        assert "<h3>Load</h3>" in page(a_backtest(score=a_score()))


class TestCost:
    def test_it_is_in_replica_hours_without_a_price(self):
        assert '<p class="axis">replica-hours</p>' in page(a_backtest())

    def test_it_is_in_money_with_one(self):
        text = page(a_backtest(bound=a_bound(*[2] * 60)), Prices(4, 2.5))

        assert '<p class="axis">to pay</p>' in text
        assert "the bound&#x27;s plan, its starts left out" in text


def test_the_name_of_a_policy_is_text():
    load = a_load(length=3600.0, name="<img src=x>")

    text = page(a_backtest(plan=a_plan(load)))

    assert "<img" not in text
    assert "&lt;img src=x&gt;" in text
