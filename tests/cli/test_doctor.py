import asyncio
import io
import json
import sys
from pathlib import Path

import pytest

from adapter.cli.main import main
from tests.sources.servers import saying, serving

VLLM = b"""\
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="llama"} 3.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="llama"} 2.0
# TYPE vllm:gpu_cache_usage_perc gauge
vllm:gpu_cache_usage_perc{engine="0",model_name="llama"} 0.25
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="llama"} 400.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="llama"} 900.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="llama"} 8.0
# TYPE vllm:e2e_request_latency_seconds histogram
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="llama"} 12.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.5",model_name="llama"} 8.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="llama"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="llama"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="llama"} 4.0
"""


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "engine.prom"
    path.write_bytes(VLLM)
    return path


def test_every_metric_stands_with_its_value_and_its_series(
    dump: Path, capsys: pytest.CaptureFixture[str]
):
    code = main(["doctor", "--engine-metrics", str(dump)])

    out = capsys.readouterr().out
    assert code == 0
    assert "engine  vllm\nmodel   llama\nranks   1 (0)\n" in out
    rows = [line.split(maxsplit=2) for line in out.splitlines()]
    assert ["requests_running", "3", "vllm:num_requests_running"] in rows
    assert ["kv_cache_usage_ratio", "0.25", "vllm:gpu_cache_usage_perc"] in rows
    assert any(line.startswith("ttft ") and "10, p95 inf s" in line for line in out.splitlines())
    assert any(line.startswith("response_cache_hits_total ") for line in out.splitlines())
    assert "warning: vllm:gpu_cache_usage_perc is deprecated" in out


def test_json_carries_the_same_by_rank(dump: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["doctor", "--engine-metrics", str(dump), "-o", "json"])

    facts = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (facts["engine"], facts["model"]) == ("vllm", "llama")
    assert facts["values"]["requests_waiting"] == 2
    assert facts["ranks"]["0"]["generation_tokens_total"] == 900
    assert facts["ttft"] == {"count": 10, "sumSeconds": 4}
    assert facts["matched"]["ttft"] == "vllm:time_to_first_token_seconds"
    assert facts["missing"] == {}
    assert "response_cache_hits_total" in facts["notExported"]
    assert len(facts["warnings"]) == 1


def test_an_engine_without_a_first_token_yet_says_so(
    dump: Path, capsys: pytest.CaptureFixture[str]
):
    dump.write_bytes(VLLM.replace(b"8.0\nvllm:time", b"0.0\nvllm:time").replace(b" 10.0", b" 0.0"))

    main(["doctor", "--engine-metrics", str(dump)])

    assert "none yet" in capsys.readouterr().out


def test_a_value_that_is_lost_is_a_finding(dump: Path, capsys: pytest.CaptureFixture[str]):
    dump.write_bytes(VLLM.replace(b'llama"} 3.0', b'llama"} NaN'))

    code = main(["doctor", "--engine-metrics", str(dump)])

    assert code == 1
    (line,) = [x for x in capsys.readouterr().out.splitlines() if x.startswith("requests_running")]
    assert "missing" in line
    assert "NaN" in line


def test_a_dump_without_a_histogram_has_no_ttft(dump: Path, capsys: pytest.CaptureFixture[str]):
    kept = [line for line in VLLM.splitlines() if b"time_to_first_token" not in line]
    dump.write_bytes(b"\n".join(kept) + b"\n")

    code = main(["doctor", "--engine-metrics", str(dump), "-o", "json"])

    facts = json.loads(capsys.readouterr().out)
    assert code == 1
    assert facts["ttft"] is None
    assert list(facts["missing"]) == ["ttft"]


def test_standard_input_is_read_like_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(VLLM)))

    assert main(["doctor", "--engine-metrics", "-"]) == 0
    assert "engine  vllm" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["text", "json"])
def test_a_page_that_is_no_exposition_is_a_finding(
    dump: Path, capsys: pytest.CaptureFixture[str], output: str
):
    dump.write_bytes(b"<html>login</html>\n")

    code = main(["doctor", "--engine-metrics", str(dump), "-o", output])

    said = capsys.readouterr()
    assert code == 1
    if output == "json":
        assert json.loads(said.out)["cause"] == "not_metrics"
    else:
        assert said.err.startswith(f"leadtime doctor: not_metrics: {dump}: ")


def test_a_model_that_is_not_there_is_a_finding(dump: Path, capsys: pytest.CaptureFixture[str]):
    code = main(["doctor", "--engine-metrics", str(dump), "--model", "lama"])

    assert code == 1
    assert "wrong_model" in capsys.readouterr().err


def test_an_unknown_engine_is_answered_with_the_known_ones(
    dump: Path, capsys: pytest.CaptureFixture[str]
):
    code = main(["doctor", "--engine-metrics", str(dump), "--engine", "vlm"])

    assert code == 2
    assert "no engine 'vlm'; one of auto, " in capsys.readouterr().err


