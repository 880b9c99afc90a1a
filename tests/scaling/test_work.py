"""What a replica has in hand, where its engine says little or nothing of it."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.scaling.evaluate import evaluate
from adapter.scaling.state import ScalingState
from adapter.scaling.work import Silence, Work, work_of
from tests.build import T0, a_fleet, a_histogram, a_reading, a_replica, a_spec, serving
from tests.fleet.expositions import reading_of, recorded

NOTHING_YET = {Metric.GENERATION_TOKENS: 0.0, Metric.REQUESTS_FINISHED: 0.0}


def test_a_fresh_engine_behind_several_api_servers_is_idle() -> None:
    """vLLM, DP 2 with 2 API servers: counters at 0 and no gauge until the first request."""
    reading = reading_of(recorded("vllm-0.32.0-real_cpu_dp2_api2_idle"))

    assert work_of(a_replica("a", sample=reading)) == Work(0.0, 0.0)


def test_a_standby_replica_without_a_request_yet_is_no_busy_one() -> None:
    """One works, one never had a request and shows no gauge: half the fleet may go in time."""
    fresh = a_replica("b", running=None, waiting=None, kv=None, more=NOTHING_YET)
    spec = a_spec(signals={"queue": {"targetInFlight": 8}}, scaleDown={"delay": "0s"})
    state = ScalingState(published=2, good_at=T0, started_at=T0 - 900.0)

    decision, _ = evaluate(spec, a_fleet(*serving(1, running=4), fresh), state)

    assert decision.published == 1
    assert decision.census.silent == 0


@pytest.mark.parametrize(
    "said",
    [
        {"more": {Metric.GENERATION_TOKENS: 1.0, Metric.REQUESTS_FINISHED: 0.0}},
        {"more": {**NOTHING_YET, Metric.PROMPT_TOKENS: 9.0}},
        {"more": {**NOTHING_YET, Metric.ENGINE_STEPS: 1.0}},
        {"more": NOTHING_YET, "ttft": a_histogram([0.3])},
        {"more": NOTHING_YET, "running": 0.0},
        {"more": NOTHING_YET, "waiting": 0.0},
        {"more": {}},
    ],
)
def test_an_engine_that_had_requests_and_shows_no_gauge_is_silent(said: dict[str, object]) -> None:
    """Only nothing at all, said by counters that are there, is idleness."""
    blank: dict[str, object] = {"running": None, "waiting": None, "kv": None}

    work = work_of(a_replica("a", sample=a_reading(**{**blank, **said})))  # type: ignore[arg-type]

    assert isinstance(work, Silence)


def test_a_gauge_that_cannot_be_read_is_no_gauge_that_is_not_there() -> None:
    """NaN stands in the text: the series is matched, and its value unknown."""
    labels = '{engine="0",model_name="m"}'
    body = "".join(
        f"vllm:{name}{labels} {value}\n"
        for name, value in {
            "num_requests_running": "NaN",
            "generation_tokens_total": 0,
            "request_success_total": 0,
        }.items()
    )

    assert isinstance(work_of(a_replica("a", sample=reading_of(body.encode()))), Silence)
