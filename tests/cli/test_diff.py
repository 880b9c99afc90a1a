"""``leadtime diff``: what a change of a policy changes, for a person and for a pull request."""

import json
import logging
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from adapter.cli.comparing.fields import ABSENT, Change, changes
from adapter.cli.comparing.history import History, Outcome
from adapter.cli.comparing.told import headline, rendered
from adapter.cli.main import main
from adapter.controller.ports import FleetSource
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.simulator.autoscaler import product
from adapter.simulator.synthetic import Curve, Play
from adapter.sources.recorder import RecordedSource, Recorder
from tests.simulator.worlds import CHAT, a_policy, a_world

POLICY = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat, namespace: inference}
spec:
  mode: active
  target: {kind: Deployment, name: chat}
  source: {pods: {interval: 15s}}
  replicas: {min: 1, max: 8}
  loadTime: {default: 1m}
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return a_file(tmp_path / "old.yaml", POLICY)


@pytest.fixture
def dearer(tmp_path: Path) -> Path:
    """Never go below three replicas."""
    return a_file(tmp_path / "new.yaml", POLICY.replace("min: 1", "min: 3"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Ten minutes of two requests a second, of which one minute forty."""
    moments = [n / 2 for n in range(1200)] + [200 + n / 40 for n in range(2400)]
    rows = "".join(f"{1.7e9 + at:.2f},1200,100\n" for at in sorted(moments))
    return a_file(tmp_path / "log.csv", f"timestamp_s,input_tokens,output_tokens\n{rows}")


def a_file(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def diff(old: Path, new: Path, *more: object) -> int:
    return main(["diff", str(old), str(new), *map(str, more)])


class TestFields:
    def test_a_changed_field_is_told_with_both_values_and_code_1(self, old, dearer, capsys):
        code = diff(old, dearer)

        assert code == 1
        assert capsys.readouterr() == ("spec.replicas.min: 1 → 3\n", "")

    def test_a_policy_is_the_same_as_itself(self, old, capsys):
        code = diff(old, old)

        assert code == 0
        assert "say the same" in capsys.readouterr().out

    def test_a_default_that_is_written_out_is_no_difference(self, old, tmp_path):
        whole = Policy.model_validate(yaml.safe_load(POLICY)).model_dump(mode="json", by_alias=True)
        whole["spec"]["source"] = {"pods": {"interval": "15s"}}
        new = a_file(tmp_path / "whole.yaml", yaml.safe_dump(whole))

        assert diff(old, new) == 0

    def test_a_section_that_is_new_was_absent(self, old, tmp_path, capsys):
        new = a_file(tmp_path / "new.yaml", POLICY + "  scaleUp: {maxStep: 100%}\n")

        code = diff(old, new, "-o", "json")

        document = json.loads(capsys.readouterr().out)
        (field,) = document["fields"]
        assert code == 1
        assert (field["path"], field["old"]) == ("spec.scaleUp.maxStep", ABSENT)
        assert document["history"] is None

    def test_markdown_is_a_table_that_no_value_can_break(self):
        change = Change("spec.model", "a|b", "`c`")

        said = rendered([change], None, "markdown")

        assert said.splitlines() == [
            "| field | old | new |",
            "|---|---|---|",
            "| `spec.model` | `a\\|b` | `'c'` |",
        ]

    def test_equal_policies_are_said_to_be_in_markdown_as_well(self):
        assert rendered([], None, "markdown") == "The policies say the same, defaults included.\n"

    @given(low=st.integers(1, 50), high=st.integers(50, 99), other=st.integers(50, 99))
    def test_only_what_differs_is_told_and_the_way_back_is_its_mirror(self, low, high, other):
        one, two = (a_policy_of(low, most) for most in (high, other))

        found = changes(one, two)

        assert bool(found) is (high != other)
        assert {change.path for change in found} <= {"spec.replicas.max"}
        assert changes(two, one) == tuple(Change(c.path, c.new, c.old) for c in found)


def a_policy_of(least: int, most: int) -> Policy:
    document = yaml.safe_load(POLICY)
    document["spec"]["replicas"] = {"min": least, "max": most}
    return Policy.model_validate(document)


class TestOnATrace:
    @pytest.mark.parametrize("mode", ["requests", "fluid"])
    def test_both_are_played_and_the_dearer_one_pays_more(self, old, dearer, log, capsys, mode):
        code = diff(old, dearer, "--trace", log, "--mode", mode, "-o", "json")

        history = json.loads(capsys.readouterr().out)["history"]
        assert code == 1
        assert history["new"]["hours"] > history["old"]["hours"]
        assert history["new"]["late_minutes"] <= history["old"]["late_minutes"]
        assert history["old"]["late_minutes"] > 0, "a burst that one replica cannot serve"
        assert any("counterfactual" in note for note in history["notes"])

    def test_the_same_policy_comes_to_the_same(self, old, log, capsys):
        code = diff(old, old, "--trace", log)

        said = capsys.readouterr().out
        rows = [line for line in said.splitlines() if line.startswith(("replica-hours", "flips"))]
        assert code == 0
        assert [row.split()[-1] for row in rows] == ["±0", "±0"]

    def test_a_pull_request_gets_the_headline_and_what_must_be_known(
        self, old, dearer, log, capsys
    ):
        diff(old, dearer, "--trace", log, "-o", "markdown")

        said = capsys.readouterr().out
        assert "| `spec.replicas.min` | `1` | `3` |" in said
        assert "On log.csv: +" in said
        assert "\n|  | old | new | change |\n|---|---|---|---|\n" in said
        assert "\n> Past queues are counterfactual" in said

    def test_the_log_of_the_loops_is_as_loud_afterwards_as_before(self, old, log, caplog):
        with caplog.at_level(logging.INFO, logger="leadtime"):
            diff(old, old, "--trace", log)

            assert caplog.records == []
            assert logging.getLogger("leadtime").level == logging.INFO


class TestOnARecording:
    def test_both_are_decided_on_what_was_seen(self, tmp_path, capsys):
        policy = a_policy()
        path = recorded(tmp_path, policy)
        before = policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
        least = policy.spec.replicas.max
        after = {**before, "spec": {**before["spec"], "replicas": {"min": least, "max": least}}}
        old, new = (
            a_file(tmp_path / f"{name}.yaml", yaml.safe_dump(document))
            for name, document in (("old", before), ("new", after))
        )

        code = diff(old, new, "--recording", path, "-o", "json")

        history = json.loads(capsys.readouterr().out)["history"]
        assert code == 1
        assert history["new"]["hours"] > history["old"]["hours"]
        assert (history["new"]["most"], history["new"]["flips"]) == (least, 0)
        assert history["new"]["late_minutes"] is None
        assert diff(old, new, "--recording", path) == 1
        assert "SLO minutes" not in capsys.readouterr().out


def recorded(place: Path, policy: Policy) -> Path:
    """Play ten minutes in a world, record the loop, and return the file."""
    recorder, name, length = Recorder(place), "default/chat", 600.0
    recorder.begin(name)

    def through(source: FleetSource) -> FleetSource:
        return RecordedSource(source, name, recorder)

    world = a_world(
        Play(
            rates=Curve(((0.0, 1.0), (length, 4.0))), decks=CHAT, length=Seconds(length), seed=1
        ).arrivals(),
        autoscaler=product(policy, told=lambda d: recorder.decided(name, d), through=through),
        scrape_interval=policy.spec.source.interval,
    )
    world.play(Timestamp(world.begin + length))
    recorder.close()
    return place / f"{name}.jsonl"


def test_a_headline_has_the_sign_of_every_change():
    history = History("h", Outcome(100.0, 0.0, 14, 31), Outcome(82.0, 20.0, 12, 31), ())

    said = headline(history)

    assert said.startswith("-18.0 replica-hours, +20 SLO minutes")
    assert said.endswith("-2 most replicas, ±0 flips")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--trace", "no-such-trace"], "no-such-trace"),
        (["--recording", "no-such-file"], "no-such-file"),
        (["--policy-name", "other"], "no policy 'other'"),
    ],
)
def test_what_cannot_be_used_is_named_in_one_sentence(old, dearer, capsys, more, words):
    code = diff(old, dearer, *more)

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert words in said.err


def test_a_time_without_a_unit_is_a_matter_of_usage(old, dearer, capsys):
    with pytest.raises(SystemExit) as left:
        diff(old, dearer, "--trace", "x", "--length", "5")

    assert left.value.code == 2
    assert "no unit" in capsys.readouterr().err
