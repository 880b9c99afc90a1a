"""Our own metrics: names that stay, values from the board, and nothing that grows without end."""

import re

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adapter.controller.board import Board
from adapter.fleet.reading import Cause
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Census, Condition, ConditionType, Hold, HoldReason
from adapter.scaling.demand import Demand
from adapter.serving.telemetry import CONTENT_TYPE, Meters
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision, put
from tests.serving.wire import DESIRED, open_server

Series = tuple[str, frozenset[tuple[str, str]]]


def _meters(board: Board, *, now: float = T0) -> Meters:
    return Meters(board, clock=FakeClock(start=now))


def _series(meters: Meters) -> dict[Series, float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(meters.render().decode())
        for sample in family.samples
    }


def _of(name: str, **labels: str) -> Series:
    own = {"namespace": "default", "policy": "chat", **labels}
    return (f"leadtime_{name}", frozenset(own.items()))


def test_a_decision_is_shown_with_its_parts():
    decision = a_decision(
        7,
        desired=8,
        standby=2,
        census=Census(serving=5, loading=3, overdue=1, stalled=1, draining=2, silent=1),
        demands=(Demand("queue", 6.2, "q"), Demand("ttft", None, "no first token")),
        holds=(
            Hold(HoldReason.METRICS_GAP, None, "one replica is silent"),
            Hold(HoldReason.SCALE_DOWN_DELAY, Timestamp(T0 + 60), "8 was wanted"),
        ),
        conditions=(Condition(ConditionType.READY, status=True, reason="Decided", message=""),),
    )

    series = _series(_meters(a_board(chat=decision), now=T0 + 3))

    assert series[_of("desired_replicas")] == 8
    assert series[_of("published_replicas")] == 7
    assert series[_of("standby_replicas")] == 2
    assert series[_of("serving_replicas")] == 5
    assert series[_of("loading_replicas")] == 3
    assert series[_of("overdue_replicas")] == 1
    assert series[_of("stalled_replicas")] == 1
    assert series[_of("draining_replicas")] == 2
    assert series[_of("silent_replicas")] == 1
    assert series[_of("component_replicas", signal="queue")] == 6.2
    assert _of("component_replicas", signal="ttft") not in series
    assert series[_of("decision_held")] == 1
    assert series[_of("decision_refused")] == 0
    assert series[_of("signal_age_seconds")] == 3
    assert series[_of("load_time_seconds")] == 240
    assert series[_of("hold_until_timestamp_seconds", reason="MetricsGap")] == 0
    assert series[_of("hold_until_timestamp_seconds", reason="ScaleDownDelay")] == T0 + 60
    assert series[_of("condition", type="Ready", reason="Decided")] == 1
    assert series[_of("policy_problem")] == 0


@pytest.mark.parametrize(("data_at", "age"), [(T0 - 90.0, 93.0), (None, None)])
def test_row_35_the_age_of_a_signal_is_that_of_its_data(data_at: float | None, age: float | None):
    """WVA#1082: a tick a second ago on data of a minute ago is a minute old; none has no age."""
    series = _series(_meters(a_board(chat=a_decision(7, data_at=data_at)), now=T0 + 3))

    assert series.get(_of("signal_age_seconds")) == age


@pytest.mark.parametrize(
    ("facts", "now"), [({"refusal": "no data"}, T0), ({}, T0 + 121)], ids=["refused", "stale"]
)
def test_a_number_that_the_wire_refuses_is_not_shown_either(facts: dict[str, object], now: float):
    """A dashboard with the last good number would hide the outage."""
    series = _series(_meters(a_board(chat=a_decision(7, **facts)), now=now))

    assert _of("published_replicas") not in series
    assert _of("desired_replicas") not in series
    assert series[_of("decision_refused")] == 1
    assert series[_of("serving_replicas")] == 5


