"""Fluid replicas keep the engine's own law: steady levels, what is full, and what is left over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.fleet.units import Timestamp
from adapter.simulator.backtest.flow import Lengths, Replica
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.saturation import saturated, work_of
from tests.simulator.worlds import ENGINE

CARDS = [(1200, 120)]
CHAT = Replica.of(ENGINE, Lengths.of(CARDS))


def settled(replica: Replica, offered: float, seconds: float = 300.0) -> float:
    """Return the batch after ``seconds`` at a constant rate."""
    running = 0.0
    for _ in range(int(seconds / 10)):
        running = replica.run(running, offered, 10.0).running
    return running


def real_batch(rate: float) -> float:
    """Return the mean batch of an engine that gets a request every 1/rate seconds."""
    engine, seen = SimulatedEngine(ENGINE), []
    for number in range(int(rate * 120)):
        at = number / rate
        engine.submit(Request(Timestamp(at), *CARDS[0]))
        engine.advance(at)
        seen.append(engine.running)
    return sum(seen[len(seen) // 2 :]) / (len(seen) - len(seen) // 2)


@pytest.mark.parametrize("rate", [0.5, 2.0, 4.0, 6.0])
def test_the_batch_settles_where_the_engines_does(rate):
    assert settled(CHAT, rate) == pytest.approx(real_batch(rate), rel=0.15, abs=0.7)


@pytest.mark.parametrize("cards", [[(1200, 120)], [(2400, 28)], [(1000, 400)], [(4000, 1000)]])
def test_it_does_as_much_as_a_saturated_engine_and_no_more(cards):
    full = saturated(ENGINE, cards) / work_of(ENGINE)(*cards[0])
    replica = Replica.of(ENGINE, Lengths.of(cards))

    done = replica.run(settled(replica, 3 * full, 4000.0), 3 * full, 10.0)

    assert done.taken == pytest.approx(full, rel=0.1)


def test_an_overload_fills_the_batch_before_anything_waits():
    first = CHAT.run(10.0, 12.0, 10.0)
    later = CHAT.run(settled(CHAT, 12.0, 3000.0), 12.0, 10.0)

    assert first.taken == 12.0
    assert first.running > 10.0
    assert later.taken < 12.0
    assert later.running == pytest.approx(CHAT.largest_batch, rel=0.01)


def test_an_idle_replica_takes_nothing_and_empties():
    done = CHAT.run(50.0, 0.0, 60.0)

    assert done.taken == 0
    assert done.running < 0.1


@given(
    st.floats(0, 1500), st.floats(0, 1e4), st.floats(1, 60), st.floats(1, 9e4), st.floats(1, 4e3)
)
def test_amounts_stay_within_what_there_is(running, offered, seconds, prompt, output):
    replica = Replica.of(ENGINE, Lengths.of(CARDS).with_means(prompt, output))
    running = min(running, replica.largest_batch)

    done = replica.run(running, offered, seconds)

    assert 0 <= done.taken <= offered
    assert 0 <= done.running <= replica.largest_batch
    assert done.steps > 0
    assert done.running <= running + done.taken * seconds + 1e-6


class TestLengths:
    def test_means_are_those_of_the_deck(self):
        lengths = Lengths.of([(100, 10), (300, 30)])

        assert (lengths.prompt, lengths.output, lengths.square) == (200, 20, 50_000)
        assert lengths.context == pytest.approx((10 * 105 + 30 * 315) / 40)

    def test_the_same_means_change_nothing(self):
        lengths = Lengths.of([(100, 10), (300, 30)])

        assert lengths.with_means(200, 20) == lengths

    def test_longer_prompts_keep_their_spread(self):
        lengths = Lengths.of([(100, 10), (300, 30)]).with_means(400, 20)

        assert lengths.square == 4 * 50_000
        assert lengths.context > 400
