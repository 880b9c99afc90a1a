"""The rooms know only the rooms below them, and each contract is one that really bites."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LINT = "from importlinter.cli import lint_imports as lint; raise SystemExit(lint(no_cache=True))"
"""A process of its own: import-linter sets up logging, and would silence ours for good."""

TRESPASSES = {
    "scaling/brakes.py": ("import adapter.policy.document", "Rooms are layered"),
    "serving/probes.py": ("import adapter.sources.clock", "Rooms are layered"),
    "helpers/__init__.py": ('"""A room that nobody planned."""', "Rooms are layered"),
    "scaling/stabilize.py": ("import time", "Fleet, scaling and policy do no I/O"),
    "simulator/engine.py": ("import aiohttp", "The controller and the simulator know no transport"),
    "scaling/signals/ttft.py": ("import adapter.scaling.signals.queue", "Signals do not know"),
    "fleet/engines/tgi.py": ("import adapter.fleet.engines.vllm", "Engines do not know each other"),
    "cli/version.py": ("import adapter.scaling.evaluate", "One caller of the decision"),
}
"""What a hurried hand might write, where, and the contract that must refuse it."""


def lint(directory: Path) -> subprocess.CompletedProcess[str]:
    """Return what import-linter says of the package below ``directory``."""
    return subprocess.run(
        [sys.executable, "-c", LINT], cwd=directory, capture_output=True, text=True, check=False
    )


def test_every_import_contract_holds():
    """The contracts stand in pyproject.toml; a new top-level room that is in none fails too."""
    done = lint(ROOT)

    assert done.returncode == 0, done.stdout
    assert " 0 broken." in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("place", TRESPASSES)
def test_each_contract_bites(place, tmp_path):
    line, contract = TRESPASSES[place]
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "adapter", tmp_path / "adapter", ignore=shutil.ignore_patterns("*.pyc"))
    file = tmp_path / "adapter" / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"{file.read_text() if file.exists() else ''}\n{line}\n")

    done = lint(tmp_path)

    broken = [text for text in done.stdout.splitlines() if text.endswith("BROKEN")]
    assert done.returncode == 1
    assert any(contract in text for text in broken), done.stdout