def test_a_file_that_is_not_there_cannot_be_examined(capsys: pytest.CaptureFixture[str]):
    code = main(["doctor", "--engine-metrics", "/nowhere.prom"])

    assert code == 2
    assert capsys.readouterr().err == (
        "leadtime doctor: /nowhere.prom: No such file or directory; give a URL, a file or -\n"
    )


def test_an_address_where_nothing_listens_cannot_be_examined(capsys: pytest.CaptureFixture[str]):
    code = main(["doctor", "--engine-metrics", "http://127.0.0.1:1/metrics"])

    assert code == 2
    assert "unreachable: http://127.0.0.1:1/metrics: no connection" in capsys.readouterr().err


@pytest.mark.parametrize(
    "url",
    [
        "http://reader:s3cret@127.0.0.1:1/metrics",
        "http://reader:s3cret@[::1/metrics",
        "http://reader:s3cret@\u2100.com/metrics",
        "http://reader:s3cret@127.0.0.1:http/metrics",
    ],
)
@pytest.mark.parametrize("output", ["text", "json"])
def test_credentials_of_an_address_are_never_shown(
    capsys: pytest.CaptureFixture[str], url: str, output: str
):
    """What doctor says is pasted into tickets."""
    code = main(["doctor", "--engine-metrics", url, "-o", output])

    said = capsys.readouterr()
    assert code == 2
    assert "/metrics" in said.out + said.err
    assert "s3cret" not in said.out + said.err


@pytest.mark.parametrize(
    ("place", "address"),
    [
        ("localhost:8000/metrics", "http://localhost:8000/metrics"),
        ("localhost/m", "http://localhost/m"),
        ("10.0.3.7:8000", "http://10.0.3.7:8000"),
        ("engine.inference.svc/metrics", "http://engine.inference.svc/metrics"),
        ("reader:s3cret@engine:8000/metrics", "http://engine:8000/metrics"),
    ],
)
def test_an_address_without_its_scheme_is_shown_with_it(
    capsys: pytest.CaptureFixture[str], place: str, address: str
):
    code = main(["doctor", "--engine-metrics", place])

    said = capsys.readouterr().err
    assert code == 2
    assert said.endswith(f"; as an address: {address}\n")
    assert "s3cret" not in said


def test_an_engine_that_does_not_tell_its_load_is_a_finding(
    dump: Path, capsys: pytest.CaptureFixture[str]
):
    """A policy over it would never have a number to scale by, however much else is read."""
    dump.write_bytes(
        b"# TYPE dynamo_component_requests_total counter\ndynamo_component_requests_total 42\n"
    )

    code = main(["doctor", "--engine-metrics", str(dump)])

    out = capsys.readouterr().out
    assert code == 1
    assert "warning: neither requests_running nor requests_waiting is read" in out
    assert "warning: spec.engine has no dynamo: a policy reads it with engine: auto" in out


def test_one_half_of_the_load_is_enough(dump: Path, capsys: pytest.CaptureFixture[str]):
    """Triton has no gauge for what runs."""
    dump.write_bytes(
        b"# TYPE nv_inference_pending_request_count gauge\n"
        b'nv_inference_pending_request_count{model="m",version="1"} 3\n'
    )

    main(["doctor", "--engine-metrics", str(dump), "-o", "json"])

    facts = json.loads(capsys.readouterr().out)
    assert facts["values"]["requests_waiting"] == 3
    assert not any("neither" in warning for warning in facts["warnings"])


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ((), "serves 2 models and none is named: set --model to one of 'llama', 'qwen'"),
        (("--model", "lama"), "set --model to that"),
        (("--engine", "sglang"), "set --engine to 'auto'"),
    ],
)
def test_hints_name_the_options_of_the_command(
    dump: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], hint: str
):
    dump.write_bytes(VLLM + VLLM.replace(b"llama", b"qwen"))

    code = main(["doctor", "--engine-metrics", str(dump), *options])

    said = capsys.readouterr().err
    assert code == 1
    assert hint in said
    assert "spec." not in said


def test_series_that_name_no_rank_are_no_rank(dump: Path, capsys: pytest.CaptureFixture[str]):
    dump.write_bytes(
        b'lmdeploy:num_requests_running{engine="0",model_name="m"} 3\n'
        b'lmdeploy:num_requests_running{engine="1",model_name="m"} 3\n'
        b'lmdeploy:num_requests_waiting{engine="0",model_name="m"} 2\n'
        b"process_start_time_seconds 1700000000\n"
    )
    main(["doctor", "--engine-metrics", str(dump)])
    beside = capsys.readouterr().out

    dump.write_bytes(VLLM.replace(b'engine="0",', b""))
    main(["doctor", "--engine-metrics", str(dump)])
    alone = capsys.readouterr().out

    assert "ranks   2 (0, 1, and series that name none)\n" in beside
    assert "ranks   1 (not named)\n" in alone


async def test_an_address_is_scraped_once(capsys: pytest.CaptureFixture[str]):
    async with serving(saying(VLLM)) as url:
        code = await asyncio.to_thread(main, ["doctor", "--engine-metrics", url])

    assert code == 0
    assert "engine  vllm" in capsys.readouterr().out
