"""The counts in front of the pool, and its last minute."""

import pytest

from adapter.fleet.units import Timestamp
from adapter.simulator.engine import Request
from adapter.simulator.gateway import Gateway
from adapter.simulator.score import Objective, Scorer
from tests.build import T0
from tests.simulator.worlds import ENGINE


def at(seconds: float) -> Timestamp:
    return Timestamp(T0 + seconds)


def a_gateway(*, watched: bool = True) -> Gateway:
    gateway = Gateway(Scorer(Objective(), ENGINE, begin=T0))
    if watched:
        gateway.watch()
    return gateway


def came(gateway: Gateway, count: int, *, prompt: int, output: int) -> None:
    gateway.totals.requests += count
    gateway.totals.prompt_tokens += count * prompt
    gateway.totals.output_tokens += count * output


def ended(arrived: float, *, ttft: float, e2e: float, output: int = 11) -> Request:
    return Request(at(arrived), 100, output, 0, at(arrived + ttft), at(arrived + e2e))


def test_in_flight_is_what_came_and_neither_ended_nor_was_refused():
    gateway = a_gateway()
    came(gateway, 10, prompt=1, output=1)
    gateway.totals.refused += 1

    gateway.finish([ended(0, ttft=1, e2e=2), ended(0, ttft=1, e2e=2)])
    gateway.lose(at(3), 3)

    assert gateway.in_flight == 4


def test_the_minute_is_the_difference_to_a_minute_ago():
    """60 requests in the first minute, 120 in the second: 2 a second, of 300 + 30 tokens."""
    gateway = a_gateway()
    gateway.note(at(0))
    came(gateway, 60, prompt=100, output=10)
    gateway.note(at(60))
    came(gateway, 120, prompt=300, output=30)

    minute = gateway.minute(at(120))

    assert minute.requests_per_second == pytest.approx(2.0)
    assert (minute.prompt_tokens_mean, minute.output_tokens_mean) == (300.0, 30.0)


def test_quantiles_are_those_of_requests_that_ended_within_the_minute():
    gateway = a_gateway()
    gateway.finish([ended(0, ttft=50, e2e=55)])
    gateway.finish([ended(60, ttft=n, e2e=20) for n in range(1, 11)])

    minute = gateway.minute(at(120))

    assert minute.ttft_p90 == pytest.approx(9.0)
    assert minute.seconds_per_token_p90 == pytest.approx(1.8)


def test_a_minute_without_requests_knows_nothing():
    minute = a_gateway().minute(at(60))

    assert minute.requests_per_second == 0.0
    assert minute.prompt_tokens_mean is None
    assert minute.ttft_p90 is None


def test_nothing_is_remembered_unless_somebody_asked_for_it():
    gateway = a_gateway(watched=False)
    gateway.finish([ended(0, ttft=1, e2e=2)])
    gateway.note(at(2))

    gateway.watch()

    assert gateway.minute(at(3)).ttft_p90 is None
    assert gateway.totals.finished == 1


def test_notes_of_more_than_a_minute_are_dropped():
    """A day of notes, one every 15 s: the rate is still that of the last minute alone."""
    gateway = a_gateway()
    for number in range(5760):
        came(gateway, 15 if number >= 5756 else 150, prompt=1, output=1)
        gateway.note(at(15.0 * number))

    assert gateway.minute(at(15.0 * 5759)).requests_per_second == pytest.approx(1.0)
