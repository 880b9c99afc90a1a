"""Lint rules, one file per family; a rule is a function listed in its family's tuple."""

from collections.abc import Iterable
from typing import Final

from adapter.policy.codes import DOCUMENT_CODES
from adapter.policy.finding import Finding
from adapter.policy.lint.release import RELEASE
from adapter.policy.lint.sizing import SIZING
from adapter.policy.lint.timing import TIMING
from adapter.policy.lint.wiring import WIRING
from adapter.policy.load import PlacedPolicy

RULES: Final = (*TIMING, *SIZING, *WIRING, *RELEASE)
"""Every rule over a policy, by number."""

CODES: Final = (*DOCUMENT_CODES, *(rule.code for rule in RULES))
"""Every kind of finding there is, by number."""


def lint(policies: Iterable[PlacedPolicy]) -> tuple[Finding, ...]:
    """Return what a valid policy will be regretted for, sorted by place."""
    return tuple(
        sorted(finding for policy in policies for rule in RULES for finding in rule.check(policy))
    )
