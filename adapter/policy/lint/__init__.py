"""Lint rules, one file per family; a rule is a function listed in its family's tuple."""

from collections.abc import Iterable
from typing import Final

from adapter.policy.codes import DOCUMENT_CODES
from adapter.policy.finding import Finding
from adapter.policy.lint.engines import ABOUT_ENGINES
from adapter.policy.lint.hpa import HPA
from adapter.policy.lint.keda import KEDA
from adapter.policy.lint.ownership import OWNERSHIP
from adapter.policy.lint.platform import PLATFORM
from adapter.policy.lint.pods import PODS
from adapter.policy.lint.reach import REACH
from adapter.policy.lint.release import RELEASE
from adapter.policy.lint.rollouts import ROLLOUTS
from adapter.policy.lint.sizing import SIZING
from adapter.policy.lint.timing import TIMING
from adapter.policy.lint.wiring import WIRING
from adapter.policy.load import PlacedPolicy
from adapter.policy.objects import Landscape

RULES: Final = (*TIMING, *SIZING, *WIRING, *RELEASE)
"""Every rule over a policy, by number."""

AROUND: Final = (
    *HPA, *REACH, *OWNERSHIP, *KEDA, *PODS, *ROLLOUTS, *PLATFORM, *ABOUT_ENGINES,
)  # fmt: skip
"""Every rule over the objects around policies, by number."""

CODES: Final = (
    *DOCUMENT_CODES,
    *(rule.code for rule in RULES),
    *(rule.code for rule in AROUND),
)
"""Every kind of finding there is, by number."""


def lint(policies: Iterable[PlacedPolicy]) -> tuple[Finding, ...]:
    """Return what a valid policy will be regretted for, sorted by place."""
    return tuple(
        sorted(finding for policy in policies for rule in RULES for finding in rule.check(policy))
    )


def lint_around(landscape: Landscape) -> tuple[Finding, ...]:
    """Return what the objects around the policies do to the number, sorted by place."""
    found = {finding for rule in AROUND for finding in rule.check(landscape)}
    return tuple(sorted(found))
