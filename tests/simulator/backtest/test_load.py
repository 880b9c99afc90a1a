"""Loads: arrivals and bins of the same thing, parts, scale, gaps."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.load import Drawn, Requests, of_bins
from adapter.simulator.synthetic import Curve, Shift
from adapter.simulator.workload import Arrival
from tests.build import T0
from tests.simulator.backtest.plans import CARDS, a_bin, a_load


def some_requests(*afters: float, length: float = 600.0) -> Requests:
    every = tuple(Arrival(Seconds(after), 100 + n, 10) for n, after in enumerate(afters))
    return Requests("log", T0, every, Seconds(length))


class TestRequests:
    def test_at_scale_one_they_are_what_they_were(self):
        load = some_requests(0.0, 1.0, 61.0)

        assert tuple(load.arrivals(scale=1.0, seed=1)) == load.every

    def test_a_half_of_them_is_about_a_half(self):
        load = some_requests(*(n / 10 for n in range(4000)))

        assert len(list(load.arrivals(scale=0.5, seed=1))) == pytest.approx(2000, rel=0.1)

    @given(st.lists(st.floats(0.0, 590.0), max_size=30), st.floats(0.1, 4.0))
    def test_copies_come_in_order_within_the_minute_and_within_the_length(self, afters, scale):
        load = some_requests(*sorted(afters))

        came = list(load.arrivals(scale=scale, seed=3))

        assert all(one.after <= two.after for one, two in pairwise(came))
        assert all(one.after < load.length for one in came)
        assert len(came) <= (int(scale) + 1) * len(afters)

    def test_twice_the_load_has_each_request_twice(self):
        load = some_requests(0.0, 100.0, 200.0)

        came = list(load.arrivals(scale=2.0, seed=1))

        assert sorted(one.prompt_tokens for one in came) == [100, 100, 101, 101, 102, 102]
        assert all(
            0 <= two.after - one.after < 60 for one, two in zip(came[::2], came[1::2], strict=True)
        )

    def test_bins_count_what_comes_in_them(self):
        load = some_requests(0.0, 59.9, 60.0, 130.0, length=150.0)

        bins = list(load.bins(Seconds(60.0), scale=1.0, seed=1))

        assert [one.requests for one in bins] == [2, 1, 1]
        assert [one.start - T0 for one in bins] == [0, 60, 120]
        assert [one.seconds for one in bins] == [60, 60, 30]
        assert bins[0].prompt_tokens == 201
        assert bins[2].output_tokens == 10

    def test_a_part_begins_anew(self):
        load = some_requests(0.0, 100.0, 200.0, 300.0).part(Seconds(100.0), Seconds(150.0))

        assert [one.after for one in load.every] == [0.0, 100.0]
        assert (load.begin, load.length) == (T0 + 100, 150.0)

    def test_a_part_beyond_the_end_is_empty(self):
        load = some_requests(0.0).part(Seconds(9999.0), None)

        assert (load.every, load.length) == ((), 0.0)

    def test_lengths_are_correlated_as_they_were(self):
        assert some_requests(0.0, 1.0).lengths() == ([(100, 10), (101, 10)],)


class TestDrawn:
    def test_arrivals_and_bins_tell_the_same_load(self):
        load = a_load(rate=10.0, length=3600.0, minute_sigma=0.07)

        arrivals = list(load.arrivals(scale=1.0, seed=1))
        bins = list(load.bins(Seconds(60.0), scale=1.0, seed=1))

        assert len(arrivals) == pytest.approx(36_000, rel=0.05)
        assert sum(one.requests for one in bins) == pytest.approx(36_000, rel=0.05)
        assert sum(one.prompt_tokens for one in bins) == pytest.approx(
            1200 * sum(one.requests for one in bins)
        )

    def test_equal_seeds_give_equal_bins_and_others_others(self):
        load = a_load(length=3600.0)

        one, two, other = (list(load.bins(Seconds(60.0), scale=1.0, seed=s)) for s in (1, 1, 2))

        assert one == two
        assert one != other

    def test_a_dispersion_makes_windows_differ_by_more_than_chance(self):
        calm = a_load(rate=10.0, length=36_000.0)
        wild = a_load(rate=10.0, length=36_000.0, rates=Curve(((0.0, 10.0),), (600.0,)))

        def spread(load: Drawn) -> float:
            counts = [one.requests for one in load.bins(Seconds(600.0), scale=1.0, seed=1)]
            mean = sum(counts) / len(counts)
            return sum((count - mean) ** 2 for count in counts) / len(counts) / mean

        assert spread(calm) < 5
        assert spread(wild) > 50

    def test_a_window_without_load_has_no_noise(self):
        load = a_load(rates=Curve(((0.0, 0.0),), (9.0,)))

        assert {one.requests for one in load.bins(Seconds(60.0), scale=1.0, seed=1)} == {0.0}

    def test_a_part_is_the_same_rate_later(self):
        curve = Curve(((0.0, 0.0), (600.0, 0.0), (600.0, 20.0)))

        part = a_load(rates=curve).part(Seconds(600.0), Seconds(60.0))

        (one,) = part.bins(Seconds(60.0), scale=1.0, seed=1)
        assert part.begin == T0 + 600
        assert one.requests == pytest.approx(1200, rel=0.2)

    def test_decks_that_differ_are_each_told_once(self):
        steady, shifting = a_load(), a_load(decks=Shift(CARDS, at=Seconds(300.0), factor=2.0))

        assert steady.lengths() == (CARDS,)
        assert {prompt for deck in shifting.lengths() for prompt, _ in deck} == {1200, 2400}


class TestBins:
    def test_the_rate_is_linear_between_the_middles(self):
        load = of_bins("history", [a_bin(0, 300), a_bin(300, 900)])

        assert load.rates.rate(150.0) == 1.0
        assert load.rates.rate(300.0) == 2.0
        assert load.rates.rate(450.0) == 3.0
        assert (load.begin, load.length) == (T0, 600.0)

    def test_lengths_are_drawn_around_the_bins_means(self):
        load = of_bins("history", [a_bin(0)])

        cards = load.decks.deck(10.0)
        assert sum(prompt for prompt, _ in cards) / len(cards) == pytest.approx(1000, rel=0.03)
        assert sum(output for _, output in cards) / len(cards) == pytest.approx(100, rel=0.03)
        assert max(cards)[0] > 4000, "some prompts are long"

    def test_equal_bins_share_a_deck(self):
        load = of_bins("history", [a_bin(0), a_bin(300), a_bin(600)])

        assert load.decks.deck(10.0) is load.decks.deck(610.0)

    def test_masked_bins_are_bridged_and_told(self):
        bins = [
            a_bin(0, 300),
            a_bin(300, 9e9, masked=True),
            a_bin(600, 0, masked=True),
            a_bin(900, 300),
        ]

        load = of_bins("history", bins)

        assert load.rates.rate(450.0) == 1.0
        assert load.gaps == ((Timestamp(T0 + 300), Timestamp(T0 + 900)),)

    def test_a_hole_between_bins_is_a_gap(self):
        load = of_bins("history", [a_bin(0), a_bin(900)])

        assert load.gaps == ((Timestamp(T0 + 300), Timestamp(T0 + 900)),)

    def test_minute_bins_have_a_noise_of_their_own(self):
        wide, narrow = (of_bins("h", [a_bin(0, seconds=s), a_bin(s, seconds=s)]) for s in (300, 60))

        assert wide.minute_sigma > 0
        assert narrow.minute_sigma == 0

    @pytest.mark.parametrize(
        ("bins", "said"),
        [
            ([a_bin(0, 0)], "no requests"),
            ([a_bin(0, masked=True)], "no requests"),
            ([a_bin(0), a_bin(0)], "begins before"),
            ([a_bin(0, seconds=0.0)], "0 s long"),
        ],
    )
    def test_what_tells_nothing_is_refused(self, bins, said):
        with pytest.raises(ValueError, match=said):
            of_bins("history", bins)

    @given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), min_size=1, max_size=20))
    def test_gaps_never_overlap_and_lie_within(self, told):
        bins = [a_bin(300 * n, count, masked=masked) for n, (count, masked) in enumerate(told)]
        if not any(not one.masked and one.requests > 0 for one in bins):
            return

        load = of_bins("history", bins)

        assert all(begin < end for begin, end in load.gaps)
        assert all(one[1] < two[0] for one, two in pairwise(load.gaps))
        assert all(begin >= T0 and end <= T0 + load.length for begin, end in load.gaps)
