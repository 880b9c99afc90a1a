"""``leadtime serve --keda-port``: the same process, the same board, another door."""

import json
import re
import signal
from pathlib import Path

import grpc
import pytest

from adapter.cli.main import main
from adapter.serving.keda.externalscaler_pb2 import GetMetricsRequest, ScaledObjectRef
from adapter.serving.pki import Authority
from adapter.serving.server import Address
from tests.cli.adapters import Adapter, adapter, an_engine, policy_of
from tests.serving.keda.client import METRIC, Caller, calling
from tests.serving.wire import NOW, Pki

pytestmark = pytest.mark.slow

CHAT = ScaledObjectRef(name="so", namespace="inference", scalerMetadata={"policy": "chat"})
QUESTION = GetMetricsRequest(scaledObjectRef=CHAT, metricName=f"s0-{METRIC}")


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    path = tmp_path / "policies"
    path.mkdir()
    return path


def scaler_of(running: Adapter) -> Address:
    """Return where the greeting says that KEDA finds it."""
    (greeting,) = (line for line in running.said if line.startswith("leadtime serve:"))
    found = re.search(r"; KEDA's external scaler on (grpcs?)://127\.0\.0\.1:(\d+)", greeting)
    assert found is not None
    return Address(found[1], "127.0.0.1", int(found[2]))


async def count(keda: Caller) -> int:
    (value,) = (await keda.get_metrics(QUESTION)).metricValues
    return int(value.metricValue)


async def test_both_doors_say_the_same_count_and_the_stream_ends_with_the_process(policies: Path):
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with (
            adapter(policies, "--keda-port", "0") as running,
            calling(scaler_of(running)) as keda,
        ):
            through_http = await running.replicas()
            through_grpc = await count(keda)
            stream = keda.stream_is_active(CHAT)
            active = await stream.read()
            code = await running.ends(signal.SIGTERM)
            end = await stream.code()

    assert (through_http, through_grpc, active.result) == (5, 5, True)
    assert (code, end) == (0, grpc.StatusCode.OK)


async def test_a_policy_that_comes_later_is_served_as_well(policies: Path):
    async with (
        an_engine(running=40) as engine,
        adapter(policies, "--keda-port", "0") as running,
        calling(scaler_of(running)) as keda,
    ):
        before, _ = await keda.refusal(keda.get_metrics, QUESTION)
        (policies / "chat.yaml").write_text(policy_of(engine))

        async def served() -> bool:
            try:
                return await count(keda) == 5
            except grpc.aio.AioRpcError:
                return False

        await running.until(served)

    assert before is grpc.StatusCode.NOT_FOUND


async def test_behind_tls_keda_needs_its_own_certificate_and_not_the_front_proxys(
    policies: Path, tmp_path: Path
):
    pki, keda_ca = Pki(tmp_path), Authority("keda", now=NOW)
    (tmp_path / "keda.crt").write_bytes(keda_ca.certificate)

    def credentials(own: Authority) -> grpc.ChannelCredentials:
        pair = own.client("keda-operator")
        return grpc.ssl_channel_credentials(pki.serving.certificate, pair.key, pair.certificate)

    options = ["--keda-port", "0", "--keda-client-ca", str(tmp_path / "keda.crt")]
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, *options, pki=pki) as running:
            through_http = await running.replicas()
            address = scaler_of(running)
            async with calling(address, credentials(keda_ca)) as keda:
                through_grpc = await count(keda)
            async with calling(address, credentials(pki.proxy)) as proxy:
                refused, _ = await proxy.refusal(proxy.get_metrics, QUESTION)

    assert address.scheme == "grpcs"
    assert (through_http, through_grpc) == (5, 5)
    assert refused is grpc.StatusCode.UNAVAILABLE


async def test_keda_alone_reads_over_http_with_a_key(policies: Path, tmp_path: Path):
    """No front proxy and no APIService: what is left open is what KEDA needs."""
    pki, secret = Pki(tmp_path), "0123456789abcdef"
    (tmp_path / "keys").write_text(f"keda:{secret}\n")
    path = "/api/v1/namespaces/inference/policies/chat"
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        options = ["--api-keys", str(tmp_path / "keys")]
        async with adapter(policies, *options, pki=pki, front_proxy=False) as running:
            read, text = await running.get(f"{path}?api_key={secret}")
            without, _ = await running.get(path)
            metric, _ = await running.metric()

    assert (read, json.loads(text)["value"]) == (200, 5)
    assert (without, metric) == (401, 403)


async def test_kedas_ca_alone_lets_nobody_speak_for_others(policies: Path, tmp_path: Path):
    """It could sign a certificate in the front proxy's name; that reads documents, and no more."""
    pki = Pki(tmp_path)
    options = ["--keda-client-ca", str(pki.files.client_ca)]
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, *options, pki=pki, front_proxy=False) as running:
            read, _ = await running.get("/api/v1/namespaces/inference/policies/chat")
            metric, _ = await running.metric()

    assert (read, metric) == (200, 403)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--keda-client-ca", "c", "--requestheader-ca", "a"],
            "and HTTP obeys --requestheader-ca: give --keda-port, or leave one of the two out",
        ),
        (["--insecure-http", "--api-keys", "k"], "--keda-client-ca and --api-keys: drop one"),
        (["--tls-cert", "c", "--tls-key", "k", "--api-keys", "k"], "/nowhere: no such directory"),
        (["--keda-port", "6443"], "--keda-port 6443 is --port already: HTTP and gRPC need one"),
        (
            ["--insecure-http", "--keda-port", "1", "--keda-client-ca", "c"],
            "--insecure-http excludes --tls-cert",
        ),
        (["--tls-cert", "c", "--tls-key", "k", "--keda-port", "1"], "/nowhere: no such directory"),
        (["--tls-cert", "c", "--keda-port", "1"], "give --tls-cert, --tls-key and"),
    ],
)
def test_options_that_do_not_go_together_are_said_with_the_way_out(
    capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
):
    code = main(["serve", "--policies", "/nowhere", *options])

    assert code == 2
    assert sentence in capsys.readouterr().err


def test_an_unusable_client_ca_is_said_with_what_it_must_be(
    policies: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    pki = Pki(tmp_path)
    (tmp_path / "keda.crt").write_text("none")
    files = [
        *("--tls-cert", str(pki.files.certificate), "--tls-key", str(pki.files.key)),
        *("--keda-port", "0", "--keda-client-ca", str(tmp_path / "keda.crt")),
    ]

    code = main(["serve", "--host", "127.0.0.1", "--policies", str(policies), *files])

    assert code == 2
    assert "keda.crt cannot be used: not PEM; it must be the PEM of the CA" in (
        capsys.readouterr().err
    )
