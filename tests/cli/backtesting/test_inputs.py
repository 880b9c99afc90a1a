"""From options to a plan: what is taken from where, and what each wrong one is told."""

import argparse
from pathlib import Path

import pytest
import yaml

from adapter.cli.backtest import add_parser
from adapter.cli.backtesting.inputs import ENGINE, BacktestUsageError, plan_of, policy_of
from adapter.cli.fitting import _preset_document
from adapter.controller.errors import AdapterError
from adapter.simulator.presets import PRESETS

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat, namespace: inference}
spec:
  target: {kind: Deployment, name: chat}
  source: {pods: {interval: 15s}}
  replicas: {min: 1, max: 8}
  loadTime: {default: 90s}
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(POLICY)
    return path


def options(policy: Path, *more: object, trace: object = "office-week") -> argparse.Namespace:
    """Return what the command line makes of these words."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    words = ["backtest", str(policy), "--trace", str(trace), *map(str, more)]
    return parser.parse_args(words)


class TestDefaults:
    def test_what_is_not_said_comes_from_the_policy_and_the_trace(self, policy):
        plan = plan_of(options(policy))

        assert plan.engine.name == ENGINE
        assert plan.load_time == 90.0, "the policy's own default"
        assert plan.load.length == 7 * 86_400
        assert (plan.scale, plan.warm_up, plan.seed) == (1.0, 0.0, 1)

    def test_the_default_engine_exists(self):
        assert ENGINE in {one.name for one in PRESETS}


class TestParts:
    def test_skip_and_length_take_a_part(self, policy):
        plan = plan_of(options(policy, "--skip", "31h", "--length", "90m"))

        whole = plan_of(options(policy))
        assert plan.load.begin == whole.load.begin + 31 * 3600
        assert plan.load.length == 5400

    def test_a_length_beyond_the_end_ends_there(self, policy):
        plan = plan_of(options(policy, "--skip", "167h", "--length", "9h"))

        assert plan.load.length == 3600

    def test_the_warm_up_is_part_of_the_length(self, policy):
        plan = plan_of(options(policy, "--length", "2h", "--warm-up", "30m"))

        assert plan.judged_from == plan.load.begin + 1800
        assert plan.end == plan.load.begin + 7200

    @pytest.mark.parametrize(
        "wrong", [["--skip", "168h"], ["--length", "1h", "--warm-up", "1h"], ["--length", "0s"]]
    )
    def test_where_nothing_is_left_it_is_said_with_the_figures(self, policy, wrong):
        with pytest.raises(BacktestUsageError, match="nothing is left to judge") as error:
            plan_of(options(policy, *wrong))

        assert "604800 s long" in str(error.value)


class TestEngine:
    @pytest.mark.parametrize("name", [one.name for one in PRESETS])
    def test_each_preset_is_known_by_its_name(self, policy, name):
        assert plan_of(options(policy, "--engine", name)).engine.name == name

    def test_load_time_and_seed_are_taken_as_said(self, policy):
        plan = plan_of(options(policy, "--load-time", "7m30s", "--seed", "9", "--scale", "0.25"))

        assert (plan.load_time, plan.seed, plan.scale) == (450.0, 9, 0.25)

    def test_a_file_with_one_preset_needs_no_name(self, policy, tmp_path):
        path = tmp_path / "fitted.yaml"
        path.write_text(yaml.safe_dump({**_preset_document(PRESETS[2]), "name": "mine"}))

        assert plan_of(options(policy, "--preset", path)).engine.name == "mine"

    def test_a_name_that_its_file_does_not_know_is_told_with_those_it_knows(self, policy, tmp_path):
        path = tmp_path / "fitted.yaml"
        path.write_text(yaml.safe_dump(_preset_document(PRESETS[2])))

        with pytest.raises(BacktestUsageError, match="no engine 'other'; there are llama"):
            plan_of(options(policy, "--preset", path, "--engine", "other"))


class TestPolicy:
    def test_the_only_one_needs_no_name(self, policy):
        assert policy_of(options(policy)).metadata.name == "chat"

    def test_documents_of_other_kinds_are_passed_over(self, policy):
        policy.write_text(f"kind: Service\napiVersion: v1\n---\n{POLICY}")

        assert policy_of(options(policy)).metadata.name == "chat"

    def test_of_several_one_is_named(self, policy):
        policy.write_text(f"{POLICY}---\n{POLICY.replace('name: chat, n', 'name: code, n')}")

        assert policy_of(options(policy, "--policy-name", "code")).metadata.name == "code"

    @pytest.mark.parametrize(
        ("text", "more", "said"),
        [
            (f"{POLICY}---\n{POLICY.replace('name: chat, n', 'name: code, n')}", [], "2 policies"),
            (POLICY, ["--policy-name", "code"], "no policy 'code' in it; there are: chat"),
            ("kind: Service\napiVersion: v1\n", [], "no ScalingPolicy in it"),
            ("", [], "no ScalingPolicy in it"),
            (POLICY.replace("min: 1", "min: 0"), [], "the policy has errors"),
            ("{", [], "the policy has errors"),
        ],
    )
    def test_what_is_not_one_policy_is_told(self, policy, text, more, said):
        policy.write_text(text)

        with pytest.raises(BacktestUsageError, match=said) as error:
            policy_of(options(policy, *more))

        assert "chat.yaml" in str(error.value)
        assert "\n" not in str(error.value)

    def test_errors_are_shown_in_place_before(self, policy, capsys):
        policy.write_text(POLICY.replace("max: 8", "maximum: 8"))

        with pytest.raises(BacktestUsageError):
            policy_of(options(policy))

        assert "chat.yaml:7:" in capsys.readouterr().err

    def test_a_directory_is_no_file(self, tmp_path):
        with pytest.raises(BacktestUsageError, match="give a file that holds a ScalingPolicy"):
            policy_of(options(tmp_path))


def test_every_error_is_one_of_ours(policy, tmp_path):
    """``run`` turns these, and only these, into a sentence and exit code 2."""
    broken = tmp_path / "load.csv"
    broken.write_text("a,b\n1,2\n")

    for arguments in (
        options(policy, trace="nonsense"),
        options(policy, trace=broken),
        options(policy, "--format", "bins", trace=broken),
        options(policy, "--preset", broken),
        options(tmp_path / "none.yaml"),
    ):
        with pytest.raises(AdapterError) as error:
            plan_of(arguments)
        assert "\n" not in str(error.value)
