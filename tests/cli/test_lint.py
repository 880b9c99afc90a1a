"""``leadtime lint``: what it prints, in which form, and with which code it leaves."""

import io
import json
import os
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from adapter.cli.main import main
from adapter.cli.output import as_github, as_junit, as_text
from adapter.policy.finding import Finding, Severity
from tests.policy.build import a_policy

ERROR = a_policy("scaleDown: {delay: 1m}")
WARNING = a_policy("staleAfter: 9s")
INFO = a_policy("model: a/b")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a way to write a file below an empty working directory."""
    monkeypatch.chdir(tmp_path)

    def written(name: str, text: str | bytes) -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    return written


def a_finding(**parts: object) -> Finding:
    given = {
        "file": "p.yaml",
        "line": 3,
        "column": 5,
        "code": "LT104",
        "severity": Severity.ERROR,
        "message": "too short",
        "fix": "delay: auto",
        "span": 2,
        "excerpt": "    5m",
        "note": "see why",
    }
    return Finding(**(given | parts))


def test_a_finding_shows_its_line_a_caret_and_the_fix(write, capsys):
    """The form that DESIGN section 6 prescribes, to the character."""
    code = main(["lint", write("policies/chat.yaml", ERROR)])

    out, err = capsys.readouterr()
    assert code == 1
    assert out == (
        "policies/chat.yaml:5:22: error LT104: scaleDown.delay 1m is shorter than "
        "loadTime.default 4m\n"
        "    5 |   scaleDown: {delay: 1m}\n"
        "      |                      ^^ a replica removed now could not be back before the "
        "next wave\n"
        "   fix: delay: auto, or set loadTime.default to what a start takes\n"
    )
    assert err == "1 file, 1 usable policy, 1 error, 0 warnings\n"


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        (a_policy(), [], 0),
        (INFO, [], 0),
        (INFO, ["--fail-on", "warning"], 0),
        (WARNING, [], 0),
        (WARNING, ["--fail-on", "error"], 0),
        (WARNING, ["--fail-on", "warning"], 3),
        (ERROR, [], 1),
        (ERROR + "---\n" + WARNING.replace("chat", "b"), ["--fail-on", "warning"], 1),
        ("a: [\n", [], 1),
        ("", [], 2),
        ("", ["--fail-on", "warning"], 2),
        ("kind: Secret\n", [], 2),
        ("kind: Pod\n", [], 0),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "sarif", "github", "junit"])
def test_exit_codes_are_the_same_in_every_form(write, capsys, text, options, code, form):
    assert main(["lint", write("p.yaml", text), "-o", form, *options]) == code

    capsys.readouterr()


def test_the_count_names_all_that_was_found(write, capsys):
    other, third = WARNING.replace("chat", "b"), INFO.replace("chat", "c")

    main(["lint", write("a.yaml", ERROR), write("b.yaml", f"{other}---\n{third}")])

    assert capsys.readouterr().err == ("2 files, 3 usable policies, 1 error, 1 warning, 1 info\n")


def test_a_lint_of_nothing_does_not_pass(write, capsys):
    """The file that was not saved, and the wrong path, look like success to a script."""
    code = main(["lint", write("p.yaml", "kind: Secret\n")])

    out, err = capsys.readouterr()
    assert code == 2
    assert "info LT011: no ScalingPolicy in the file, only Secret" in out
    assert err == "1 file, 0 usable policies, 0 errors, 0 warnings, 1 info: nothing was checked\n"


def test_a_directory_is_read_to_its_leaves_without_what_is_hidden(write, capsys):
    """A ConfigMap mount: the files are links into ..data, which links to a dated directory."""
    write("d/..2026_12_01/p.yaml", a_policy())
    Path("d/..data").symlink_to("..2026_12_01", target_is_directory=True)
    Path("d/p.yaml").symlink_to("..data/p.yaml")
    write("d/b/q.yml", WARNING.replace("chat", "q"))
    write("d/b/.draft.yaml", "a: [\n")
    write("d/.git/p.yaml", "a: [\n")
    write("d/b/notes.txt", "a: [\n")

    code = main(["lint", "d"])

    out, err = capsys.readouterr()
    assert code == 0
    assert out.startswith("d/b/q.yml:5:")
    assert err.startswith("2 files, 2 usable policies, 0 errors, 1 warning")


def test_things_in_a_directory_that_are_no_files_are_passed_over(write, capsys):
    """A pipe named like a policy would block for ever; a dangling link is a file that is gone."""
    write("d/p.yaml", a_policy())
    os.mkfifo("d/pipe.yaml")
    Path("d/gone.yaml").symlink_to("nowhere.yaml")

    assert main(["lint", "d"]) == 0

    assert capsys.readouterr().err.startswith("1 file, ")


def test_a_file_that_is_named_twice_is_read_once(write, capsys):
    write("d/p.yaml", a_policy())

    assert main(["lint", "d", "d/p.yaml", "./d"]) == 0

    assert capsys.readouterr().err.startswith("1 file, 1 usable policy")


def test_the_same_policy_in_two_files_is_found(write, capsys):
    code = main(["lint", write("a.yaml", a_policy()), write("b.yaml", a_policy())])

    assert code == 1
    assert "b.yaml:3:18: error LT010: policy default/chat" in capsys.readouterr().out


def test_standard_input_is_read_for_a_dash(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(ERROR.encode())))

    code = main(["lint", "-"])

    assert code == 1
    assert capsys.readouterr().out.startswith("<stdin>:5:22: error LT104")


@pytest.mark.parametrize(
    ("paths", "sentence"),
    [
        (["gone.yaml"], "gone.yaml: No such file or directory; give a file, a directory or -"),
        (["empty"], "empty: no *.yaml or *.yml file in this directory"),
        (["p.yaml/x"], "p.yaml/x: Not a directory"),
        ([], "nothing to check; give a file, a directory or -"),
    ],
)
def test_a_path_that_gives_nothing_is_said_in_a_sentence(write, capsys, paths, sentence):
    write("p.yaml", a_policy())
    Path("empty").mkdir()

    code = main(["lint", *paths])

    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err.startswith(f"leadtime lint: {sentence}")
    assert err.count("\n") == 1


def test_every_path_that_cannot_be_read_is_named(write, capsys):
    write("p.yaml", a_policy())

    assert main(["lint", "x.yaml", "p.yaml", "y.yaml"]) == 2

    err = capsys.readouterr().err
    assert "x.yaml: No such file" in err
    assert "y.yaml: No such file" in err


def test_json_is_a_list_of_findings_with_the_reason_in_the_message(write, capsys):
    main(
        ["lint", write("p.yaml", a_policy(replicas="  replicas: {min: 0, max: 3}\n")), "-o", "json"]
    )

    (finding,) = json.loads(capsys.readouterr().out)
    assert finding == {
        "code": "LT007",
        "severity": "error",
        "file": "p.yaml",
        "line": 5,
        "column": 19,
        "message": "replicas.min is 0, expected a whole number at least 1: scale to zero is not "
        "supported: an empty pool has no engine to read load from, so nothing would wake it",
        "fix": "min: 1",
    }


def test_json_without_findings_is_an_empty_list(write, capsys):
    main(["lint", write("p.yaml", a_policy()), "-o", "json"])

    assert json.loads(capsys.readouterr().out) == []


def test_sarif_names_rules_levels_and_regions(write, capsys):
    main(["lint", write("p q.yaml", ERROR + "---\n" + INFO.replace("chat", "b")), "-o", "sarif"])

    document = json.loads(capsys.readouterr().out)
    (run,) = document["runs"]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    error, note = run["results"]
    assert document["version"] == "2.1.0"
    assert rules["LT104"]["defaultConfiguration"] == {"level": "error"}
    assert {result["ruleId"] for result in run["results"]} <= set(rules)
    assert (error["level"], note["level"]) == ("error", "note")
    location = error["locations"][0]["physicalLocation"]
    assert location["artifactLocation"] == {"uri": "p%20q.yaml"}
    assert location["region"] == {"startLine": 5, "startColumn": 22, "endColumn": 24}


def test_github_gets_annotations_with_its_escapes():
    findings = [
        a_finding(file="a,b:c.yaml", message="100%\nsure", note=""),
        a_finding(severity=Severity.WARNING, fix=""),
        a_finding(severity=Severity.INFO, fix="", note=""),
    ]

    assert as_github(findings).splitlines() == [
        "::error file=a%2Cb%3Ac.yaml,line=3,col=5,title=LT104::100%25%0Asure (fix: delay: auto)",
        "::warning file=p.yaml,line=3,col=5,title=LT104::too short: see why",
        "::notice file=p.yaml,line=3,col=5,title=LT104::too short",
    ]


def test_junit_has_a_case_for_every_file_and_fails_those_with_errors_or_warnings():
    findings = [
        a_finding(file="a.yaml", message='<"&\x1b'),
        a_finding(file="b.yaml", severity=Severity.INFO),
        a_finding(file="c.yaml", severity=Severity.WARNING),
    ]

    suite = ET.fromstring(as_junit(findings, ["a.yaml", "b.yaml", "c.yaml", "d.yaml"]))  # noqa: S314 - our own text

    assert suite.attrib == {"name": "leadtime lint", "tests": "4", "failures": "2"}
    failed = {case.get("name"): [f.get("message") for f in case] for case in suite}
    assert failed["a.yaml"] == ['a.yaml:3:5: <"&\ufffd: see why (fix: delay: auto)']
    assert failed["b.yaml"] == []
    assert len(failed["c.yaml"]) == 1
    assert failed["d.yaml"] == []


def test_a_long_line_is_shown_around_the_place():
    """One line of 3,000 characters, as JSON comes: the caret still stands under the value."""
    excerpt = "x" * 1500 + "5m" + "y" * 1500
    text = as_text([a_finding(excerpt=excerpt, column=1501)])

    _, line, caret, _ = text.splitlines()
    assert len(line) < 140
    assert line[caret.index("^") :].startswith("5my")
    assert caret.count("^") == 2


def test_a_caret_stands_under_its_value_behind_a_tab():
    _, line, caret, _ = as_text([a_finding(excerpt="\t\t  5m", column=5)]).splitlines()

    assert line[caret.index("^") :] == "5m"


def test_control_characters_cannot_reach_the_terminal():
    hostile = "\x1b]0;owned\x07\u202e"
    text = as_text([a_finding(file=hostile, message=hostile, fix=hostile, excerpt=hostile)])

    assert not set(text) & set("\x1b\x07\u202e")


def test_a_finding_without_a_line_shows_none():
    text = as_text([a_finding(excerpt="", fix="")])

    assert text == "p.yaml:3:5: error LT104: too short\n"


@pytest.mark.parametrize(
    ("terminal", "environment", "coloured"),
    [
        (True, {}, True),
        (True, {"NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": ""}, True),
        (True, {"TERM": "dumb"}, False),
        (False, {}, False),
    ],
)
def test_colour_is_for_terminals_that_want_it(write, monkeypatch, terminal, environment, coloured):
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Stream()
    monkeypatch.setattr(sys, "stdout", stream)

    main(["lint", write("p.yaml", ERROR)])

    assert ("\x1b[1;31merror\x1b[0m" in stream.getvalue()) is coloured


def test_a_file_name_that_is_no_text_is_shown_all_the_same(tmp_path, capsys):
    name = os.fsdecode(b"\xff.yaml")
    (tmp_path / name).write_text(ERROR)

    for form in ("text", "json", "sarif", "github", "junit"):
        assert main(["lint", str(tmp_path), "-o", form]) == 1
        assert "?.yaml" in capsys.readouterr().out.replace("%3F", "?")


def test_codes_explains_every_finding(capsys):
    assert main(["lint", "--codes"]) == 0

    assert (
        "## LT104\n\n**scaleDown.delay is shorter than the load time**" in capsys.readouterr().out
    )


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit) as left:
        main(["lint", "--help"])

    out = capsys.readouterr().out
    assert left.value.code == 0
    assert "helm template chart | leadtime lint -" in out
    assert "3 no errors but warnings, under --fail-on warning" in out


def test_the_objects_around_a_policy_are_judged_with_it_across_files(write, capsys):
    """The HPA's maximum is in another file than the policy's."""
    hpa = """kind: HorizontalPodAutoscaler
metadata: {name: chat}
spec:
  scaleTargetRef: {kind: Deployment, name: chat}
  maxReplicas: 4
  metrics:
  - type: External
    external:
      metric: {name: leadtime-desired-replicas, selector: {matchLabels: {policy: chat}}}
      target: {type: AverageValue, averageValue: "1"}
  behavior: {scaleDown: {stabilizationWindowSeconds: 0}}
"""
    policy = a_policy("target: {kind: Deployment, name: chat}")

    code = main(["lint", write("hpa.yaml", hpa), write("p.yaml", policy), "-o", "json"])

    out, err = capsys.readouterr()
    assert code == 1
    assert [one["code"] for one in json.loads(out)] == ["LT206"]
    assert err == "2 files, 1 usable policy, 1 object around, 1 error, 0 warnings\n"


def test_free_gpus_are_told_on_the_command_line(write, capsys):
    deployment = """kind: Deployment
metadata: {name: chat}
spec: {template: {spec: {containers: [{resources: {limits: {nvidia.com/gpu: 8}}}]}}}
"""
    assert main(["lint", write("d.yaml", deployment)]) == 0
    assert main(["lint", write("d.yaml", deployment), "--free-gpus", "4"]) == 1
    assert "LT303" in capsys.readouterr().out
