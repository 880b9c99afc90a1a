"""``leadtime generate``: what it writes passes lint, and what it refuses it explains."""

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from adapter.cli.main import main
from tests.policy.test_manifests import text_of

STATIC = "static: {urls: ['http://127.0.0.1:1/metrics']}"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "chat.yaml"
    path.write_text(text_of(source=STATIC))
    return path


@pytest.mark.parametrize("kind", ["scaledobject", "hpa", "apiservice"])
def test_the_manifest_and_its_policy_pass_lint(policy: Path, capsys, kind: str):
    """Zero findings, warnings and infos included."""
    code = main(["generate", kind, "-f", str(policy)])
    manifest = policy.with_name("made.yaml")
    manifest.write_text(capsys.readouterr().out)

    lint = main(["lint", str(policy), str(manifest), "--fail-on", "warning"])

    said = capsys.readouterr()
    assert (code, lint) == (0, 0)
    assert said.out == ""
    assert "0 errors, 0 warnings" in said.err


def test_every_policy_of_a_file_gets_its_own(policy: Path, capsys):
    policy.write_text(text_of("a") + "---\n" + text_of("b"))

    assert main(["generate", "hpa", "-f", str(policy)]) == 0

    made = yaml.safe_load_all(capsys.readouterr().out)
    assert [one["metadata"]["name"] for one in made] == ["a", "b"]


def test_options_say_where_the_scaler_is_and_what_it_is_shown(policy: Path, capsys):
    options = ["--address", "dns:///scaler.x.svc:1234", "--tls-secret", "mine", "--mutual"]

    assert main(["generate", "scaledobject", "-f", str(policy), *options]) == 0

    authentication, made = yaml.safe_load_all(capsys.readouterr().out)
    trigger = made["spec"]["triggers"][0]
    assert trigger["metadata"]["scalerAddress"] == "dns:///scaler.x.svc:1234"
    assert trigger["authenticationRef"]["name"] == authentication["metadata"]["name"] == "mine"
    assert len(authentication["spec"]["secretTargetRef"]) == 3


def test_plain_text_has_no_tls(policy: Path, capsys):
    assert main(["generate", "scaledobject", "-f", str(policy), "--plain"]) == 0

    (made,) = yaml.safe_load_all(capsys.readouterr().out)
    assert "enableTLS" not in made["spec"]["triggers"][0]["metadata"]


def test_a_policy_may_come_by_a_pipe(monkeypatch: pytest.MonkeyPatch, capsys):
    pipe = SimpleNamespace(buffer=io.BytesIO(text_of().encode()))
    monkeypatch.setattr("sys.stdin", pipe)

    assert main(["generate", "hpa", "-f", "-"]) == 0

    assert "kind: HorizontalPodAutoscaler" in capsys.readouterr().out


def test_an_api_service_takes_a_ca_and_needs_no_policy(tmp_path: Path, capsys):
    (tmp_path / "ca.crt").write_bytes(b"CA")

    code = main(
        ["generate", "apiservice", "--ca", str(tmp_path / "ca.crt"), "--service", "scaling/adapter"]
    )

    (made,) = yaml.safe_load_all(capsys.readouterr().out)
    assert code == 0
    assert made["spec"]["caBundle"] == "Q0E="
    assert made["spec"]["service"]["namespace"] == "scaling"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["hpa"], "hpa of what? give the policy with -f FILE"),
        (["hpa", "-f", "/nowhere.yaml"], "/nowhere.yaml: No such file or directory; give a file"),
        (["scaledobject", "-f", "x", "--plain", "--mutual"], "--plain excludes --mutual: drop one"),
        (["scaledobject", "-f", "x", "--address", "scaler"], "--address scaler: give HOST:PORT"),
        (["apiservice", "--service", "adapter"], "--service adapter: give NAMESPACE/NAME"),
        (["apiservice", "--certificate", "/x"], "--certificate /x: give NAMESPACE/NAME"),
        (["apiservice", "--ca", "/nowhere.crt"], "--ca /nowhere.crt: no such file"),
    ],
)
def test_options_that_cannot_be_used_are_said_with_the_way_out(
    capsys, options: list[str], sentence: str
):
    assert main(["generate", *options]) == 2

    said = capsys.readouterr()
    assert sentence in said.err
    assert said.out == ""


def test_a_policy_with_errors_is_shown_as_lint_shows_it(policy: Path, capsys):
    policy.write_text(text_of().replace("min: 2", "min: 0"))

    assert main(["generate", "hpa", "-f", str(policy)]) == 1

    said = capsys.readouterr()
    assert "chat.yaml:7" in said.err
    assert said.out == ""


def test_a_policy_without_a_target_has_nothing_to_scale(policy: Path, capsys):
    lines = text_of(source=STATIC).splitlines()
    policy.write_text("\n".join(line for line in lines if "target:" not in line))

    assert main(["generate", "scaledobject", "-f", str(policy)]) == 2

    assert "policy inference/chat has no spec.target" in capsys.readouterr().err


def test_a_file_of_other_kinds_has_no_policy(policy: Path, capsys):
    policy.write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")

    assert main(["generate", "hpa", "-f", str(policy)]) == 2

    assert "no policy in it; give a file with a ScalingPolicy" in capsys.readouterr().err
