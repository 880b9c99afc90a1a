"""The command line's catalogue, its files and its help agree, and light verbs start light."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from adapter import cli
from adapter.cli.main import VERBS, main

FOLDER = Path(cli.__file__).parent
HEAVY = {"aiohttp", "cryptography", "grpc", "kubernetes", "numpy", "prometheus_client", "rich"}


def test_every_verb_file_is_in_the_catalogue():
    """A verb is a file that adds a parser; one that nobody lists is dead code."""
    files = {path.stem for path in FOLDER.glob("*.py") if "def add_parser(" in path.read_text()}

    assert {verb.replace("-", "_") for verb in VERBS} == files


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_shows_an_example_or_says_what_it_prints(verb, capsys):
    with pytest.raises(SystemExit) as left:
        main([verb, "--help"])

    text = capsys.readouterr().out
    assert left.value.code == 0
    assert f"usage: leadtime {verb}" in text


@pytest.mark.parametrize("verb", VERBS)
def test_help_of_every_verb_loads_no_transport(verb):
    """``lint`` stands in pre-commit hooks: heavy imports belong inside ``run``."""
    code = (
        "import sys\nfrom adapter.cli.main import main\n"
        f"try: main([{verb!r}, '--help'])\n"
        "except SystemExit: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert not HEAVY & set(done.stderr.split())


def test_an_unknown_verb_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as left:
        main(["scale-everything"])

    assert left.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_a_verb_is_documented_by_its_subparser():
    for verb in VERBS:
        module = sys.modules[f"adapter.cli.{verb.replace('-', '_')}"]
        verbs = argparse.ArgumentParser().add_subparsers()
        module.add_parser(verbs)
        assert verbs._choices_actions[0].help, f"{verb} says nothing in leadtime --help"
