"""The history of offered work: compact, bounded, and never made of what was not seen."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.history import (
    BIN,
    MOST_BINS,
    HistoryError,
    WorkBin,
    WorkHistory,
    believed,
    bins_of,
    dump_history,
    load_history,
    trusted,
)

WEEK = Seconds(7 * 86_400.0)
FIRST = 6_000_000


def a_bin(place: int, requests: float | None = 5.0, **more: object) -> WorkBin:
    given = {"prompt_tokens": 100.0, "output_tokens": 10.0, "seconds": BIN, **more}
    return WorkBin(start=Timestamp((FIRST + place) * BIN), requests=requests, **given)  # type: ignore[arg-type]


def a_history(*requests: float | None) -> WorkHistory:
    return WorkHistory().with_bins(
        (a_bin(place, amount) for place, amount in enumerate(requests)), keep=WEEK
    )


bins = st.lists(
    st.builds(
        a_bin,
        st.integers(0, 60),
        st.none() | st.integers(0, 1000).map(float),
        masked=st.booleans(),
    ),
    max_size=30,
)


@given(bins, bins)
def test_merging_the_same_bins_again_changes_nothing(some: list[WorkBin], other: list[WorkBin]):
    once = WorkHistory().with_bins(some, keep=WEEK).with_bins(other, keep=WEEK)

    assert once.with_bins(other, keep=WEEK) == once
    assert once.with_bins(some, keep=WEEK) == once
    assert once.with_bins(once.bins(), keep=WEEK) == once


@given(bins)
def test_a_masked_bin_never_counts(some: list[WorkBin]) -> None:
    believable = [one for one in some if not one.masked]

    assert WorkHistory().with_bins(some, keep=WEEK) == WorkHistory().with_bins(
        believable, keep=WEEK
    )


@given(bins)
def test_it_comes_back_from_json_as_it_was(some: list[WorkBin]) -> None:
    history = WorkHistory().with_bins(some, keep=WEEK)

    assert load_history(dump_history(history)) == history


@given(bins, st.sampled_from([900.0, 3000.0, 86_400.0]))
def test_bin_by_bin_comes_to_the_same_as_at_once(some: list[WorkBin], keep: float) -> None:
    """Not where an earlier bin follows a later one: what was cut off does not come back."""
    told = sorted({one.start: one for one in some if not one.masked}.items())
    one_by_one = WorkHistory()
    for _, one in told:
        one_by_one = one_by_one.with_bins([one], keep=Seconds(keep))

    at_once = WorkHistory().with_bins([one for _, one in told], keep=Seconds(keep))

    assert one_by_one.offered() == at_once.offered()
    assert one_by_one.end == at_once.end


def test_what_was_seen_here_is_not_overwritten_and_older_bins_come_before_it() -> None:
    own = WorkHistory().with_bins([a_bin(2, 7.0)], keep=WEEK)

    merged = own.with_bins([a_bin(0, 1.0), a_bin(2, 99.0), a_bin(3, 4.0)], keep=WEEK)

    assert merged.offered() == [1.0, None, 7.0, 4.0]
    assert [one.masked for one in merged.bins()] == [False, True, False, False]
    assert merged.end == (FIRST + 4) * BIN


def test_it_keeps_no_more_than_is_asked_for() -> None:
    history = WorkHistory().with_bins((a_bin(n, float(n)) for n in range(10)), keep=Seconds(900.0))

    assert history.offered() == [7.0, 8.0, 9.0]
    assert history.with_bins([a_bin(0, 1.0)], keep=Seconds(900.0)) == history


def test_a_bin_that_is_not_over_waits() -> None:
    over = Timestamp((FIRST + 1) * BIN)

    history = WorkHistory().with_bins([a_bin(0), a_bin(1)], keep=WEEK, until=over)

    assert len(history) == 1


def test_four_weeks_are_the_most_and_a_bin_the_least() -> None:
    assert bins_of(Seconds(1.0)) == 1
    assert bins_of(Seconds(1e9)) == MOST_BINS == 8064


def test_four_weeks_stay_compact() -> None:
    history = WorkHistory().with_bins((a_bin(n) for n in range(MOST_BINS)), keep=Seconds(1e9))

    assert len(history) == MOST_BINS
    assert len(dump_history(history)) < 135_000


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (a_bin(0, seconds=Seconds(60.0)), "a bin of 60 s at 1800000000 is not on the grid"),
        (WorkBin(Timestamp(7.0), BIN, 1.0, 1.0, 1.0), "a bin of 300 s at 7 is not on the grid"),
        (a_bin(0, -1.0), "amounts are 0 or more"),
        (a_bin(0, float("inf")), "amounts are 0 or more"),
        (a_bin(0, float("nan")), "amounts are 0 or more"),
    ],
)
def test_a_bin_that_is_none_is_refused(one: WorkBin, words: str) -> None:
    with pytest.raises(HistoryError, match=words):
        WorkHistory().with_bins([one], keep=WEEK)


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([5.0, 0.0, 0.0, 5.0], [5.0, None, None, 5.0]),
        ([5.0, 3.0, 0.5, 0.0, 0.5, 3.0, 5.0], [5.0, 3.0, 0.5, 0.0, 0.5, 3.0, 5.0]),
        ([0.0, 5.0, 0.0], [0.0, 5.0, 0.0]),
        ([5.0, 0.0, None, 0.0, 5.0], [5.0, 0.0, None, 0.0, 5.0]),
        ([0.0, 0.0], [0.0, 0.0]),
        ([5.0, 6.0], [5.0, 6.0]),
    ],
)
def test_zeros_between_busy_neighbours_are_a_gap_and_a_quiet_night_is_not(
    values: list[float | None], told: list[float | None]
) -> None:
    assert believed(values) == told


def test_tokens_stand_in_where_the_engine_counts_no_requests() -> None:
    history = WorkHistory().with_bins(
        [a_bin(0, None), a_bin(1, None, prompt_tokens=None)], keep=WEEK
    )

    assert history.offered() == [110.0, None]


def _damaged(**changes: object) -> bytes:
    return json.dumps({**json.loads(dump_history(a_history(1.0, 2.0))), **changes}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{", "is damaged"),
        (_damaged(more=1), "is damaged"),
        (_damaged(version=2), "has version 2, this release reads 1: it begins anew"),
        (_damaged(requests="AAAA"), "has columns of 8, 8 and 3 bytes"),
        (
            _damaged(requests="AAAAAAA=", prompt_tokens="AAAAAAA=", output_tokens="AAAAAAA="),
            "bytes",
        ),
        (_damaged(requests="AACAvwAAgL8="), "amounts below 0"),
    ],
)
def test_a_damaged_history_is_refused_with_a_sentence(data: bytes, words: str) -> None:
    with pytest.raises(HistoryError, match=words):
        load_history(data)


def test_more_than_four_weeks_are_refused() -> None:
    column = bytes(4 * (MOST_BINS + 1))

    with pytest.raises(HistoryError, match="more than four weeks"):
        trusted(WorkHistory(1, FIRST, column, column, column))


def test_a_history_ahead_of_the_clock_is_refused() -> None:
    history = a_history(1.0, 2.0)

    assert trusted(history, Timestamp(history.end - BIN)) is history
    with pytest.raises(HistoryError, match="ends 900 s ahead of the clock, which was set back"):
        trusted(history, Timestamp(history.end - 900.0))
