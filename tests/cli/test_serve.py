import asyncio
import json
import re
import signal
import socket
import statistics
from pathlib import Path

import pytest

from adapter.cli.main import main
from tests.cli.adapters import Adapter, adapter, an_engine, policy_of
from tests.serving.wire import Pki

pytestmark = pytest.mark.slow

BROKEN = "kind: ScalingPolicy\napiVersion: leadtime.dev/v1alpha1\nmetadata: {name: chat}\n"

UNREAD = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: unread, namespace: inference}
spec:
  target: {kind: Deployment, name: unread}
  source: {pods: {}}
  replicas: {min: 1, max: 4}
"""
"""A policy over pods, which this release does not read."""


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    path = tmp_path / "policies"
    path.mkdir()
    return path


async def message(running: Adapter, policy: str = "chat") -> str:
    """Return the sentence of the error that is answered instead of a count."""
    status, answer = await running.metric(policy)
    assert answer["kind"] == "Status"
    assert answer["code"] == status
    return str(answer["message"])


async def test_exactly_one_item_says_how_many_replicas_are_wanted(policies: Path):
    """Forty requests in flight at eight a replica: five."""
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            status, answer = await running.metric()

    (item,) = answer["items"]
    assert status == 200
    assert answer["kind"] == "ExternalMetricValueList"
    assert (item["metricName"], item["value"]) == ("leadtime-desired-replicas", "5")
    assert item["metricLabels"]["policy"] == "chat"


async def test_ready_means_that_there_is_a_number_to_ask_for(policies: Path):
    """The greeting names an address that can be pasted, and its first answer is the right one."""
    async with an_engine(running=16) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            first = await running.replicas()
            live, _ = await running.get("/livez")
            ready, _ = await running.get("/readyz")
            greeting = next(line for line in running.said if line.startswith("leadtime serve:"))
            pasted, _ = await running.get(
                greeting.partition("; try: ")[2].removeprefix(running.base)
            )

    assert first == 2
    assert (live, ready, pasted) == (200, 200, 200)


async def test_a_changed_exposition_shows_within_one_interval_and_a_fifth_of_a_second(
    policies: Path,
):
    """The very next scrape decides. Median over five changes, as the machine may be busy."""
    took, scrapes = [], []
    async with an_engine(running=8) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            await running.until_replicas(1)
            for replicas in range(2, 7):
                await asyncio.sleep(0.13 * replicas)
                before = engine.scrapes
                engine.carries(running=8 * replicas)
                shown = await running.until_replicas(replicas)
                took.append(shown - engine.changed_at)
                scrapes.append(engine.scrapes - before)

    assert max(scrapes) <= 1
    assert statistics.median(took) <= 1.2


async def test_one_hanging_engine_delays_neither_the_tick_nor_the_others(policies: Path):
    """One keeps its connection open and says nothing; the load of the other shows in time.

    Started without memory, both are taken to be needed, hence two at the start.
    """
    held = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        await reader.read()

    async with an_engine(running=8) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        server = await asyncio.start_server(hang, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        text = policy_of(engine).replace("urls: [", f"urls: [http://127.0.0.1:{port}/m, ")
        (policies / "chat.yaml").write_text(text)
        async with adapter(policies) as running:
            await running.until_replicas(2)
            took = []
            for replicas in (3, 4, 5):
                engine.carries(running=8 * replicas)
                took.append(await running.until_replicas(replicas) - engine.changed_at)
        server.close()
        for writer in held:
            writer.close()

    assert statistics.median(took) <= 1.4


async def test_behind_tls_the_front_proxy_is_answered_and_nobody_else(
    policies: Path, tmp_path: Path
):
    """The same claim under another certificate, or without one, gets an error."""
    pki = Pki(tmp_path)
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, pki=pki) as running:
            served = await running.replicas()
            running.proxy = pki.client(None)
            nobody, _ = await running.metric()
            running.proxy = pki.front_proxy("another-name")
            misnamed, _ = await running.metric()
            code = await running.ends(signal.SIGTERM)

    assert running.base.startswith("https://")
    assert (served, nobody, misnamed, code) == (5, 403, 401, 0)


async def test_the_names_on_the_command_line_say_who_may_speak_and_who_may_read(
    policies: Path, tmp_path: Path
):
    pki = Pki(tmp_path)
    allowed = ("--requestheader-allowed-name", "aggregator", "--allow-user", "grafana")
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, *allowed, pki=pki) as running:
            default, _ = await running.metric()
            running.proxy = pki.front_proxy("aggregator")
            named, _ = await running.metric()
            running.user = "grafana"
            reader, _ = await running.metric()
            running.user = "somebody"
            stranger, _ = await running.metric()

    assert (default, named, reader, stranger) == (401, 200, 200, 403)


async def test_tls_files_that_cannot_be_used_are_said_by_name(policies: Path, tmp_path: Path):
    pki = Pki(tmp_path)
    pki.files.key.write_bytes(b"not a key")

    async with adapter(policies, pki=pki, ready=False) as running:
        code = await running.ends()

    assert code == 2
    assert "tls.key" in running.said[-1]


async def test_policies_come_change_break_and_go_while_it_runs(policies: Path):
    async with an_engine(running=80) as engine:
        chat, code = policies / "chat.yaml", policies / "code.yaml"
        chat.write_text(policy_of(engine))
        async with adapter(policies) as running:
            await running.until_replicas(10)

            code.write_text(policy_of(engine, name="code", top=7))
            await running.until_replicas(7, "code")

            chat.write_text(policy_of(engine, top=4))
            await running.until_replicas(4)

            chat.write_text(BROKEN)

            async def noticed() -> bool:
                return "leadtime_policy_files_broken 1.0" in (await running.get("/metrics"))[1]

            await running.until(noticed)
            assert await running.replicas() == 4

            code.unlink()

            async def withdrawn() -> bool:
                return (await running.metric("code"))[0] == 404

            await running.until(withdrawn)
            assert await running.replicas() == 4
            said = [line for line in running.said if "chat.yaml:" in line and "LT0" in line]

    assert said, "the log names the file, the line and the code"


async def test_a_broken_file_at_the_start_is_shown_and_the_good_ones_are_served(policies: Path):
    async with an_engine(running=8) as engine:
        (policies / "bad.yaml").write_text(BROKEN)
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            await running.until_replicas(1)
            said = "\n".join(running.said)

    assert "bad.yaml:1:1: error LT006" in said
    assert "1 policy on http://127.0.0.1:" in said


async def test_a_policy_whose_source_is_not_read_is_not_advertised_and_answers_why(
    policies: Path,
):
    """503 and not 404: the HPA keeps its count at either, and shows the reason."""
    async with an_engine(running=8) as engine:
        (policies / "a.yaml").write_text(UNREAD)
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            await running.until_replicas(1)
            status, _ = await running.metric("unread")
            why = await message(running, "unread")
            _, metrics = await running.get("/metrics")
            live, _ = await running.get("/livez")
            (greeting,) = [line for line in running.said if line.startswith("leadtime serve:")]

    assert (status, live) == (503, 200)
    assert why.startswith("policy inference/unread has no decision: ")
    assert "1 policy on http" in greeting
    assert "cannot serve inference/unread" in greeting
    assert greeting.endswith("policy%3Dchat")
    assert 'leadtime_policy_problem{namespace="inference",policy="unread"} 1.0' in metrics
    assert len([line for line in running.said if "source=unusable" in line]) == 1


async def test_where_no_source_can_be_read_the_greeting_names_no_address_to_try(policies: Path):
    (policies / "a.yaml").write_text(UNREAD)

    async with adapter(policies) as running:
        why = await message(running, "unread")
        (greeting,) = [line for line in running.said if line.startswith("leadtime serve:")]

    assert "no decision: " in why
    assert "0 policies on http" in greeting
    assert "try:" not in greeting


async def test_without_one_usable_policy_it_does_not_start(policies: Path):
    """A pod that never becomes ready hides a typo; one that exits shows it."""
    (policies / "bad.yaml").write_text(BROKEN)

    async with adapter(policies, ready=False) as running:
        code = await running.ends()

    assert code == 1
    assert any("bad.yaml:1:1: error LT006" in line for line in running.said)
    assert running.said[-1] == "leadtime serve: no usable policy; mend what stands above"


async def test_an_empty_directory_waits_for_its_first_policy(policies: Path):
    """The ConfigMap may come after the adapter."""
    async with an_engine(running=8) as engine, adapter(policies) as running:
        unready, _ = await running.get("/readyz")
        (policies / "chat.yaml").write_text(policy_of(engine))
        await running.until_replicas(1)
        ready, _ = await running.get("/readyz")

    assert (unready, ready) == (503, 200)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_it_stops_within_a_second_when_told(
    policies: Path, number: signal.Signals, code: int
):
    """Also while a scrape hangs and a client keeps its connection open."""
    async with an_engine(running=8) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            await running.until_replicas(1)
            began = asyncio.get_running_loop().time()
            ended = await running.ends(number)
            took = asyncio.get_running_loop().time() - began

    assert ended == code
    assert "Traceback" not in "\n".join(running.said)
    assert took < 2.0


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc")
async def test_being_told_to_stop_while_it_starts_is_no_failure(policies: Path):
    """It can be told before what takes long to load is loaded: 0, and not a death by signal."""
    async with adapter(policies, ready=False) as running:
        process = Path(f"/proc/{running.process.pid}")

        async def can_be_told() -> bool:
            (caught,) = re.findall(r"SigCgt:\s*(\w+)", (process / "status").read_text())
            return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)

        await running.until(can_be_told)
        loaded = (process / "maps").read_text()
        code = await running.ends(signal.SIGTERM)

    assert code == 0
    assert "pydantic_core" not in loaded
    assert "Traceback" not in "\n".join(running.said)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
async def test_a_restart_resumes_from_the_state_on_disk(
    policies: Path, tmp_path: Path, number: signal.Signals
):
    """Five were needed; the load is gone when the next process starts, and five still stand.

    With SIGKILL nothing could be saved at the end: it was saved before it was posted.
    """
    state = tmp_path / "state"
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, "--state", str(state)) as running:
            await running.until_replicas(5)
            await running.ends(number)

        engine.carries(running=0)
        async with adapter(policies, "--state", str(state)) as running:
            resumed = await running.replicas()
        async with adapter(policies) as running:
            forgotten = await running.replicas()

    remembered = json.loads((state / "inference" / "chat.json").read_bytes())
    assert remembered["published"] == 5
    assert resumed == 5
    assert forgotten == 1


async def test_a_state_that_is_corrupt_is_put_aside_and_said(policies: Path, tmp_path: Path):
    file = tmp_path / "state" / "inference" / "chat.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"{cut sho")
    async with an_engine(running=24) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, "--state", str(tmp_path / "state")) as running:
            await running.until_replicas(3)

    assert file.with_suffix(".json.unusable").read_bytes() == b"{cut sho"
    assert any("state=unusable" in line for line in running.said)


async def test_an_engine_that_dies_holds_the_count_then_answers_why_and_never_zero(
    policies: Path,
):
    """Five, held while the engine is away; after ``staleAfter`` an error with the cause."""
    answers: list[int | None] = []
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine, stale_after="3s"))
        async with adapter(policies) as running:
            await running.until_replicas(5)
            await engine.stop()

            async def refused() -> bool:
                answers.append(await running.replicas())
                return answers[-1] is None

            held = await running.until(refused)
            status, _ = await running.metric()
            why = await message(running)
            _, metrics = await running.get("/metrics")
            live, _ = await running.get("/livez")

            await engine.start()
            back = await running.until_replicas(5)

    assert set(answers) == {5, None}
    assert status == 503
    assert "nothing listens there" in why
    assert 'leadtime_source_errors_total{cause="unreachable"' in metrics
    assert "leadtime_desired_replicas{" not in metrics
    assert live == 200
    assert back > held


async def test_an_engine_that_answers_something_else_is_held_with_its_cause(policies: Path):
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine, stale_after="2s"))
        async with adapter(policies) as running:
            await running.until_replicas(5)
            engine.status = 404
            await running.until_replicas(None)
            why = await message(running)

    assert "--enable-metrics" in why


async def test_an_unknown_policy_is_answered_with_the_nearest(policies: Path):
    async with an_engine() as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies) as running:
            status, answer = await running.metric("chad")

    assert status == 404
    assert "did you mean 'chat'?" in answer["message"]


async def test_a_port_that_is_taken_is_said_with_the_way_out(policies: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])

        async with adapter(policies, "--port", port, ready=False) as running:
            code = await running.ends()

    assert code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in running.said[-1]


async def test_plain_http_is_refused_on_any_address_but_loopback(policies: Path):
    async with adapter(policies, "--host", "192.0.2.1", ready=False) as running:
        code = await running.ends()

    assert code == 2
    assert "loopback" in running.said[-1]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give --tls-cert, --tls-key and --requestheader-ca"),
        (["--tls-cert", "c", "--tls-key", "k"], "give --tls-cert, --tls-key and"),
        (["--insecure-http", "--tls-key", "k"], "--insecure-http excludes --tls-cert"),
        (["--insecure-http"], "/nowhere: no such directory"),
        (
            ["--tls-cert", "c", "--tls-key", "k", "--requestheader-ca", "a"],
            "/nowhere: no such directory",
        ),
    ],
)
def test_options_that_cannot_be_used_are_said_with_the_way_out(
    capsys: pytest.CaptureFixture[str], options: list[str], sentence: str
):
    code = main(["serve", "--policies", "/nowhere", *options])

    assert code == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_refused(capsys: pytest.CaptureFixture[str], port: str):
    with pytest.raises(SystemExit) as left:
        main(["serve", "--policies", "/nowhere", "--port", port])

    assert left.value.code == 2
    assert f"--port: {port!r} is not a port: give a number from 0" in capsys.readouterr().err
