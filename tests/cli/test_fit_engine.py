"""``leadtime fit-engine``: from a CSV on the command line to a preset, or to its faults."""

import io
import json
import sys
from dataclasses import replace

import pytest
import yaml

from adapter.cli.main import main
from adapter.simulator.presets import EnginePreset
from tests.simulator.logs import KNOWN, a_log


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "chat.csv"
    path.write_bytes(a_log(count=40))
    return path


def fields(document: dict[str, object]) -> dict[str, object]:
    """Return a printed preset's keys as the dataclass spells them."""
    return {
        "".join(f"_{char.lower()}" if char.isupper() else char for char in key): value
        for key, value in document.items()
    }


def test_a_log_becomes_a_table_and_a_preset(capsys, log):
    code = main(["fit-engine", str(log)])

    out = capsys.readouterr().out
    assert code == 0
    assert f"{log}: 40 requests; they waited for nothing" in out
    assert "TTFT s" in out
    assert "TPOT ms" in out
    assert "preset chat: a " in out
    assert "256 sequences, 2048 tokens a step" in out
    assert "predicted" not in out


def test_the_yaml_is_a_preset_that_the_simulator_takes(capsys, log):
    main(["fit-engine", str(log), "-o", "yaml", "--preset-name", "mine"])

    document = yaml.safe_load(capsys.readouterr().out)
    preset = EnginePreset(**fields(document))
    assert preset.name == "mine"
    assert preset.source == "fitted to 40 requests of chat.csv"
    assert preset.step_seconds(10, 5000, 0, 0.0) == pytest.approx(
        KNOWN.step_seconds(10, 5000, 0, 0.0), rel=0.15
    )


def test_the_json_says_how_far_it_is_off(capsys, log):
    main(["fit-engine", str(log), "-o", "json"])

    (fit,) = json.loads(capsys.readouterr().out)["fits"]
    errors = fit["errors"]
    assert fit["waitedFor"] == "nothing"
    assert fit["predictedFromOthers"] is None
    assert errors["requests"] == 40
    assert 0 <= errors["e2eMeanError"] < 0.05
    assert errors["ttftSeconds"]["model"]["p50"] == pytest.approx(
        errors["ttftSeconds"]["log"]["p50"], rel=0.2
    )


def test_the_limits_can_be_given(capsys, log):
    """What the operator knows goes before what the log shows."""
    options = ["--kv-tokens", "50000", "--max-num-seqs", "64", "--max-num-batched-tokens", "4096"]

    main(["fit-engine", str(log), "-o", "json", *options])

    (fit,) = json.loads(capsys.readouterr().out)["fits"]
    preset = fit["preset"]
    limits = (preset["kvTokens"], preset["maxNumSeqs"], preset["maxNumBatchedTokens"])
    assert limits == (50000, 64, 4096)


def test_a_given_kv_cache_is_not_fitted(capsys, tmp_path):
    """A log that waited for KV cache, whose size is known: it stays what it is."""
    path = tmp_path / "crowded.csv"
    path.write_bytes(a_log(replace(KNOWN, kv_tokens=9000), rate=20.0, count=60))

    main(["fit-engine", str(path), "-o", "json", "--kv-tokens", "9000"])

    (fit,) = json.loads(capsys.readouterr().out)["fits"]
    assert fit["preset"]["kvTokens"] == 9000


@pytest.mark.slow
def test_several_logs_are_predicted_from_each_other(capsys, tmp_path):
    paths = [tmp_path / f"{name}.csv" for name in "ab"]
    for path, rate in zip(paths, (8.0, 12.0), strict=True):
        path.write_bytes(a_log(count=60, rate=rate))

    code = main(["fit-engine", *map(str, paths)])
    text = capsys.readouterr().out
    main(["fit-engine", *map(str, paths), "-o", "json"])

    fits = json.loads(capsys.readouterr().out)["fits"]
    assert code == 0
    assert "each from the others" in text
    assert [fit["predictedFromOthers"]["calibratedOn"] for fit in fits] == [20, 20]
    assert all(fit["predictedFromOthers"]["errors"]["requests"] == 40 for fit in fits)


def test_one_token_answers_have_no_time_per_token(capsys, tmp_path):
    """JSON has no NaN: unknown is null, and a dash for people."""
    path = tmp_path / "one.csv"
    rows = "\n".join(f"{index},100,1,0.05,0.05" for index in range(30))
    path.write_text(f"timestamp_s,input_tokens,output_tokens,ttft_s,e2e_s\n{rows}\n")

    main(["fit-engine", str(path), "-o", "json"])
    (fit,) = json.loads(capsys.readouterr().out)["fits"]
    main(["fit-engine", str(path)])

    assert fit["errors"]["tpotSeconds"]["log"] == {"p50": None, "p90": None, "p99": None}
    assert "TPOT ms        -" in capsys.readouterr().out


def test_standard_input_is_read(capsys, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(a_log(count=40)))
    monkeypatch.setattr(sys, "stdin", stdin)

    code = main(["fit-engine", "-", "-o", "yaml"])

    assert code == 0
    assert "name: stdin" in capsys.readouterr().out


def test_faults_of_all_logs_come_with_their_lines(capsys, tmp_path, log):
    bad, short = tmp_path / "bad.csv", tmp_path / "short.csv"
    bad.write_bytes(a_log(count=40) + b"\n1,2,x,0,1,2\n")
    short.write_bytes(a_log(count=3))

    code = main(["fit-engine", str(log), str(bad), str(short)])

    captured = capsys.readouterr()
    assert code == 1
    assert captured.out == ""
    assert captured.err == (
        f"{bad}:42: output_tokens is 'x', expected a number\n"
        f"{short}: 3 requests; a fit needs 30 or more: log longer\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{tmp}/nothing.csv"], "nothing.csv: No such file or directory; give a CSV file or -"),
        (["{log}", "{log}", "--preset-name", "x"], "--preset-name goes with one log"),
        (["{log}", "--kv-tokens", "50"], "holds 49 tokens; leave it out"),
        (["{log}", "--max-num-seqs", "3000"], "max_num_seqs is 3000, expected 1 to"),
    ],
)
def test_what_cannot_run_says_why(capsys, tmp_path, log, arguments, said):
    filled = [argument.format(tmp=tmp_path, log=log) for argument in arguments]

    code = main(["fit-engine", *filled])

    assert code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("count", ["0", "-3", "many"])
def test_a_limit_is_a_count(capsys, log, count):
    with pytest.raises(SystemExit) as left:
        main(["fit-engine", str(log), f"--kv-tokens={count}"])

    assert left.value.code == 2
    assert "--kv-tokens" in capsys.readouterr().err
