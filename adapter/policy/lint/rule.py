"""What a lint rule is."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from adapter.policy.finding import Code, Finding
from adapter.policy.load import PlacedPolicy
from adapter.policy.objects import Landscape


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing to look for in a policy that is valid by itself."""

    code: Code
    check: Callable[[PlacedPolicy], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class AroundRule:
    """One thing to look for in the objects around policies."""

    code: Code
    check: Callable[[Landscape], Iterable[Finding]]
