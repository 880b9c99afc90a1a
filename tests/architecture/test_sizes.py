"""Files and folders stay small enough to be read at 03:00."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "adapter").rglob("*.py"))
DRAWERS = re.compile(r"(utils?|helpers?|common|misc|base|manager|v2)")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_file_is_longer_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_file_is_a_drawer_without_a_label(path):
    assert not DRAWERS.fullmatch(path.stem)


def test_tests_outweigh_the_source():
    """The models of our field have 1.3 to 2.2 lines of test for a line of source."""
    tests = sorted((ROOT / "tests").rglob("*.py"))

    assert _lines(tests) >= _lines(SOURCES)


def _lines(paths: list[Path]) -> int:
    return sum(len(path.read_text().splitlines()) for path in paths)
