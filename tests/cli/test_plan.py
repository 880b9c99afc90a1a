"""``leadtime plan release``: the table, the JSON for CI, and the exit code of a bad choice."""

import json

import pytest
import yaml

from adapter.cli.main import main

SIXTEEN = [
    "plan",
    "release",
    "--replicas",
    "16",
    "--load",
    "0.8",
    "--cold-start",
    "180s",
    "--drain",
    "120s",
]

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama}
spec:
  replicas: 10
  minReadySeconds: 30
  strategy: {rollingUpdate: {maxUnavailable: 0, maxSurge: 1}}
  template:
    spec:
      terminationGracePeriodSeconds: 90
      containers: [{name: vllm, resources: {limits: {nvidia.com/gpu: 4}}}]
"""

POLICY = """
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: llama}
spec:
  target: {kind: Deployment, name: llama}
  source: {pods: {port: 8000}}
  replicas: {min: 2, max: 20}
  loadTime: {default: 5m}
"""

GROUPS = """
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
spec:
  replicas: 4
  rolloutStrategy: {rollingUpdateConfiguration: {maxUnavailable: 1, maxSurge: 1}}
  leaderWorkerTemplate:
    size: 3
    workerTemplate:
      spec:
        containers: [{resources: {limits: {nvidia.com/gpu: "8"}}}]
