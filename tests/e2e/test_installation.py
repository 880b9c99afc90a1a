import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("wanted", "code", "outcome"), [("", 0, "4 skipped in"), ("require", 1, "4 errors in")]
)
def test_without_vllm_the_tests_are_skipped_loudly_or_fail_where_it_is_required(
    tmp_path: Path, wanted: str, code: int, outcome: str
):
    """No package index: what the build that failed half-way leaves does not count as vLLM."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    nowhere = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path), "PIP_NO_INDEX": "1"}

    done = subprocess.run(
        (sys.executable, "-m", "pytest", "-m", "e2e", "tests/e2e/test_read.py"),
        cwd=ROOT,
        env={**inherited, **nowhere, "LEADTIME_E2E": wanted},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == code
    assert outcome in done.stdout
    assert done.stdout.count("NO vLLM ON THIS MACHINE") > 1
    assert "No matching distribution found" in done.stdout
    left = {path.suffix for path in (tmp_path / "leadtime").iterdir()}
    assert left == {".lock", ".unfinished"}
