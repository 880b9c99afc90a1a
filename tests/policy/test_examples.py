"""The shipped policies: what people copy must be right."""

from pathlib import Path

import pytest

from adapter.policy.document import EngineName
from adapter.policy.finding import Severity
from adapter.policy.lint import lint
from adapter.policy.load import read_files

POLICIES = Path(__file__).parents[2] / "policies"
EXAMPLES = sorted(POLICIES.glob("*.yaml"))
MODELINE = "# yaml-language-server: $schema=schema/scalingpolicy_leadtime_v1alpha1.json\n"


def test_there_is_one_for_each_engine_and_one_to_try():
    placed, _ = read_files({path.name: path.read_bytes() for path in EXAMPLES})

    assert {one.policy.spec.engine for one in placed} == set(EngineName)
    assert "static-local.yaml" in {path.name for path in EXAMPLES}


def test_all_of_them_can_be_loaded_together():
    placed, found = read_files({path.name: path.read_bytes() for path in EXAMPLES})

    assert len(placed) == len(EXAMPLES)
    assert found == ()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_it_lints_clean(example):
    """Nothing but remarks about this release, and that a model's name cannot be selected by."""
    placed, found = read_files({example.name: example.read_bytes()})

    judged = (*found, *lint(placed))

    assert {finding.code for finding in judged} <= {"LT142", "LT190"}
    assert all(finding.severity is Severity.INFO for finding in judged)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_editors_find_its_schema(example):
    text = example.read_text()

    assert text.startswith(MODELINE)
    assert (example.parent / MODELINE.rpartition("=")[2].strip()).is_file()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_it_explains_itself(example):
    """At least one line in four is a comment."""
    lines = example.read_text().splitlines()

    assert sum("#" in line for line in lines) >= len(lines) / 4


def test_the_one_to_try_asks_nobody_but_this_machine():
    placed, _ = read_files({"static-local.yaml": (POLICIES / "static-local.yaml").read_bytes()})
    static = placed[0].policy.spec.source.static

    assert static is not None
    assert all(url.startswith("http://127.0.0.1:") for url in static.urls)
