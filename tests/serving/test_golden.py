"""What the Go server answered and what Kubernetes asked, replayed against ours."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from adapter.serving.external_metrics.authz import AllowListAuthorizer
from tests.serving.build import a_board, a_decision
from tests.serving.contract import vector_file
from tests.serving.wire import Pki, secure_server

THEIRS, OURS = "my-external-metric", "leadtime-desired-replicas"

JSON_ALONE = (
    ", application/yaml, application/vnd.kubernetes.protobuf",
    ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
)
"""What the Go server can answer beside JSON, in the text of a 406."""

ELSEWHERE = re.compile(r"yaml|/version|:16444/( |$)|/nope|/openapi|nonexistent|%3Dbar")
"""YAML, the version, the index, a document cut off, its example data: not ours to match."""


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


class Golden:
    """One request of the Go reference server, and what it answered."""

    def __init__(self, block: str) -> None:
        self.command, answer = block.split("\n", 1)
        certificate = re.search(r"--cert (\S+)\.crt", self.command)
        self.client = certificate[1] if certificate else ""
        method = re.search(r" -X (\S+)", self.command)
        self.method = method[1] if method else "GET"
        self.headers: list[tuple[str, str]] = [
            (name, value.strip())
            for name, value in re.findall(r" -H ([^:]+):(.*?)(?= -[HXd] | https:)", self.command)
        ]
        self.path = self.command.partition(":16444")[2].strip().replace(THEIRS, OURS)
        head, _, body = answer.partition("\n\n")
        self.status = int(head.split()[1])
        self.nosniff = "x-content-type-options: nosniff" in head
        self.body = _as_ours(body) if "content-type: application/json\n" in f"{head}\n" else None


def _as_ours(body: str) -> dict[str, Any] | None:
    """Return the object with our metric's name and JSON alone; None if it lists their metrics."""
    text = body.replace(THEIRS, OURS)
    for more in JSON_ALONE:
        text = text.replace(more, "")
    found: dict[str, Any] = json.loads(text)
    return found if found.get("kind") in {"Status", "APIGroup", "APIResourceList"} else None


async def test_the_go_servers_answers_are_ours(pki: Pki):
    """``golden.txt``: status, object and nosniff of every request that applies."""
    blocks = vector_file("golden.txt").read_text().split("### ")[1:]
    golden = [Golden(block) for block in blocks if not ELSEWHERE.search(block.split("\n")[0])]
    contexts = {
        "front-proxy-client": pki.front_proxy(),
        "front-proxy-evil": pki.front_proxy("front-proxy-evil"),
        "": pki.client(None),
    }
    compared = 0

    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        for theirs in golden:
            answer = await wire.get(
                theirs.path,
                theirs.headers,
                method=theirs.method,
                context=contexts[theirs.client],
            )

            assert answer.status == theirs.status, theirs.command
            assert not theirs.nosniff or answer.headers["X-Content-Type-Options"] == "nosniff"
            if theirs.body is not None:
                assert answer.json == theirs.body, theirs.command
                compared += 1

    assert len(golden) == 22
    assert compared == 15


async def test_the_requests_that_kubernetes_really_sent_are_answered(pki: Pki):
    """``observed_requests.jsonl``: discovery 200, foreign metrics 404 with what there is."""
    lines = vector_file("observed_requests.jsonl").read_text().splitlines()
    observed = [json.loads(line) for line in lines]
    everybody = AllowListAuthorizer(
        frozenset({request["h"]["X-Remote-User"] for request in observed})
    )
    async with secure_server(a_board(chat=a_decision(7)), pki, authorizer=everybody) as wire:
        context = pki.front_proxy()
        for request in observed:
            headers = [
                (name, value)
                for name, value in request["h"].items()
                if name not in {"Host", "X-Remote-Group"}
            ]
            headers += [("X-Remote-Group", group) for group in request["groups"]]

            answer = await wire.get(request["raw"], headers, context=context)

            foreign = "/namespaces/" in request["raw"]
            assert answer.status == (404 if foreign else 200), request
            if foreign:
                assert answer.json["reason"] == "NotFound"
            else:
                assert answer.headers["Content-Type"].startswith("application/json")

    assert len(observed) > 20
