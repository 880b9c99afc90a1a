"""JSON and CSV: the same figures as in the text, none of them rounded away or made up."""

import csv
import io
import json
import math

import pytest

from adapter.cli.backtesting.cost import Prices
from adapter.cli.backtesting.document import as_csv, as_json, timeline
from adapter.fleet.units import Seconds
from adapter.simulator.backtest.load import COUNTERFACTUAL, of_bins
from adapter.simulator.backtest.outcome import Backtest
from tests.simulator.backtest.outcomes import a_backtest, a_bound, a_moment, a_score, a_window
from tests.simulator.backtest.plans import a_bin, a_plan

FREE = Prices()


def document(found: Backtest, prices: Prices = FREE) -> dict:
    return json.loads(as_json(found, prices))


def rows(found: Backtest, prices: Prices = FREE) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(found, prices))))


class TestJson:
    def test_its_keys_are_these(self):
        said = document(a_backtest())

        assert list(said) == [
            "policy", "load", "mode", "engine", "loadTimeSeconds", "seed", "notes", "summary",
            "hours", "timeline",
        ]  # fmt: skip
        assert list(said["summary"]) == [
            "attainment", "worstTenMinutes", "requests", "missed", "refused", "lost",
            "unfinished", "ttftP50Seconds", "ttftP99Seconds", "paidHours", "gpuHours", "cost",
            "boundHours", "boundCost", "ratio", "meanReplicas", "mostReplicas",
            "atMaximumShare", "starts", "startsPerDay", "flips", "counterfactual",
        ]  # fmt: skip
        assert list(said["timeline"][0]) == [
            "begin", "desired", "serving", "loading", "demand", "inFlight", "boundPlan",
            "requests", "missed", "paidHours", "gap",
        ]  # fmt: skip

    def test_the_summary_counts_what_was_missed_and_why(self):
        score = a_score([a_window(0, 1000, 940)], refused=10, lost=20, unfinished=30)

        summary = document(a_backtest(score=score))["summary"]

        assert (summary["requests"], summary["missed"]) == (1000, 60)
        assert (summary["refused"], summary["lost"], summary["unfinished"]) == (10, 20, 30)
        assert summary["attainment"] == 0.94

    def test_what_is_not_known_is_null_and_not_nan_or_zero(self):
        never = Seconds(math.nan)
        found = a_backtest(score=a_score(ttft_p50=never, ttft_p99=never), bound=None)

        summary = document(found)["summary"]

        unknown = {name for name, value in summary.items() if value is None}
        assert unknown == {
            "ttftP50Seconds", "ttftP99Seconds", "gpuHours", "cost", "boundHours", "boundCost",
            "ratio",
        }  # fmt: skip

    def test_prices_multiply(self):
        summary = document(a_backtest(bound=a_bound(hours=8.0)), Prices(4, 2.5))["summary"]

        assert summary["gpuHours"] == 48.0
        assert summary["cost"] == 120.0
        assert summary["boundCost"] == 80.0

    def test_gaps_stand_with_begin_and_end(self):
        load = of_bins("h", [a_bin(0), a_bin(900)])

        said = document(a_backtest(plan=a_plan(load)))

        assert said["load"]["gaps"] == [
            {"begin": "2027-01-15T08:05:00Z", "end": "2027-01-15T08:15:00Z"}
        ]

    def test_it_says_that_queues_are_counterfactual(self):
        said = document(a_backtest())

        assert said["notes"][0] == COUNTERFACTUAL
        assert said["summary"]["counterfactual"] == COUNTERFACTUAL


class TestTimeline:
    def test_demand_that_nobody_could_tell_is_none(self):
        found = a_backtest(moments=(a_moment(0, demand=None), a_moment(60, demand=None)))

        assert next(timeline(found))["demand"] is None

    def test_numbers_are_short(self):
        moments = (a_moment(0, demand=1.23456789, in_flight=7.77777),)

        row = next(timeline(a_backtest(moments=moments)))

        assert (row["demand"], row["inFlight"]) == (1.235, 7.8)


class TestCsv:
    def test_its_header_is_this(self):
        header = as_csv(a_backtest(), FREE).splitlines()[0]

        assert header == (
            "begin,desired,serving,loading,demand,in_flight,bound_plan,requests,missed,"
            "paid_hours,gap,cost,note"
        )

    def test_a_row_holds_ten_minutes(self):
        first, *rest = rows(a_backtest())

        assert len(rest) == 5
        assert first["begin"] == "2027-01-15T08:00:00Z"
        assert (first["desired"], first["serving"], first["bound_plan"]) == ("2", "2", "1")
        assert (first["requests"], first["missed"], first["gap"]) == ("1000", "0", "False")

    def test_cost_is_blank_without_a_price(self):
        assert {row["cost"] for row in rows(a_backtest())} == {""}

    def test_the_costs_add_up_to_what_was_paid(self):
        found = a_backtest()

        told = rows(found, Prices(4, 2.5))

        assert sum(float(row["cost"]) for row in told) == pytest.approx(
            10 * found.moments[-1].paid_hours, abs=1e-2
        )

    def test_what_nobody_could_tell_is_blank(self):
        moments = (a_moment(0, demand=None),)

        (row,) = rows(a_backtest(moments=moments, bound=None))

        assert (row["demand"], row["bound_plan"]) == ("", "")

    def test_the_notes_stand_in_the_first_row_alone(self):
        first, *rest = rows(a_backtest(mode="fluid"))

        assert COUNTERFACTUAL in first["note"]
        assert "approximated" in first["note"]
        assert {row["note"] for row in rest} == {""}


class TestPrices:
    @pytest.mark.parametrize(
        ("gpus", "price", "hours", "cost"),
        [
            (None, None, None, None),
            (8, None, 80.0, None),
            (None, 3.0, None, 30.0),
            (8, 3.0, 80.0, 240.0),
        ],
    )
    def test_what_was_not_said_is_not_made_up(self, gpus, price, hours, cost):
        prices = Prices(gpus, price)

        assert prices.gpu_hours(10.0) == hours
        assert prices.cost(10.0) == cost
