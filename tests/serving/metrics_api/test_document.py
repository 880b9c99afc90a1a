"""One policy as JSON, over real sockets, as KEDA's metrics-api scaler and curl ask for it."""

import json
from datetime import UTC, datetime

import pytest

from adapter.controller.board import PolicyKey
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Condition, ConditionType, Hold, HoldReason
from adapter.scaling.demand import Demand
from adapter.serving.metrics_api.document import policy_document
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision, put
from tests.serving.wire import open_server


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


PATH = "/api/v1/namespaces/default/policies/chat"


async def test_the_value_is_the_published_count_and_a_json_number():
    async with open_server(a_board(chat=a_decision(7, desired=9))) as wire:
        answer = await wire.get(PATH)

    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert answer.text.startswith('{"namespace":"default","policy":"chat","value":7,')
    assert answer.headers["Cache-Control"] == "no-store"


async def test_the_rest_says_why_it_is_that_one():
    decision = a_decision(
        7,
        demands=(
            Demand("queue", 6.2, "40 in flight / 6.5 per replica"),
            Demand("ttft", None, "no first token was seen"),
        ),
        conditions=(Condition(ConditionType.READY, True, "Decided", "7 replicas"),),  # noqa: FBT003 - a status
        holds=(
            Hold(HoldReason.SCALE_DOWN_DELAY, Timestamp(T0 + 60), "down after 5m"),
            Hold(HoldReason.ROLLOUT, None, "a rollout runs"),
        ),
    )
    async with open_server(a_board(chat=decision), FakeClock(start=T0 + 3.5)) as wire:
        document = (await wire.get(PATH)).json

    assert document["because"] == decision.because
    assert document["components"] == {
        "queue": {"replicas": 6.2, "because": "40 in flight / 6.5 per replica"},
        "ttft": {"replicas": None, "because": "no first token was seen"},
    }
    assert document["ageSeconds"] == 3.5
    assert document["validUntil"].endswith("Z")
    assert document["conditions"] == [
        {"type": "Ready", "status": True, "reason": "Decided", "message": "7 replicas"}
    ]
    assert [(hold["reason"], hold["until"]) for hold in document["holds"]] == [
        ("ScaleDownDelay", _rfc3339(T0 + 60)),
        ("RolloutInProgress", None),
    ]


@pytest.mark.parametrize(
    ("decision", "cause"),
    [
        (None, "its first tick has not finished"),
        (a_decision(7, refusal="no replica answers"), "no replica answers"),
        (a_decision(7, valid_until=Timestamp(T0 - 1)), "stale: the last decision"),
    ],
)
async def test_no_count_is_503_with_the_cause(decision, cause: str):
    """Any status but 200 is an error to KEDA, and an error is what its fallback needs."""
    async with open_server(a_board(chat=decision)) as wire:
        answer = await wire.get(PATH)

    assert answer.status == 503
    assert cause in answer.message
    assert "value" not in answer.json


async def test_an_unknown_policy_is_404_and_the_nearest_is_named():
    async with open_server(a_board(chat=a_decision(7))) as wire:
        answer = await wire.get(PATH + "t")

    assert answer.status == 404
    assert answer.message == "no policy default/chatt; did you mean 'chat'?"


async def test_the_same_name_elsewhere_is_another_policy():
    board = a_board(chat=a_decision(7))
    put(board, "chat", a_decision(3), namespace="other")
    async with open_server(board) as wire:
        other = await wire.get("/api/v1/namespaces/other/policies/chat")

    assert other.json["value"] == 3


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_nothing_can_be_written(method: str):
    async with open_server(a_board(chat=a_decision(7))) as wire:
        assert (await wire.get(PATH, method=method)).status == 405


async def test_a_negative_count_is_a_bug_that_is_never_published():
    async with open_server(a_board(chat=a_decision(-1))) as wire:
        answer = await wire.get(PATH)

    assert answer.status == 500
    assert "-1" not in answer.text


def test_a_clock_that_was_set_back_makes_no_negative_age():
    document = policy_document(
        a_board(chat=a_decision(7)), PolicyKey("default", "chat"), Timestamp(T0 - 5)
    )

    assert document["ageSeconds"] == 0
    assert json.loads(json.dumps(document)) == document
