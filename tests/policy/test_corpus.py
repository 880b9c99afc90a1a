"""Small manifests, each with the findings that it deserves in its first line."""

from pathlib import Path

import pytest

from adapter.policy.lint import AROUND, lint, lint_around
from adapter.policy.load import read_files
from adapter.policy.objects import Landscape, read_objects

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(CORPUS.glob("*.yaml"))
_OF_THIS_RELEASE = {"LT190"}


def deserved(path: Path) -> set[str]:
    head = path.read_text().partition("\n")[0].removeprefix("# expect: ")
    return set() if head == "nothing" else set(head.split(", "))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_manifest_is_met_with_what_it_deserves(path):
    placed, found = read_files({path.name: path.read_bytes()})
    landscape = Landscape(placed, read_objects(path.read_text(), path.name))

    findings = (*found, *lint(placed), *lint_around(landscape))

    assert {one.code for one in findings} - _OF_THIS_RELEASE == deserved(path)
    assert all(one.message and (one.fix or one.code < "LT2") for one in findings)


def test_the_corpus_is_large_and_has_a_bad_and_a_good_file_for_every_rule():
    bad = set().union(*(deserved(path) for path in FILES))

    assert len(FILES) >= 100
    assert bad == {rule.code.id for rule in AROUND}
    assert sum(not deserved(path) for path in FILES) >= 25
