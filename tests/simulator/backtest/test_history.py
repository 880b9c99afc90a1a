"""Histories of offered work: what was not counted is a gap or a guess that is told, never 0."""

from dataclasses import dataclass

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.backtest.history import of_history
from tests.build import T0


@dataclass(frozen=True, slots=True)
class Work:
    """A bin as a source of histories makes it."""

    start: Timestamp
    seconds: Seconds
    prompt_tokens: float | None
    output_tokens: float | None
    requests: float | None
    masked: bool = False


def some_work(number: int, requests: float | None = 300.0, **more: object) -> Work:
    """Return five minutes of requests of 1000 + 100 tokens."""
    count = requests or 0.0
    given = {"prompt_tokens": 1000 * count, "output_tokens": 100 * count, **more}
    return Work(Timestamp(T0 + 300 * number), Seconds(300.0), requests=requests, **given)  # type: ignore[arg-type]


def test_bins_become_a_load():
    load = of_history("prometheus", [some_work(0), some_work(1, 600.0)])

    assert (load.name, load.begin, load.length) == ("prometheus", T0, 600.0)
    assert load.rates.rate(150.0) == 1.0
    assert load.rates.rate(450.0) == 2.0
    assert load.gaps == ()
    assert load.remarks == ()


def test_what_counted_no_requests_is_a_gap_and_no_zero():
    load = of_history("prometheus", [some_work(0), some_work(1, None), some_work(2)])

    assert load.rates.rate(450.0) == 1.0
    assert load.gaps == ((T0 + 300, T0 + 600),)


def test_a_quiet_night_is_a_zero_and_no_gap():
    load = of_history("prometheus", [some_work(0), some_work(1, 0.0), some_work(2)])

    assert load.rates.rate(450.0) == 0.0
    assert load.gaps == ()


def test_what_is_masked_stays_masked():
    load = of_history("prometheus", [some_work(0), some_work(1, masked=True), some_work(2)])

    assert load.gaps == ((T0 + 300, T0 + 600),)


@pytest.mark.parametrize("missing", ["prompt_tokens", "output_tokens"])
def test_lengths_that_were_not_counted_are_a_chats_and_it_is_said(missing):
    load = of_history("prometheus", [some_work(0), some_work(1, **{missing: None})])

    cards = load.decks.deck(450.0)
    side, mean = (0, 1200) if missing == "prompt_tokens" else (1, 200)
    assert sum(card[side] for card in cards) / len(cards) == pytest.approx(mean, rel=0.03)
    assert load.remarks == (
        "1 of 2 bins tell no tokens: requests of 1200 and 200 tokens are played there.",
    )


@pytest.mark.parametrize(
    ("works", "said"),
    [
        ([], "no history at all"),
        ([some_work(0, None)], "no requests"),
        ([some_work(0, 0.0)], "no re"),
    ],
)
def test_nothing_to_play_is_told(works, said):
    with pytest.raises(ValueError, match=said):
        of_history("prometheus", works)
