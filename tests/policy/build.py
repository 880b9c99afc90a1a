"""Texts of policies for the tests of this room."""

from adapter.policy.finding import Finding
from adapter.policy.load import PlacedPolicy, read_policies

HEAD = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat}
spec:
"""
REPLICAS = "  replicas: {min: 2, max: 8}\n"
STATIC = "  source: {static: {urls: [http://127.0.0.1:8000/metrics]}}\n"


def a_policy(*lines: str, replicas: str = REPLICAS, source: str = STATIC) -> str:
    """Return the text of a policy; ``lines`` stand under ``spec``, from line 5 on."""
    return HEAD + "".join(f"  {line}\n" for line in lines) + replicas + source


def read(text: str) -> tuple[tuple[PlacedPolicy, ...], tuple[Finding, ...]]:
    """Return what one file holds."""
    return read_policies(text, "p.yaml")


def findings(text: str) -> tuple[Finding, ...]:
    """Return what is wrong with a file."""
    return read(text)[1]


def the_finding(text: str) -> Finding:
    """Return the one thing that is wrong with a file."""
    (finding,) = findings(text)
    return finding


def the_policy(text: str) -> PlacedPolicy:
    """Return the one policy of a file in which nothing is wrong."""
    (placed,), found = read(text)
    assert found == ()
    return placed


def marked(finding: Finding) -> str:
    """Return the characters that the caret underlines."""
    start = finding.column - 1
    return finding.excerpt[start : start + finding.span]
