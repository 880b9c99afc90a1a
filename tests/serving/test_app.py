"""Every path over plain HTTP: what is answered, and what a failure looks like."""

import asyncio

import pytest

from adapter.controller.board import Board
from tests.serving.build import a_board, a_decision
from tests.serving.test_accept import AGGREGATOR
from tests.serving.wire import API, DESIRED, Answer, open_server

GROUP_PATH = "/apis/external.metrics.k8s.io"


async def _ask(
    path: str, *, board: Board | None = None, method: str = "GET", **headers: str
) -> Answer:
    pairs = [(name.replace("_", "-"), value) for name, value in headers.items()]
    async with open_server(board or a_board(chat=a_decision(7))) as wire:
        return await wire.get(path, pairs, method=method)


async def test_the_resource_list_is_one_constant_placeholder():
    """Rows 5 and 6: an empty list breaks every kubectl, one entry per metric slows it."""
    answer = await _ask(API)

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "external.metrics.k8s.io/v1beta1",
        "resources": [
            {
                "name": "externalmetrics",
                "singularName": "",
                "namespaced": True,
                "kind": "ExternalMetricValueList",
                "verbs": ["get"],
            }
        ],
    }


async def test_discovery_works_before_there_is_any_policy():
    """Otherwise the APIService is unavailable, and namespaces cannot be deleted (row 7)."""
    answer = await _ask(API, board=Board())

    assert answer.status == 200
    assert answer.json["resources"]


async def test_aggregated_discovery_lists_the_resource():
    """Vector 2, row 4: an empty ``items`` is believed, and hides everything."""
    answer = await _ask("/apis", Accept=AGGREGATOR)

    assert answer.status == 200
    assert answer.headers["Content-Type"] == (
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    )
    assert answer.headers["Vary"] == "Accept"
    (item,) = answer.json["items"]
    assert item["metadata"]["name"] == "external.metrics.k8s.io"
    (version,) = item["versions"]
    assert version["version"] == "v1beta1"
    assert version["freshness"] == "Current"
    (resource,) = version["resources"]
    assert resource["resource"] == "externalmetrics"
    assert resource["verbs"] == ["get"]
    assert resource["scope"] == "Namespaced"


async def test_an_older_aggregator_falls_back_to_the_plain_list():
    answer = await _ask("/apis", Accept=AGGREGATOR.split(",")[1])

    assert answer.status == 406


@pytest.mark.parametrize("path", ["/apis", API, GROUP_PATH, "/openapi/v2", "/openapi/v3"])
async def test_a_document_that_is_known_is_not_sent_again(path: str):
    async with open_server(Board()) as wire:
        first = await wire.get(path)
        again = await wire.get(path, [("If-None-Match", f'"other", W/{first.headers["ETag"]}')])
        other = await wire.get(path, [("If-None-Match", '"other"')])

    assert (first.status, again.status, other.status) == (200, 304, 200)
    assert again.text == ""
    assert other.text == first.text


async def test_the_plain_and_the_aggregated_list_have_different_tags():
    plain = await _ask("/apis")
    aggregated = await _ask("/apis", Accept=AGGREGATOR)

    assert plain.json["kind"] == "APIGroupList"
    assert plain.headers["ETag"] != aggregated.headers["ETag"]


async def test_the_openapi_documents_are_there():
    """Row 45: a 404 is logged by kube-apiserver for ever."""
    v2, v3 = await _ask("/openapi/v2"), await _ask("/openapi/v3")

    assert v2.json["swagger"] == "2.0"
    assert v3.json == {"paths": {}}


async def test_the_metric_is_answered_to_the_hpas_own_request():
    """Vector 3, but for its transport: the Accept header and the encoding of §1.5."""
    answer = await _ask(
        f"{DESIRED}?labelSelector=policy%3Dchat%2Cpolicy+in+%28chat%2Ccode%29%2C%21yy"
        "&timeout=30s&limit=500&fieldSelector=x&resourceVersion=0",
        Accept="application/vnd.kubernetes.protobuf, */*",
    )

    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert [item["value"] for item in answer.json["items"]] == ["7"]


