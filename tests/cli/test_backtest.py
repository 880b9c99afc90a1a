"""``leadtime backtest``: the same loop on a load that was, told in every form."""

import csv
import html
import io
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from adapter.cli.fitting import _preset_document
from adapter.cli.main import main
from adapter.simulator.backtest.load import COUNTERFACTUAL, THINNED
from adapter.simulator.presets import PRESETS

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat, namespace: inference}
spec:
  mode: advisory
  target: {kind: Deployment, name: chat}
  source: {pods: {interval: 15s}}
  replicas: {min: 1, max: 8}
  loadTime: {default: 1m}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(POLICY)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Twenty minutes of two requests a second, of which five minutes twelve."""
    moments = [n / 2 for n in range(2400)] + [400 + n / 10 for n in range(3000)]
    rows = "".join(f"{1.7e9 + at:.2f},1200,100\n" for at in sorted(moments))
    path = tmp_path / "log.csv"
    path.write_text(f"timestamp_s,input_tokens,output_tokens\n{rows}")
    return path


def backtest(policy: Path, log: object, *more: object) -> int:
    return main(["backtest", str(policy), "--trace", str(log), *map(str, more)])


class TestText:
    def test_a_person_reads_who_was_late_and_what_it_cost(self, policy, log, capsys):
        code = backtest(policy, log, "--gpus-per-replica", 4, "--price-per-hour", 2.5)

        out, err = capsys.readouterr()
        lines = out.splitlines()
        assert code == 0
        assert err == "", "no progress bar where nobody looks"
        assert lines[0].startswith("inference/chat on log.csv: 0.3 h from Tue 14 Nov 2023 22:13")
        assert lines[1] == "engine llama-3.1-70b-4xh100, load time 1m, seed 1"
        names = [line.split("  ")[0] for line in lines[3:13]]
        assert names[:7] == [
            "in time", "worst 10 minutes", "TTFT p50, p99", "paid", "bound", "paid / bound",
            "starts",
        ]  # fmt: skip
        assert "of 5,400 requests" in lines[3]
        assert "GPU-hours" in lines[6]
        assert "to pay" in lines[6]

    def test_it_says_what_the_figures_are_not(self, policy, log, capsys):
        backtest(policy, log, "--scale", 0.5)

        out = capsys.readouterr().out
        assert f"note: {COUNTERFACTUAL}" in out
        assert f"note: {THINNED}" in out
        assert "note: The policy's mode is advisory: played as if active." in out

    def test_two_runs_are_equal_and_another_seed_is_not(self, policy, capsys):
        texts = []
        for seed in (1, 1, 2):
            backtest(policy, "office-week", "--length", "10m", "--seed", seed, "-o", "json")
            texts.append(capsys.readouterr().out)

        assert texts[0] == texts[1]
        assert texts[1] != texts[2].replace('"seed": 2', '"seed": 1')


class TestJson:
    def test_everything_is_there(self, policy, log, capsys):
        code = backtest(policy, log, "-o", "json", "--warm-up", "10m")

        said = json.loads(capsys.readouterr().out)
        assert code == 0
        assert said["policy"] == "inference/chat"
        assert said["mode"] == "requests"
        assert said["load"]["begin"] == "2023-11-14T22:13:20Z"
        assert COUNTERFACTUAL in said["notes"]
        summary = said["summary"]
        assert summary["requests"] == pytest.approx(2200, abs=40), "those after the warm-up"
        assert summary["missed"] == sum(hour["missed"] for hour in said["hours"])
        assert summary["requests"] == sum(row["requests"] for row in said["timeline"])
        assert summary["paidHours"] == pytest.approx(
            sum(row["paidHours"] for row in said["timeline"]), abs=0.2
        )
        assert summary["ratio"] == pytest.approx(summary["paidHours"] / summary["boundHours"])
        assert summary["cost"] is None, "nobody said what an hour costs"

    def test_more_than_one_replica_is_asked_for_when_it_is_needed(self, policy, log, capsys):
        backtest(policy, log, "-o", "json")

        said = json.loads(capsys.readouterr().out)
        assert said["summary"]["mostReplicas"] >= 2
        assert said["summary"]["starts"] >= 1
        assert said["summary"]["attainment"] > 0.9


class TestCsv:
    def test_each_ten_minutes_are_a_row(self, policy, log, capsys):
        backtest(policy, log, "-o", "csv", "--price-per-hour", 3)

        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert len(rows) == 2
        assert rows[0]["begin"] == "2023-11-14T22:13:20Z"
        assert sum(int(row["requests"]) for row in rows) == 5400
        assert float(rows[1]["cost"]) == pytest.approx(3 * float(rows[1]["paid_hours"]), abs=1e-3)
        assert COUNTERFACTUAL in rows[0]["note"]


class TestModes:
    def test_two_days_are_played_and_more_are_fluid_unless_asked_for(self, policy, capsys):
        said = {}
        for more in (
            ["--length", "49h", "--scale", 0.02],
            ["--length", "10m"],
            ["--length", "10m", "--fluid"],
        ):
            backtest(policy, "office-week", "-o", "json", *more)
            document = json.loads(capsys.readouterr().out)
            said[document["mode"], document["load"]["seconds"]] = document["notes"]

        assert [mode for mode, _ in said] == ["fluid", "requests", "fluid"]
        assert all(
            any("approximated" in note for note in notes) == (mode == "fluid")
            for (mode, _), notes in said.items()
        )


class TestHtml:
    def test_a_page_stands_alone_and_shows_everything(self, policy, log, tmp_path, capsys):
        page = tmp_path / "page.html"

        code = backtest(policy, log, "--html", page, "--gpus-per-replica", 4, "--price-per-hour", 2)

        text = page.read_text()
        assert code == 0
        assert "in time" in capsys.readouterr().out, "the summary is printed all the same"
        titles = re.findall(r"<h3>(.*?)</h3>", text)
        assert titles == ["Replicas", "Late requests", "Load", "Paid so far"]
        assert html.escape(COUNTERFACTUAL) in text
        assert "to pay" in text
        assert "GPU-hours" in text
        assert "http" not in text.replace("http-equiv", ""), "nobody is asked for anything"
        assert "<script" not in text

    def test_gaps_of_the_history_are_marked(self, policy, tmp_path):
        page, bins = tmp_path / "page.html", tmp_path / "bins.csv"
        rows = "".join(
            f"{1_764_590_400 + 300 * n},300,600,600000,60000,{'true' if 4 <= n < 6 else ''}\n"
            for n in range(12)
        )
        bins.write_text(f"start_s,seconds,requests,prompt_tokens,output_tokens,masked\n{rows}")

        backtest(policy, bins, "--html", page, "--fluid")

        text = page.read_text()
        assert "A gap in the history, 0.2 h in all" in text
        assert text.count("<title>no history: the load is made up</title>") == 4

    def test_a_long_one_is_drawn_by_ten_minutes(self, policy, tmp_path):
        page = tmp_path / "page.html"

        backtest(
            policy, "office-week", "--length", "25h", "--scale", 0.02, "--fluid", "--html", page
        )

        text = page.read_text()
        assert "Ten minutes each" in text
        assert len(text) < 200_000

    def test_a_maximum_that_was_in_the_way_is_drawn(self, policy, log, tmp_path):
        page = tmp_path / "page.html"
        policy.write_text(POLICY.replace("max: 8", "max: 1"))

        backtest(policy, log, "--html", page, "--fluid")

        assert "maximum 1" in page.read_text()

    def test_where_it_cannot_be_written_it_is_said(self, policy, log, tmp_path, capsys):
        code = backtest(policy, log, "--fluid", "--html", tmp_path / "none" / "page.html")

        assert code == 2
        assert "page.html: No such file or directory" in capsys.readouterr().err


class TestExitCodes:
    def test_1_when_fewer_are_in_time_than_asked_for(self, policy, log, capsys):
        """An engine that has to load for ten minutes cannot follow a burst of five."""
        code = backtest(policy, log, "--fail-under", 1, "--engine", "llama-3.1-8b-rtx4090")

        out, err = capsys.readouterr()
        assert code == 1
        assert "in time" in out, "the figures are told all the same"
        assert "is under --fail-under 1" in err

    def test_0_when_as_many_are(self, policy, log):
        assert backtest(policy, log, "--fail-under", 0.5) == 0

    @pytest.mark.parametrize(
        ("more", "said"),
        [
            (["--engine", "abacus"], "no engine 'abacus'; there are llama-3.1-8b-h100"),
            (["--preset", "missing.yaml"], "missing.yaml: No such file"),
            (["--skip", "1h"], "nothing is left to judge"),
            (["--warm-up", "21m"], "nothing is left to judge"),
            (["--policy-name", "other"], "no policy 'other' in it; there are: chat"),
        ],
    )
    def test_2_for_what_makes_no_plan(self, policy, log, capsys, more, said):
        code = backtest(policy, log, *more)

        out, err = capsys.readouterr()
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1

    def test_2_for_a_load_of_which_nothing_fits_the_engine(self, policy, tmp_path, capsys):
        path = tmp_path / "long.csv"
        path.write_text("timestamp_s,input_tokens,output_tokens\n0,900000,1\n60,900000,1\n")

        for mode in ("--requests", "--fluid"):
            assert backtest(policy, path, mode) == 2
            assert "long.csv: no request in this part of it" in capsys.readouterr().err

    def test_2_for_a_trace_that_is_not_there(self, policy, capsys):
        assert backtest(policy, "nonsense") == 2
        assert "nonsense: no such file" in capsys.readouterr().err

    def test_2_for_a_policy_that_is_not_there(self, tmp_path, log, capsys):
        assert backtest(tmp_path / "none.yaml", log) == 2
        assert "give a file that holds a ScalingPolicy" in capsys.readouterr().err

    def test_2_for_a_policy_with_errors_which_are_shown_in_place(self, policy, log, capsys):
        policy.write_text(POLICY.replace("max: 8", "max: 0"))

        code = backtest(policy, log)

        err = capsys.readouterr().err
        assert code == 2
        assert "chat.yaml:8:" in err
        assert "the policy has errors" in err

    def test_2_for_several_policies_and_none_named(self, policy, log, capsys):
        policy.write_text(f"{POLICY}---\n{POLICY.replace('name: chat', 'name: other')}")

        assert backtest(policy, log) == 2
        assert "choose one with --policy-name" in capsys.readouterr().err
        assert backtest(policy, log, "--policy-name", "other", "--length", "5m") == 0
        assert capsys.readouterr().out.startswith("inference/other")

    @pytest.mark.parametrize(
        "wrong",
        [
            ["--fail-under", "2"],
            ["--scale", "0"],
            ["--load-time", "240"],
            ["--gpus-per-replica", "none"],
        ],
    )
    def test_2_for_values_that_are_none(self, policy, log, capsys, wrong):
        with pytest.raises(SystemExit) as left:
            backtest(policy, log, *wrong)

        assert left.value.code == 2
        assert wrong[0] in capsys.readouterr().err


class TestEngines:
    def test_a_preset_as_fit_engine_prints_it_is_played(self, policy, log, tmp_path, capsys):
        path = tmp_path / "fitted.yaml"
        path.write_text(yaml.safe_dump({**_preset_document(PRESETS[0]), "name": "mine"}))

        code = backtest(policy, log, "--preset", path, "--length", "5m")

        assert code == 0
        assert "engine mine, " in capsys.readouterr().out

    def test_of_several_presets_one_is_chosen(self, policy, log, tmp_path, capsys):
        path = tmp_path / "fitted.yaml"
        path.write_text(yaml.safe_dump_all([_preset_document(one) for one in PRESETS[:2]]))

        assert backtest(policy, log, "--preset", path) == 2
        assert "2 presets: choose with --engine" in capsys.readouterr().err
        assert backtest(policy, log, "--preset", path, "--engine", "other") == 2
        assert "fitted.yaml: no engine 'other'" in capsys.readouterr().err
        chosen = ("--preset", path, "--engine", PRESETS[1].name, "--length", "5m")
        assert backtest(policy, log, *chosen) == 0
        assert f"engine {PRESETS[1].name}" in capsys.readouterr().out


def test_on_a_terminal_it_shows_how_far_it_is(policy, log, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)

    backtest(policy, log)

    err = capsys.readouterr().err
    assert "100%" in err
    assert err.endswith("\r\x1b[K"), "and leaves nothing behind"
