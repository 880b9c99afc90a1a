"""The command line as a whole: verbs, exit codes, and how fast it answers."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapter import __version__
from adapter.cli import main as main_module
from adapter.cli import version
from adapter.cli.main import VERBS, main

VERB_FOLDER = Path(main_module.__file__).parent


def test_every_verb_has_a_file_and_every_file_is_a_verb():
    verbs = {
        path.stem.replace("_", "-")
        for path in VERB_FOLDER.glob("*.py")
        if "\ndef add_parser(" in path.read_text()
    }

    assert verbs == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself(capsys, verb):
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])

    assert left.value.code == 0
    assert f"usage: leadtime {verb}" in capsys.readouterr().out


def test_help_lists_the_verbs_and_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--help"])

    out = capsys.readouterr().out
    assert left.value.code == 0
    listed = [line.split()[0] for line in out.splitlines() if line[:4].isspace() and line.strip()]
    assert [word for word in listed if word in VERBS] == list(VERBS)
    assert "0 fine   1 findings" in out


@pytest.mark.slow
@pytest.mark.parametrize("locale", ["latin-1", "ascii", "utf-8"])
def test_no_locale_keeps_a_command_from_speaking(locale, tmp_path):
    """An ellipsis in the schema, a name in a policy: what is piped is UTF-8 whatever the locale."""
    environment = {**os.environ, "PYTHONIOENCODING": locale, "LC_ALL": "C"}
    policy = tmp_path / "na\u00efve.yaml"
    policy.write_text("kind: ScalingPolicy\nmetadata: {name: \u540d}\n")

    def said(*words: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, "-m", "adapter", *words],
            env=environment,
            capture_output=True,
            check=False,
        )

    assert "\u2026" in said("schema").stdout.decode()
    assert said("doctor", "--help").returncode == 0
    found = said("lint", "-o", "json", str(policy))
    assert found.returncode == 1
    assert json.loads(found.stdout.decode())[0]["file"] == str(policy)


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["lint", "--nonsense"]])
def test_wrong_usage_leaves_with_2(capsys, arguments):
    with pytest.raises(SystemExit) as left:
        main(arguments)

    assert left.value.code == 2
    assert "usage: leadtime" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (ValueError("went\nwrong"), 2, "leadtime version: went wrong\n"),
        (ValueError(), 2, "leadtime version: ValueError\n"),
    ],
)
def test_what_goes_wrong_is_a_sentence_and_a_code(monkeypatch, capsys, error, code, said):
    def run(_arguments):
        raise error

    monkeypatch.setattr(version, "run", run)

    assert main(["version"]) == code

    assert capsys.readouterr().err == said


def test_debug_shows_where_it_happened(monkeypatch):
    def run(_arguments):
        raise ValueError("here")

    monkeypatch.setattr(version, "run", run)

    with pytest.raises(ValueError, match="here"):
        main(["--debug", "version"])


def test_version_says_what_runs(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith(f"leadtime {__version__} (Python 3.")

    assert main(["version", "-o", "json"]) == 0
    assert f'"version": "{__version__}"' in capsys.readouterr().out


def test_the_package_runs_as_a_module():
    ran = subprocess.run(
        [sys.executable, "-m", "adapter", "version"], capture_output=True, text=True, check=True
    )

    assert ran.stdout.startswith(f"leadtime {__version__}")


def test_a_reader_that_leaves_early_ends_it_quietly():
    """``leadtime schema | head -1``: no traceback, and the code of a program in a pipe."""
    with subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; sys.stdin.read(1); "
            "from adapter.cli.main import main; sys.exit(main(['schema']))",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdout.close()
        _, err = process.communicate(b"x")

    assert process.returncode == 128 + signal.SIGPIPE
    assert err == b""


@pytest.mark.parametrize(
    ("arguments", "unloaded"),
    [
        (["lint", "--help"], {"pydantic", "yaml", "aiohttp", "numpy", "cryptography", "rich"}),
        (["lint", "p.yaml"], {"aiohttp", "numpy", "cryptography", "rich"}),
        (["schema"], {"yaml", "aiohttp", "numpy", "cryptography", "rich"}),
    ],
)
def test_a_pre_commit_hook_does_not_wait_for_what_it_does_not_need(tmp_path, arguments, unloaded):
    """``lint --help`` takes under 0.3 s of processor time; 0.04 s where this was written."""
    (tmp_path / "p.yaml").write_text("apiVersion: leadtime.dev/v1alpha1\nkind: ScalingPolicy\n")
    script = (
        "import sys, time\n"
        "from adapter.cli.main import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "except SystemExit:\n"
        "    pass\n"
        "print(time.process_time(), *sys.modules, file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    seconds, *modules = ran.stderr.splitlines()[-1].split()
    assert not unloaded & set(modules)
    assert float(seconds) < (0.3 if "--help" in arguments else 1.0)
