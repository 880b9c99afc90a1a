import asyncio
import json

import pytest

from adapter.cli.main import main
from adapter.sources.clock import SystemClock
from tests.build import T0
from tests.sources.prometheus_answers import Found, Store, an_engine, an_up
from tests.sources.servers import serving


def ago() -> float:
    """Return how long before ``T0`` it was 4 seconds ago by the real clock, which doctor reads."""
    return T0 - SystemClock().now() + 4


async def doctor(store: Store, *options: str) -> int:
    async with serving(store.answer) as url:
        base = url.removesuffix("/metrics")
        return await asyncio.to_thread(main, ["doctor", "--prometheus", base, *options])


def a_store() -> Store:
    ups: Found = [an_up("a"), an_up("b", "0")]
    return Store(ups, an_engine("a", ago=ago(), running="4"))


async def test_the_fleet_stands_with_its_age_and_its_gaps(capsys: pytest.CaptureFixture[str]):
    store = a_store()

    code = await doctor(store, "--label", "namespace=inference", "--engine", "vllm")

    head, row, gap, *missing = capsys.readouterr().out.splitlines()
    assert code == 1
    assert head.split() == ["REPLICA", "ENGINE", "AGE", "RUNNING", "WAITING", "KV"]
    assert row.split()[:2] == ["a", "vllm"]
    assert row.split()[3:] == ["4", "2", "-"]
    assert gap.startswith("gap: unreachable: b: up is 0")
    assert any(line.startswith("missing: kv_cache_usage") for line in missing)
    assert 'up{namespace="inference"}' in {form["query"][0] for form in store.forms}


async def test_json_carries_the_same(capsys: pytest.CaptureFixture[str]):
    code = await doctor(a_store(), "-o", "json")

    facts = json.loads(capsys.readouterr().out)
    (replica,) = facts["replicas"]
    assert code == 1
    assert replica["values"]["requests_running"] == 4
    assert 3 < replica["ageSeconds"] < 30
    assert list(facts["gaps"]) == ["inference/b"]


async def test_a_fleet_without_a_gap_is_fine(capsys: pytest.CaptureFixture[str]):
    store = Store([an_up("a")], an_engine("a", ago=ago()))

    code = await doctor(store)

    assert code == 0
    assert "gap" not in capsys.readouterr().out


async def test_a_label_that_is_wrong_is_named(capsys: pytest.CaptureFixture[str]):
    store = Store([], [])
    store.names = {"labels": ["namespace"], "label/namespace/values": ["inference"]}

    code = await doctor(store, "--label", "namespace=inferense")

    said = capsys.readouterr().out
    assert code == 1
    assert "found 'inference'; did you mean 'inference'?" in said


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--label", "namespace"], "--label namespace: expected NAME=VALUE"),
        (["--label", "a.b=c"], "'a.b' in source.prometheus is no label"),
        (["--interval", "soon"], "--interval: "),
        (["--engine", "x"], "no engine 'x'"),
    ],
)
def test_options_that_cannot_be_used_are_named(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
):
    code = main(["doctor", "--prometheus", "http://127.0.0.1:1", *options])

    assert code == 2
    assert words in capsys.readouterr().err


def test_what_is_no_address_is_named(capsys: pytest.CaptureFixture[str]):
    code = main(["doctor", "--prometheus", "prometheus:9090"])

    assert code == 2
    assert "leadtime doctor: --prometheus: " in capsys.readouterr().err
