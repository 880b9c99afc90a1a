"""Documents point at things that exist and name commands that exist."""

import re
from pathlib import Path

import pytest

from adapter.cli.main import VERBS

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(#[^)\s]*)?\)")
COMMAND = re.compile(
    r"(?m)^\s*\$?\s*(?:\.venv/bin/)?leadtime ([a-z][a-z-]*)|`leadtime ([a-z][a-z-]*)"
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    text = document.read_text()

    broken = [
        place
        for place, anchor in LINK.findall(text)
        if (place and not (document.parent / place).exists())
        or (anchor and anchor[1:] not in _anchors(document.parent / place if place else document))
    ]

    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_command_named_is_one_of_ours(document):
    """A document must not send anyone to a command that is not there yet."""
    if document.name in {"SCOPE.md"}:
        pytest.skip("says what is not there")
    named = {a or b for a, b in COMMAND.findall(document.read_text())}

    assert named <= set(VERBS)


def _anchors(path: Path) -> set[str]:
    """Return the anchors of a document's headings and its explicit ones."""
    text = path.read_text()
    titles = re.findall(r"(?m)^#+\s+(.+)$", text)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