@pytest.mark.parametrize(
    ("path", "status", "reason", "words"),
    [
        (f"{DESIRED}?labelSelector=policy%3Dchta", 404, "NotFound", "did you mean 'chat'?"),
        (
            f"{DESIRED}?labelSelector=a%20in%20%28",
            400,
            "BadRequest",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        (f"{DESIRED}?labelSelector=policy%3D%00", 400, "BadRequest", "Invalid value"),
        (f"{DESIRED}?labelSelector=policy%3D%ff", 400, "BadRequest", "Invalid value"),
        (f"{DESIRED}?watch=true", 405, "MethodNotAllowed", "watch is not supported"),
        (f"{DESIRED}?watch=1", 405, "MethodNotAllowed", "watch is not supported"),
        (f"{DESIRED}/x", 404, "NotFound", "the server could not find the requested resource"),
        (f"{API}/namespaces/default", 404, "NotFound", "could not find the requested resource"),
        (f"{API}/leadtime-desired-replicas", 404, "NotFound", "the requested resource"),
        (f"{API}/namespaces/default/a%2Fb", 404, "NotFound", "could not find the metric a/b"),
        (f"{API}/namespaces/default/a%7Cb", 404, "NotFound", "could not find the metric a|b"),
        (f"{API}/namespaces/default/x@y", 404, "NotFound", "could not find the metric x@y"),
        (f"{API}/namespaces/%2e%2e/q", 404, "NotFound", ""),
        ("/", 404, "NotFound", "the server could not find the requested resource"),
        ("/nope?x=%zz", 404, "NotFound", "the server could not find the requested resource"),
    ],
)
async def test_what_cannot_be_answered_is_a_status(path: str, status: int, reason: str, words: str):
    answer = await _ask(path)

    assert answer.status == status
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.json["kind"] == "Status"
    assert answer.json["status"] == "Failure"
    assert answer.json["code"] == status
    assert answer.json["reason"] == reason
    assert words in answer.message


async def test_a_metric_without_a_number_is_unavailable_with_the_cause():
    """Vector 7: never 0, never an empty list."""
    board = a_board(chat=a_decision(7, refusal="stale: last sample 312 s old, limit 120 s"))

    answer = await _ask(DESIRED, board=board)

    assert answer.status == 503
    assert answer.json["reason"] == "ServiceUnavailable"
    assert "stale: last sample 312 s old, limit 120 s" in answer.message


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize("path", [DESIRED, API, "/healthz", "/metrics"])
async def test_nothing_can_be_written(method: str, path: str):
    answer = await _ask(path, method=method)

    assert answer.status == 405
    assert answer.json["reason"] == "MethodNotAllowed"


async def test_head_is_a_get_without_a_body():
    answer = await _ask(API, method="HEAD")

    assert answer.status == 200
    assert answer.text == ""
    assert int(answer.headers["Content-Length"]) > 0


async def test_a_request_body_is_refused_unread():
    async with open_server(a_board(chat=a_decision(7))) as wire:
        answer = await wire.get(DESIRED, data=b"{}")

    assert answer.status == 413
    assert "request body" in answer.message


@pytest.mark.parametrize("accept", ["text/html", "application/yaml"])
@pytest.mark.parametrize("path", [DESIRED, API, "/apis", GROUP_PATH, "/openapi/v2"])
async def test_who_cannot_read_json_gets_a_406(path: str, accept: str):
    answer = await _ask(path, Accept=accept)

    assert answer.status == 406
    assert answer.json["reason"] == "NotAcceptable"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_answer_ok_in_plain_text(path: str):
    answer = await _ask(path)

    assert (answer.status, answer.text) == (200, "ok")
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_a_failing_probe_says_why():
    board = a_board(chat=a_decision(7))
    async with open_server(board) as wire:
        wire.clock.pass_by(60)
        live = await wire.get("/livez")
    ready = await _ask("/readyz", board=Board())

    assert live.status == 503
    assert "policy default/chat: no tick for 60.0 s" in live.text
    assert ready.status == 503
    assert "no policy is loaded" in ready.text


async def test_answers_do_not_wait_for_each_other():
    async with open_server(a_board(chat=a_decision(7))) as wire:
        answers = await asyncio.gather(*(wire.get(DESIRED) for _ in range(20)))

    assert {answer.status for answer in answers} == {200}
