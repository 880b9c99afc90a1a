"""``leadtime schema``: data on stdout, nothing else."""

import json

import pytest

from adapter.cli.main import main
from adapter.policy.reference import policy_page


@pytest.mark.parametrize("arguments", [["schema"], ["schema", "policy"], ["schema", "-o", "json"]])
def test_the_schema_is_printed_as_json(capsys, arguments):
    code = main(arguments)

    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert json.loads(out)["title"] == "ScalingPolicy"


def test_the_reference_is_printed_as_markdown(capsys):
    assert main(["schema", "-o", "markdown"]) == 0

    assert capsys.readouterr().out == policy_page()


def test_another_document_is_refused_with_those_there_are(capsys):
    with pytest.raises(SystemExit) as left:
        main(["schema", "hpa"])

    assert left.value.code == 2
    assert "policy" in capsys.readouterr().err


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["schema", "--help"])

    out = capsys.readouterr().out
    assert "yaml-language-server" in out
    assert "exit codes:" in out
