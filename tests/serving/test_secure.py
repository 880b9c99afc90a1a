"""Identity and authorization over real TLS sockets with real client certificates."""

import asyncio
from pathlib import Path

import pytest

from adapter.controller.errors import SourceError
from adapter.serving.external_metrics.authn import RequestHeader
from adapter.serving.external_metrics.authz import AllowListAuthorizer, Attributes
from adapter.serving.pki import Authority
from adapter.serving.tls import TlsFiles
from tests.serving.build import a_board, a_decision
from tests.serving.contract import hpa_port
from tests.serving.test_accept import AGGREGATOR
from tests.serving.wire import (
    API,
    AS_HPA,
    DESIRED,
    MASTERS,
    NOW,
    REFUSED_HANDSHAKE,
    Pki,
    secure_server,
)


class Blocked(AllowListAuthorizer):
    """Keeps whoever asks for a metric waiting until it is released."""

    def __init__(self) -> None:
        super().__init__()
        self.entered, self.released = asyncio.Event(), asyncio.Event()

    async def allows(self, asked: Attributes) -> bool:
        if asked.resource:
            self.entered.set()
            await self.released.wait()
        return await super().allows(asked)


class Noted(AllowListAuthorizer):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Attributes] = []

    async def allows(self, asked: Attributes) -> bool:
        self.asked.append(asked)
        return await super().allows(asked)


class Away:
    """An API server that does not answer."""

    async def allows(self, asked: Attributes) -> bool:
        raise SourceError(f"subjectaccessreviews: connection refused, asked for {asked.verb}")


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


async def test_five_parallel_probes_pass_while_a_metric_request_is_blocked(pki: Pki):
    """Vector 1, row 46: the API server gives up after 5 s; we answer all five within 1 s."""
    blocked = Blocked()
    probe = [*MASTERS, ("User-Agent", "Go-http-client/1.1"), ("Accept-Encoding", "gzip")]
    context = pki.front_proxy()
    async with secure_server(a_board(chat=a_decision(7)), pki, authorizer=blocked) as wire:
        metric = asyncio.create_task(wire.get(DESIRED, AS_HPA, context=context))
        await blocked.entered.wait()

        async with asyncio.timeout(1.0):
            answers = await asyncio.gather(
                *(wire.get(API, probe, context=context) for _ in range(5))
            )

        assert not metric.done()
        blocked.released.set()
        assert (await metric).status == 200
    assert [answer.status for answer in answers] == [200] * 5


async def test_the_hpas_request_scales_to_the_published_count(pki: Pki):
    """Vector 3: the request of §1.5 as it was received, summed by the HPA's own arithmetic."""
    port = hpa_port()
    headers = [
        *AS_HPA,
        ("Accept", "application/vnd.kubernetes.protobuf, */*"),
        ("X-Remote-Extra-Authentication.kubernetes.io%2fcredential-Id", "JTI=7573fba2"),
        ("X-Forwarded-Uri", DESIRED),
    ]
    async with secure_server(a_board(chat=a_decision(21), code=a_decision(3)), pki) as wire:
        answer = await wire.get(
            f"{DESIRED}?labelSelector=policy+in+%28chat%29%2C%21yy",
            headers,
            context=pki.front_proxy(),
        )

    milli = [1000 * int(item["value"]) for item in answer.json["items"]]
    assert port.average_value(milli, 1000, 20, 0, 0) == 21


async def test_headers_without_a_certificate_are_a_spoof(pki: Pki):
    """Vector 5: ``X-Remote-*`` from anybody is anonymous, and anonymous may do nothing."""
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        metric = await wire.get(DESIRED, MASTERS, context=pki.client(None))
        discovery = await wire.get(API, MASTERS, context=pki.client(None))

    assert metric.status == 403
    assert metric.headers["X-Content-Type-Options"] == "nosniff"
    assert metric.json["details"] == {
        "group": "external.metrics.k8s.io",
        "kind": "leadtime-desired-replicas",
    }
    assert discovery.message == (
        'forbidden: User "system:anonymous" cannot get path "/apis/external.metrics.k8s.io/v1beta1"'
    )


async def test_a_certificate_under_another_name_gets_a_401(pki: Pki):
    """Vector 5, row 10."""
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        answer = await wire.get(DESIRED, MASTERS, context=pki.front_proxy("front-proxy-evil"))

    assert answer.status == 401
    assert answer.message == "Unauthorized"


async def test_a_certificate_of_another_ca_is_refused_by_the_handshake(pki: Pki):
    stranger = pki.client(Authority("stranger", now=NOW).client("front-proxy-client"))
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get(API, MASTERS, context=stranger)


async def test_a_serving_certificate_is_no_client_certificate(pki: Pki):
    """The extended key usage counts: clientAuth, not serverAuth."""
    context = pki.client(pki.proxy.server(["front-proxy-client"]))
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get(API, MASTERS, context=context)


