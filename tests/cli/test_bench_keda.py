"""``leadtime bench keda``: the calls of many ScaledObjects, from a process of their own."""

import pytest

from adapter.cli.benchmarks import keda
from adapter.cli.benchmarks.keda_caller import percentiles
from adapter.cli.benchmarks.processes import BenchmarkError
from tests.serving.build import a_board, a_decision
from tests.serving.keda.client import open_scaler


@pytest.mark.slow
def test_every_scaled_object_is_evaluated_once_in_a_period():
    """40 in 2 s, three calls each: 60 a second, whatever the machine does beside."""
    figures = {
        figure.name: figure.value for figure in keda.measure(seconds=2, objects=40, period=2)
    }

    assert list(figures) == [
        "callsPerSecond",
        "cpuPercentOfOneCore",
        "p50Milliseconds",
        "p99Milliseconds",
    ]
    assert 30 < figures["callsPerSecond"] <= 62
    assert 0 < figures["cpuPercentOfOneCore"] < 200
    assert 0 < figures["p50Milliseconds"] <= figures["p99Milliseconds"]


@pytest.mark.slow
def test_a_caller_that_is_not_answered_is_said_and_no_figure():
    with pytest.raises(BenchmarkError, match="the caller failed"):
        keda._called("127.0.0.1:1", objects=1, period=1, seconds=1)


async def test_an_answer_that_is_no_count_is_no_figure():
    """A zero would be quick, and wrong."""
    async with open_scaler(a_board(bench=a_decision(0))) as address:
        with pytest.raises(ConnectionError, match="not a count"):
            await percentiles(f"127.0.0.1:{address.port}", objects=1, period=0.1, seconds=0.1)


async def test_the_calls_of_all_objects_are_timed():
    async with open_scaler(a_board(bench=a_decision(7))) as address:
        facts = await percentiles(f"127.0.0.1:{address.port}", objects=4, period=0.2, seconds=0.4)

    assert 0 < facts["callsPerSecond"] <= 24 / 0.3
    assert 0 < facts["p50Milliseconds"] <= facts["p99Milliseconds"]
