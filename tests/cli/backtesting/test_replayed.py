"""What a replay says: equal or not, by how much, and where, in every form."""

import csv
import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cli.backtesting.replayed import as_html, rendered, verdict
from adapter.cli.backtesting.replaying import RECORDED, Pair, Replay
from adapter.fleet.units import Timestamp
from tests.build import T0


def a_pair(after: float, recorded: int = 2, now: int = 2, *, equal: bool | None = None) -> Pair:
    """Return a decision ``after`` T0; equal where the counts are, unless said otherwise."""
    return Pair(
        at=Timestamp(T0 + after),
        recorded=recorded,
        now=now,
        recorded_because=f"why {recorded}",
        now_because=f"why {now} now",
        equal=recorded == now if equal is None else equal,
    )


def a_replay(*pairs: Pair, sessions: int = 1) -> Replay:
    return Replay("default/chat", "chat.jsonl", sessions, pairs)


def every_quarter(*counts: tuple[int, int]) -> Replay:
    """Return decisions of 15 minutes each, as recorded and as now."""
    return a_replay(*(a_pair(900 * n, *pair) for n, pair in enumerate(counts)))


class TestReplay:
    def test_only_what_is_not_equal_to_the_byte_differs(self):
        found = a_replay(a_pair(0), a_pair(15, equal=False), a_pair(30, 2, 3))

        assert [pair.at - T0 for pair in found.differing] == [15, 30]
        assert [pair.at - T0 for pair in found.miscounted] == [30]

    def test_hours_are_counts_times_how_long_they_stood(self):
        assert every_quarter((2, 2), (2, 4), (2, 4), (2, 2)).hours == (2.0, 3.0)

    def test_a_pause_of_the_recorder_is_not_counted_as_time(self):
        """Three decisions, a night without the adapter, and three more: 6 quarters, and 2 more."""
        moments = (0, 900, 1800, 90_000, 90_900, 91_800)

        found = a_replay(*(a_pair(after, 4, 4) for after in moments))

        assert found.hours == (4 * 8 / 4, 4 * 8 / 4)

    def test_a_single_decision_has_lasted_no_time(self):
        assert a_replay(a_pair(0, 2, 5)).hours == (0.0, 0.0)

    def test_stretches_are_runs_of_one_other_count(self):
        found = every_quarter((2, 2), (2, 3), (2, 3), (3, 3), (3, 4), (2, 3))

        assert [(run[0].at - T0, len(run)) for run in found.stretches] == [
            (900, 2),
            (3600, 1),
            (4500, 1),
        ]

    @given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30))
    def test_stretches_hold_exactly_what_was_miscounted(self, counts):
        found = every_quarter(*counts)

        assert tuple(pair for run in found.stretches for pair in run) == found.miscounted


class TestVerdict:
    def test_equal_is_said_in_one_sentence(self):
        assert verdict(a_replay(a_pair(0))) == ("every decision is the recorded one, byte for byte")

    def test_different_is_loud_and_has_figures(self):
        found = every_quarter((2, 2), (2, 4), (2, 4), (2, 2))

        assert verdict(found) == (
            "2 decisions DIFFER from the recorded ones, 2 in the desired count: "
            "2.00 replica-hours desired then, 3.00 now"
        )


class TestText:
    def test_equal_takes_three_lines(self):
        assert rendered(a_replay(a_pair(0), a_pair(15)), "text") == (
            "default/chat on chat.jsonl: 2 decisions from Fri 15 Jan 2027 08:00 to "
            "Fri 15 Jan 2027 08:00, 1 session\n"
            "every decision is the recorded one, byte for byte\n"
            f"\nnote: {RECORDED}\n"
        )

    def test_sessions_are_counted(self):
        assert "2 sessions" in rendered(a_replay(a_pair(0), sessions=2), "text")

    def test_the_first_difference_is_told_with_both_reasons(self):
        text = rendered(every_quarter((2, 2), (2, 3)), "text")

        assert "the first, Fri 15 Jan 2027 08:15:" in text
        assert "  recorded  2, because why 2\n" in text
        assert "  now       3, because why 3 now\n" in text

    def test_stretches_are_listed_up_to_a_dozen(self):
        text = rendered(every_quarter(*[(2, 3), (2, 2)] * 14), "text")

        assert text.count("2 recorded,    3 now: why 3 now") == 12
        assert "and 2 more stretches" in text

    def test_other_words_alone_list_no_counts(self):
        text = rendered(a_replay(a_pair(0, equal=False)), "text")

        assert "0 in the desired count" in text
        assert "other counts" not in text


class TestForScripts:
    def test_json_says_whether_all_are_equal(self):
        same, other = (
            json.loads(rendered(found, "json"))
            for found in (a_replay(a_pair(0)), every_quarter((2, 2), (2, 3)))
        )

        assert (same["equal"], same["differing"], same["differences"]) == (True, 0, [])
        assert (other["equal"], other["differing"], other["differingInCount"]) == (False, 1, 1)
        assert other["differences"] == [
            {
                "at": "2027-01-15T08:15:00Z",
                "recorded": 2,
                "now": 3,
                "recordedBecause": "why 2",
                "nowBecause": "why 3 now",
            }
        ]
        assert same["notes"] == other["notes"] == [RECORDED]

    def test_csv_has_a_row_for_each(self):
        rows = list(csv.DictReader(io.StringIO(rendered(every_quarter((2, 2), (2, 3)), "csv"))))

        assert [(row["recorded"], row["now"], row["equal"]) for row in rows] == [
            ("2", "2", "true"),
            ("2", "3", "false"),
        ]
        assert [row["note"] for row in rows] == [RECORDED, ""]


class TestHtml:
    def test_both_counts_are_drawn_and_stretches_listed(self):
        text = as_html(every_quarter((2, 2), (2, 3), (2, 2)))

        assert text.count("<path") >= 4, "two lines and their keys"
        assert '<th scope="row">Fri 15 Jan 2027 08:15</th>' in text
        assert "DIFFER" in text

    def test_without_a_difference_there_is_no_table_of_them(self):
        text = as_html(a_replay(a_pair(0), a_pair(15)))

        assert "No other count." in text
        assert "byte for byte" in text


@pytest.mark.parametrize("form", ["text", "json", "csv"])
def test_every_form_says_that_the_queues_are_recorded_ones(form):
    assert RECORDED in rendered(a_replay(a_pair(0)), form)


def test_the_page_says_so_as_well():
    assert RECORDED in as_html(a_replay(a_pair(0)))