"""


def planned(capsys, *arguments: str) -> tuple[int, dict[str, dict[str, object]]]:
    code = main([*arguments, "-o", "json"])
    options = json.loads(capsys.readouterr().out)["options"]
    return code, {option["name"]: option for option in options}


def test_the_options_of_sixteen_replicas_for_a_program(capsys):
    code, options = planned(capsys, *SIXTEEN)

    assert code == 0
    wanted = {
        "one-at-a-time": (1, 0, 16, 80, 0.9375, 0.0, False),
        "k-at-a-time": (4, 0, 4, 20, 0.75, 0.0, True),
        "surge": (0, 2, 8, 40, 1.0, 0.125, False),
        "blue-green": (0, 16, 1, 5, 1.0, 1.0, False),
        "best": (2, 0, 8, 40, 0.875, 0.0, False),
    }
    keys = ("maxUnavailable", "maxSurge", "rounds", "minutes", "minimumCapacity", "extraGpus",
            "overloaded")  # fmt: skip
    assert {name: tuple(one[key] for key in keys) for name, one in options.items()} == wanted
    assert options["blue-green"]["rollbackMinutes"] == 0
    assert options["surge"]["rollbackMinutes"] == 40


def test_the_table_says_the_same_for_a_person(capsys):
    assert main(SIXTEEN) == 0

    lines = capsys.readouterr().out.splitlines()
    said = {line.split()[0]: line for line in lines if line}
    for name, parts in {
        "one-at-a-time": ("16 rounds", "80 min", "94 %", "0 %", "not overloaded"),
        "k-at-a-time": ("4 rounds", "20 min", "75 %", "0 %", "overloaded"),
        "surge": ("8 rounds", "40 min", "100 %", "12.5 %", "not overloaded"),
        "blue-green": ("1 round ", "5 min", "100 %", "100 %", "not overloaded"),
    }.items():
        assert all(part in said[name] for part in parts)


@pytest.mark.parametrize(
    ("choice", "code"),
    [
        (["--max-unavailable", "25%", "--max-surge", "0"], 1),
        (["--max-unavailable", "1", "--max-surge", "0"], 0),
        (["--max-unavailable", "0", "--max-surge", "1", "--free-gpus", "0"], 1),
        (["--max-unavailable", "5%", "--max-surge", "0"], 0),
    ],
)
def test_a_bad_choice_fails_the_pipeline(capsys, choice, code):
    """5 % of 16 is none, and Kubernetes then replaces one at a time."""
    said, options = planned(capsys, *SIXTEEN, *choice)

    assert said == code
    assert options["chosen"]["verdict"] in ({"overloaded", "deadlock"} if code else {"ok"})


def test_one_knob_alone_leaves_the_other_at_the_default_of_kubernetes(capsys):
    _, options = planned(capsys, *SIXTEEN, "--max-surge", "10%")

    assert (options["chosen"]["maxUnavailable"], options["chosen"]["maxSurge"]) == (4, 2)


def test_the_manifests_say_what_the_command_line_does_not(tmp_path, capsys):
    (tmp_path / "d.yaml").write_text(DEPLOYMENT)
    (tmp_path / "p.yaml").write_text(POLICY)
    files = ["-f", str(tmp_path / "d.yaml"), "-f", str(tmp_path / "p.yaml")]

    code, options = planned(capsys, "plan", "release", *files, "--load", "0.5")

    assert code == 0
    assert (options["chosen"]["rounds"], options["chosen"]["minutes"]) == (10, 70)
    assert options["chosen"]["peakGpus"] == 44


def test_a_group_is_one_replica_with_the_gpus_of_all_its_pods(tmp_path, capsys):
    (tmp_path / "lws.yaml").write_text(GROUPS)
    given = ["plan", "release", "-f", str(tmp_path / "lws.yaml"), "--load", "0.5"]

    _, options = planned(capsys, *given, "--cold-start", "300s")

    assert (options["chosen"]["rounds"], options["chosen"]["peakGpus"]) == (2, 120)


def test_a_stateful_set_and_a_recreated_deployment_have_no_surge(tmp_path, capsys):
    (tmp_path / "s.yaml").write_text("kind: StatefulSet\nspec: {replicas: 4}\n")
    recreated = "kind: Deployment\nspec: {replicas: 3, strategy: {type: Recreate}}\n"
    (tmp_path / "r.yaml").write_text(recreated)
    common = ["plan", "release", "--load", "0.5", "--cold-start", "60s", "-f"]

    _, ordered = planned(capsys, *common, str(tmp_path / "s.yaml"))
    code, all_at_once = planned(capsys, *common, str(tmp_path / "r.yaml"))

    assert (ordered["chosen"]["rounds"], ordered["chosen"]["maxSurge"]) == (4, 0)
    assert (code, all_at_once["chosen"]["minimumCapacity"]) == (1, 0.0)


def test_a_quota_counts_the_running_fleet(capsys):
    _, options = planned(capsys, *SIXTEEN, "--gpu-quota", "17", "--free-gpus", "5")

    assert options["surge"]["rounds"] == 16
    assert options["blue-green"]["verdict"] == "deadlock"
    assert options["blue-green"]["minutes"] is None


def test_the_best_hour_and_the_hours_to_avoid_are_said(capsys):
    hours = ",".join(["0.8"] * 12 + ["0.2"] * 12)

    _, options = planned(capsys, *SIXTEEN, "--hourly-load", hours)
    main([*SIXTEEN, "--hourly-load", hours])

    assert options["k-at-a-time"]["bestStart"] == {"hour": 12, "peakLoad": 0.2}
    assert options["k-at-a-time"]["overloadedHours"] == [*range(12), 23]
    text = capsys.readouterr().out
    assert "k-at-a-time: begin at 12:00, it meets 20% load at the most; begun in" in text
    assert "surge: begin at 12:00, it meets 20% load at the most\n" in text


def test_the_peak_of_the_day_is_the_load_where_none_is_given(capsys):
    given = ["plan", "release", "--replicas", "4", "--cold-start", "60s", "--hourly-load"]

    _, options = planned(capsys, *given, ",".join(["0.5"] * 23 + ["1.1"]))

    assert options["surge"]["overloaded"] is True
    assert "best" not in options


def test_a_disruption_budget_tells_whether_nodes_can_be_drained_meanwhile(capsys):
    _, options = planned(capsys, *SIXTEEN, "--pdb-min-available", "75%")
    main([*SIXTEEN, "--pdb-min-available", "75%"])

    assert options["one-at-a-time"]["nodeDrainsPass"] is True
    assert options["k-at-a-time"]["nodeDrainsPass"] is False
    assert "k-at-a-time: no node can be drained meanwhile" in capsys.readouterr().out


def test_without_a_strategy_that_spares_capacity_it_says_so(capsys):
    main(["plan", "release", *SIXTEEN[2:], "--within", "1m"])

    assert "no strategy keeps 5% of capacity to spare within 1m" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--load", "0.8"], "give --replicas and --cold-start"),
        ([*SIXTEEN[2:], "--max-surge", "0", "--max-unavailable", "0"], "both 0"),
        ([*SIXTEEN[2:], "--max-surge", "lots"], "'lots' is neither"),
        ([*SIXTEEN[2:], "--gpu-quota", "8"], "--gpu-quota 8 is below the 16 GPUs"),
        (["-f", "missing.yaml"], "missing.yaml: No such file or directory"),
        (["-f", "."], ".: Is a directory"),
        ([*SIXTEEN[2:], "--replicas", "99999999"], "over 1000: plan one pool at a time"),
        ([*SIXTEEN[2:], "--load", "80"], "80 times what the fleet can do; 80% is 0.8"),
        ([*SIXTEEN[2:], "--cold-start-spread", "1e300"], "--cold-start-spread 1e+300 is over 10"),
    ],
)
def test_what_describes_no_release_is_refused_in_a_sentence(capsys, arguments, said):
    assert main(["plan", "release", *arguments]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert said in err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: Service\n", "no object of kind Deployment"),
        ("a: [\n", "bad.yaml: "),
        (POLICY.replace("5m", "5 minutes"), "loadTime.default"),
        ("kind: Deployment\nspec: {replicas: many}\n", "spec.replicas"),
        ("kind: [Deployment]\n", "no object of kind Deployment"),
        ("kind: List\nitems: 3\n---\nkind: List\nitems: [3]\n", "no object of kind Deployment"),
        ("kind: Deployment\nspec: {since: 2026-99-99}\n", "month must be in 1..12"),
        (f"kind: Deployment\nspec: {{replicas: {'9' * 5000}}}\n", "digits"),
        (f"kind: Deployment\nspec: {'[' * 5000}{']' * 5000}\n", "nested too deeply"),
        (DEPLOYMENT + "---" + GROUPS, "Deployment/llama and LeaderWorkerSet/? in it"),
    ],
)
def test_a_manifest_that_cannot_be_read_is_named(tmp_path, capsys, text, said):
    (tmp_path / "bad.yaml").write_text(text)

    assert main(["plan", "release", "-f", str(tmp_path / "bad.yaml")]) == 2

    err = capsys.readouterr().err
    assert "bad.yaml" in err
    assert said in err


def test_what_kubectl_prints_is_a_list_and_is_read(tmp_path, capsys):
    listed = {"kind": "List", "items": [yaml.safe_load(DEPLOYMENT), yaml.safe_load(POLICY)]}
    (tmp_path / "dump.json").write_text(json.dumps(listed))

    assert main(["plan", "release", "-f", str(tmp_path / "dump.json"), "--load", "0.5"]) == 0

    assert "10 replicas at 50% load; a round is 5m30s of cold start" in capsys.readouterr().out


def test_gpus_that_are_no_number_are_not_known(tmp_path, capsys):
    (tmp_path / "odd.yaml").write_text(DEPLOYMENT.replace("gpu: 4", "gpu: '\u00b2'"))

    assert main([*SIXTEEN, "-f", str(tmp_path / "odd.yaml"), "-o", "json"]) == 0

    assert json.loads(capsys.readouterr().out)["options"][-1]["peakGpus"] == 17


@pytest.mark.parametrize(
    "arguments",
    [
        ["--replicas", "0"],
        ["--replicas", "-1"],
        ["--load", "0"],
        ["--cold-start", "180"],
        ["--hourly-load", "0.5,0.5"],
        ["--hourly-load", ",".join(["x"] * 24)],
    ],
)
def test_an_option_that_is_no_number_is_a_usage_error(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(["plan", "release", *arguments])

    assert left.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["plan", "release", "--help"])

    out = capsys.readouterr().out
    assert "--replicas 16 --load 0.8" in out
    assert "exit codes:" in out
