"""The rooms know only the rooms below them, and each contract is one that really bites."""

from importlinter.cli import lint_imports


def test_every_import_contract_holds(capsys):
    """The contracts stand in pyproject.toml; a new top-level room that is in none fails too."""
    code = lint_imports()

    assert code == 0, capsys.readouterr().out
