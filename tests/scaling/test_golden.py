"""Whole decisions, word for word, as operators will read them."""

import json
from pathlib import Path

import pytest

from tests.scaling.golden_cases import cases, decided


@pytest.mark.parametrize("path", cases(), ids=lambda path: path.stem)
def test_the_decisions_are_those_that_were_read_and_agreed_to(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))

    assert decided(case) == case["decisions"]


def test_there_are_cases() -> None:
    assert len(cases()) >= 10