def test_a_policy_before_its_first_tick_is_refused():
    series = _series(_meters(a_board(chat=None)))

    assert series[_of("decision_refused")] == 1
    assert _of("serving_replicas") not in series


def test_two_holds_of_one_reason_are_one_series():
    """A series that stands twice makes Prometheus drop the whole scrape."""
    twice = tuple(Hold(HoldReason.NOT_IDLE, Timestamp(T0 + n), "busy") for n in (1, 2))

    text = _meters(a_board(chat=a_decision(7, holds=twice))).render().decode()

    assert text.count('reason="NoIdleReplica"') == 1


def test_a_policy_that_is_gone_leaves_no_series():
    board = a_board(chat=a_decision(7))
    meters = _meters(board)
    meters.ticked("default/chat", Seconds(0.01))
    meters.gap("default/chat", Cause.TIMEOUT)

    board.withdraw(board.all()[0].key)
    meters.forget("default/chat")
    meters.forget("default/never")

    assert 'policy="chat"' not in meters.render().decode()


def test_what_happens_is_counted():
    meters = _meters(Board())

    meters.ticked("default/chat", Seconds(0.02))
    meters.gap("default/chat", Cause.TIMEOUT)
    meters.gap("default/chat", Cause.TIMEOUT)
    meters.unsaved("default/chat")
    meters.crashed("default/chat")
    meters.reloaded(broken=2)
    meters.certificate_loaded(Timestamp(T0))
    meters.certificate_refused()

    series = _series(meters)
    assert series[_of("tick_duration_seconds_count")] == 1
    assert series[_of("source_errors_total", cause="timeout")] == 2
    assert series[_of("state_save_errors_total")] == 1
    assert series[_of("loop_crashes_total")] == 1
    assert series["leadtime_policy_reloads_total", frozenset()] == 1
    assert series["leadtime_policy_files_broken", frozenset()] == 2
    assert series["leadtime_certificate_expiry_timestamp_seconds", frozenset()] == T0
    assert series["leadtime_certificate_reload_errors_total", frozenset()] == 1


def test_a_broken_file_is_shown():
    board = a_board(chat=a_decision(7))
    board.report(board.all()[0].key, "chat.yaml:3:1: broken")

    assert _series(_meters(board))[_of("policy_problem")] == 1


def test_a_policy_whose_loop_cannot_run_counts_as_a_problem():
    board = a_board(chat=None)
    board.fail(board.all()[0].key, "this release does not read its source")

    assert _series(_meters(board))[_of("policy_problem")] == 1


def test_the_names_pass_promtools_rules():
    """Counters end in _total and nothing else does; units are base units; everything has help."""
    board = Board()
    put(board, "chat", a_decision(7))
    families = list(text_string_to_metric_families(_meters(board).render().decode()))

    own = [family for family in families if family.name.startswith("leadtime_")]

    assert len(own) > 20
    for family in own:
        assert family.documentation.endswith(".")
        assert re.fullmatch(r"[a-z][a-z0-9_]*", family.name)
        assert not re.search(r"(_milliseconds|_minutes|_ms|_percent|_total|_created)$", family.name)
        if family.type == "counter":
            assert all(sample.name.endswith("_total") for sample in family.samples)


async def test_requests_are_counted_by_template_and_never_by_what_a_client_wrote():
    async with open_server(a_board(chat=a_decision(7))) as wire:
        await wire.get(DESIRED)
        await wire.get(DESIRED.replace("default", "other"))
        for number in range(30):
            await wire.get(f"/random/{number}")
        answer = await wire.get("/metrics")

    assert answer.headers["Content-Type"] == CONTENT_TYPE
    counted = {
        (sample.labels["path"], sample.labels["code"]): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
        if sample.name == "leadtime_http_requests_total"
    }
    template = "/apis/external.metrics.k8s.io/v1beta1/namespaces/{namespace}/{metric}"
    assert counted == {(template, "200"): 1, (template, "404"): 1, ("unknown", "404"): 30}
