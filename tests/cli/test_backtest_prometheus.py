"""``leadtime backtest --prometheus``: a past that a made-up Prometheus remembers."""

import asyncio
import json
from pathlib import Path

import pytest

from adapter.cli.main import main
from adapter.scaling.history import BIN
from tests.sources.prometheus_answers import Store, success
from tests.sources.servers import saying, serving

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat}
spec:
  engine: vllm
  target: {kind: Deployment, name: chat}
  source:
    prometheus: {url: "http://nowhere:9090", labels: {namespace: inference}, timeout: 3s}
  replicas: {min: 1, max: 8}
"""

RATES = {"request_success": 300.0, "prompt_tokens_total": 300_000.0, "generation": 60_000.0}
"""What comes in a bin: a request a second, of 1000 and 200 tokens."""


class Past(Store):
    """Answers each range with the same growth in every bin."""

    def reply(self, path: str, form: dict[str, list[str]]) -> object:
        if not path.endswith("/query_range"):
            return super().reply(path, form)
        start, end = (float(form[key][0]) for key in ("start", "end"))
        times = [start + BIN * number for number in range(int((end - start) / BIN) + 1)]
        query = form["query"][0]
        each = next((value for name, value in RATES.items() if name in query), None)
        found = [{"metric": {}, "values": [[at, str(each)] for at in times]}] if each else []
        return success({"resultType": "matrix", "result": found})


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(POLICY)
    return path


async def backtest(policy: Path, url: str, *options: str) -> int:
    base = url.removesuffix("/metrics")
    words = ["backtest", str(policy), "--prometheus", base, *options]
    return await asyncio.to_thread(main, words)


async def test_the_past_of_the_policys_labels_is_played(
    policy: Path, capsys: pytest.CaptureFixture[str]
):
    """An hour of a request a second, by the address of the option and not the policy's."""
    store = Past([], [])

    async with serving(store.answer) as url:
        code = await backtest(policy, url, "--since", "1h", "-o", "json")

    told = capsys.readouterr()
    assert code == 0, told.err
    assert told.err == ""
    facts = json.loads(told.out)
    assert "prometheus http://127.0.0.1" in json.dumps(facts)
    queries = [form["query"][0] for form in store.forms if "step" in form]
    assert queries
    assert all('namespace="inference"' in query for query in queries)


@pytest.mark.slow
async def test_days_and_labels_may_be_said_as_options(policy: Path):
    store = Past([], [])

    async with serving(store.answer) as url:
        code = await backtest(policy, url, "--since", "3d", "--label", "app=x", "--fluid")

    asked = [form for form in store.forms if "step" in form]
    assert code == 0
    assert float(asked[0]["end"][0]) - float(asked[0]["start"][0]) == pytest.approx(
        3 * 86_400, abs=2 * BIN
    )
    assert all('app="x"' in form["query"][0] for form in asked)
    assert not any("inference" in form["query"][0] for form in asked)


async def test_a_prometheus_without_a_past_says_so(
    policy: Path, capsys: pytest.CaptureFixture[str]
):
    async with serving(Store([], []).answer) as url:
        code = await backtest(policy, url, "--since", "1h")

    assert code == 2
    assert "no finished requests of vllm with these labels in the last 1 h" in (
        capsys.readouterr().err
    )


async def test_a_refusal_is_said_in_words(policy: Path, capsys: pytest.CaptureFixture[str]):
    async with serving(saying(b"", status="401 Unauthorized")) as url:
        code = await backtest(policy, url)

    assert code == 2
    assert "leadtime backtest: prometheus http://127" in (said := capsys.readouterr().err)
    assert "wants credentials" in said


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("prometheus:9090", [], "--prometheus: no address"),
        ("http://p", ["--label", "x"], "--label x: expected NAME=VALUE"),
        ("http://p", ["--label", "a-b=c"], "'a-b' in source.prometheus is no label"),
    ],
)
async def test_options_that_cannot_be_used_are_named(
    policy: Path, url: str, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    code = await backtest(policy, url, *options)

    assert code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("text", ["0d", "d", "-1d", "soon"])
async def test_a_span_that_is_none_is_refused(
    policy: Path, text: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        main(["backtest", str(policy), "--prometheus", "http://p", f"--since={text}"])

    assert ended.value.code == 2
    assert "--since" in capsys.readouterr().err
