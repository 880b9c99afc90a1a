"""Who may read a policy's document behind TLS: a key, or a certificate of the readers' own CA."""

import base64
from pathlib import Path

import pytest

from adapter.serving.external_metrics.authn import RequestHeader
from adapter.serving.metrics_api.keys import ApiKeys
from tests.serving.build import a_board, a_decision
from tests.serving.wire import API, AS_HPA, MASTERS, Pki, secure_server

PATH = "/api/v1/namespaces/default/policies/chat"
SECRET = "0123456789abcdef"  # noqa: S105 - of this test
BASIC = base64.b64encode(f"keda:{SECRET}".encode()).decode()


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


@pytest.fixture
def keys(tmp_path: Path) -> ApiKeys:
    path = tmp_path / "keys"
    path.write_text(f"keda:{SECRET}\n")
    return ApiKeys(path)


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        (PATH, [("X-API-KEY", SECRET)]),
        (f"{PATH}?api_key={SECRET}", []),
        (PATH, [("Authorization", f"Bearer {SECRET}")]),
        (PATH, [("Authorization", f"Basic {BASIC}")]),
    ],
)
async def test_a_key_opens_the_document(pki: Pki, keys: ApiKeys, path: str, headers):
    async with secure_server(a_board(chat=a_decision(7)), pki, keys=keys) as wire:
        answer = await wire.get(path, headers, context=pki.client(None))

    assert (answer.status, answer.json["value"]) == (200, 7)


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        ([], "no valid API key; show one of --api-keys: header X-API-KEY"),
        ([("X-API-KEY", "wrong")], "not a valid API key; show one of"),
        ([("Authorization", "Bearer wrong")], "not a valid API key"),
    ],
)
async def test_without_the_key_it_is_401_and_says_what_to_show(
    pki: Pki, keys: ApiKeys, headers, sentence: str
):
    async with secure_server(a_board(chat=a_decision(7)), pki, keys=keys) as wire:
        answer = await wire.get(PATH, headers, context=pki.client(None))

    assert answer.status == 401
    assert sentence in answer.message


async def test_a_key_opens_nothing_else(pki: Pki, keys: ApiKeys):
    headers = [("X-API-KEY", SECRET), *MASTERS]
    async with secure_server(a_board(chat=a_decision(7)), pki, keys=keys) as wire:
        statuses = [
            (await wire.get(path, headers, context=pki.client(None))).status
            for path in (API, "/metrics", "/apis")
        ]

    assert set(statuses) == {403}


async def test_without_keys_nobody_but_the_cluster_admin_reads_it(pki: Pki):
    async with secure_server(a_board(chat=a_decision(7)), pki) as wire:
        nobody = await wire.get(PATH, [("X-API-KEY", SECRET)], context=pki.client(None))
        hpa = await wire.get(PATH, AS_HPA, context=pki.front_proxy())
        admin = await wire.get(PATH, MASTERS, context=pki.front_proxy())

    assert (nobody.status, hpa.status, admin.status) == (403, 403, 200)


async def test_the_front_proxy_still_speaks_for_others_beside_the_keys(pki: Pki, keys: ApiKeys):
    async with secure_server(a_board(chat=a_decision(7)), pki, keys=keys) as wire:
        hpa = await wire.get(PATH, AS_HPA, context=pki.front_proxy())
        admin = await wire.get(PATH, MASTERS, context=pki.front_proxy())

    assert (hpa.status, admin.status) == (403, 200)


async def test_where_only_keda_asks_its_certificate_opens_the_document_and_nothing_else(pki: Pki):
    """Its CA is no front proxy's: even under that name it cannot speak for anybody."""
    board = a_board(chat=a_decision(7))
    async with secure_server(board, pki, request_header=None) as wire:
        keda = pki.client(pki.proxy.client("keda-operator"))
        posing = pki.client(pki.proxy.client(RequestHeader().allowed_names[0]))
        read = await wire.get(PATH, context=keda)
        nobody = await wire.get(PATH, context=pki.client(None))
        metrics = await wire.get(API, MASTERS, context=posing)
        health = await wire.get("/healthz", context=pki.client(None))

    assert (read.status, nobody.status, metrics.status, health.status) == (200, 403, 403, 200)


async def test_a_key_or_a_certificate_is_enough_where_both_are_offered(pki: Pki, keys: ApiKeys):
    board = a_board(chat=a_decision(7))
    async with secure_server(board, pki, request_header=None, keys=keys) as wire:
        certified = await wire.get(PATH, context=pki.client(pki.proxy.client("keda-operator")))
        keyed = await wire.get(PATH, [("X-API-KEY", SECRET)], context=pki.client(None))
        nobody = await wire.get(PATH, context=pki.client(None))

    assert (certified.status, keyed.status, nobody.status) == (200, 200, 401)


async def test_a_wrong_key_is_told_whatever_certificate_comes_with_it(pki: Pki, keys: ApiKeys):
    """Even the cluster's admin: a key that is shown is meant."""
    headers = [("X-API-KEY", "wrong"), *MASTERS]
    async with secure_server(a_board(chat=a_decision(7)), pki, keys=keys) as wire:
        answer = await wire.get(PATH, headers, context=pki.front_proxy())

    assert answer.status == 401
    assert "not a valid API key" in answer.message