async def test_an_expired_client_certificate_is_refused(pki: Pki):
    past = Authority("front-proxy-past", now=NOW, days=1)
    old = Authority("front-proxy-past", now=type(NOW)(NOW - 40 * 86_400), days=30)
    pki.trust(past, old)
    context = pki.client(old.client("front-proxy-client"))
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        with pytest.raises(REFUSED_HANDSHAKE):
            await wire.get(API, MASTERS, context=context)


async def test_without_a_front_proxy_ca_everybody_is_anonymous(pki: Pki):
    """Row 10: the ConfigMap without the key; nobody can be believed then."""
    files = TlsFiles(pki.files.certificate, pki.files.key)
    async with secure_server(a_board(chat=a_decision(7)), pki, files=files) as wire:
        answer = await wire.get(DESIRED, MASTERS, context=pki.front_proxy())

    assert answer.status == 403
    assert "system:anonymous" in answer.message


async def test_a_front_proxy_user_without_groups_reads_discovery_and_openapi(pki: Pki):
    """Vector 6: the aggregator sends its legacy discovery without a group."""
    user = [("X-Remote-User", "system:aggregator")]
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        statuses = [
            (await wire.get(path, user, context=pki.front_proxy())).status
            for path in (API, "/apis", "/openapi/v2", "/openapi/v3", "/metrics")
        ]

    assert statuses == [200] * 5


async def test_a_user_without_a_rule_is_told_which_rule(pki: Pki):
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        answer = await wire.get(DESIRED, [("X-Remote-User", "bob")], context=pki.front_proxy())

    assert answer.status == 403
    assert answer.message == (
        'leadtime-desired-replicas.external.metrics.k8s.io is forbidden: User "bob" cannot '
        'list resource "leadtime-desired-replicas" in API group "external.metrics.k8s.io" '
        'in the namespace "default"'
    )


async def test_a_review_is_about_listing_the_metric_and_about_getting_a_path(pki: Pki):
    """Contract §2.4: the verb is ``list`` although discovery says ``get``; the name lower-case."""
    noted = Noted()
    async with secure_server(a_board(chat=a_decision(7)), pki, authorizer=noted) as wire:
        await wire.get(DESIRED.replace("leadtime", "LeadTime"), AS_HPA, context=pki.front_proxy())
        await wire.get(API, AS_HPA, context=pki.front_proxy())

    metric, path = noted.asked
    assert (metric.verb, metric.namespace, metric.resource) == (
        "list",
        "default",
        "leadtime-desired-replicas",
    )
    assert metric.user.groups == ("system:serviceaccounts", "system:authenticated")
    assert (path.verb, path.path, path.resource) == ("get", API, "")


async def test_a_review_that_fails_is_a_500_and_masters_pass(pki: Pki):
    async with secure_server(a_board(chat=a_decision(7)), pki, authorizer=Away()) as wire:
        hpa = await wire.get(DESIRED, AS_HPA, context=pki.front_proxy())
        masters = await wire.get(API, MASTERS, context=pki.front_proxy())

    assert hpa.status == 500
    assert "connection refused, asked for list" in hpa.message
    assert masters.status == 200


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
async def test_probes_need_no_identity(pki: Pki, path: str):
    async with secure_server(a_board(chat=a_decision(7)), pki, authorizer=Away()) as wire:
        answer = await wire.get(path, context=pki.client(None))

    assert (answer.status, answer.text) == (200, "ok")


async def test_own_metrics_need_an_identity(pki: Pki):
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        answer = await wire.get("/metrics", context=pki.client(None))

    assert answer.status == 403


async def test_watching_is_refused_to_those_who_may_watch(pki: Pki):
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        masters = await wire.get(f"{DESIRED}?watch=true", MASTERS, context=pki.front_proxy())
        hpa = await wire.get(f"{DESIRED}?watch=true", AS_HPA, context=pki.front_proxy())

    assert masters.status == 405
    assert hpa.status == 403
    assert 'cannot watch resource "leadtime-desired-replicas"' in hpa.message


async def test_the_headers_can_be_renamed_as_the_cluster_says(pki: Pki):
    renamed = RequestHeader(username_headers=("X-Proxy-User",), group_headers=("X-Proxy-Group",))
    board = a_board(chat=a_decision(7))
    async with secure_server(board, pki, request_header=renamed) as wire:
        ours = await wire.get(
            API,
            [("X-Proxy-User", "u"), ("X-Proxy-Group", "system:masters")],
            context=pki.front_proxy(),
        )
        old = await wire.get(API, MASTERS, context=pki.front_proxy())

    assert (ours.status, old.status) == (200, 403)


async def test_aggregated_discovery_is_there_for_the_aggregator(pki: Pki):
    async with secure_server(a_board(), pki) as wire:
        answer = await wire.get(
            "/apis", [*MASTERS, ("Accept", AGGREGATOR)], context=pki.front_proxy()
        )

    assert answer.status == 200
    assert answer.json["items"]
