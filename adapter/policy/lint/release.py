"""Rules over what this release does not do yet; each goes when its feature comes."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import Rule
from adapter.policy.load import PlacedPolicy

SOURCE_NOT_READ: Final = Code(
    "LT190",
    Severity.INFO,
    "a source that this release's serve does not read",
    "The document is valid and stays so. `leadtime serve` runs the other policies, names this one "
    "in its log once, counts it in `leadtime_policy_problem`, and answers 503 with the reason: the "
    "HPA and KEDA then leave the count as it is, and show the reason.",
)
CURVE_NOT_DRAWN: Final = Code(
    "LT191",
    Severity.INFO,
    "growth from the daily curve is not computed in this release",
    "`standby.coverage` and `standby.history` are checked and kept, but change nothing yet; "
    "`standby.floor` does.",
)


def _source_not_read(placed: PlacedPolicy) -> Iterator[Finding]:
    if placed.policy.spec.source.pods is not None:
        yield placed.finding(
            "source.pods",
            SOURCE_NOT_READ,
            message="source.pods is valid, but serve of this release reads source.static and "
            "source.prometheus only",
        )


def _curve_not_drawn(placed: PlacedPolicy) -> Iterator[Finding]:
    for key in ("coverage", "history"):
        if placed.says(f"standby.{key}"):
            yield placed.finding(
                f"standby.{key}",
                CURVE_NOT_DRAWN,
                message=f"standby.{key} has no effect in this release: growth from the daily "
                "curve is not computed yet",
                fix="floor: 1 keeps a spare replica meanwhile",
            )


RELEASE: Final = (
    Rule(SOURCE_NOT_READ, _source_not_read),
    Rule(CURVE_NOT_DRAWN, _curve_not_drawn),
)
"""The family, by number."""
