"""Rules over replica counts: bounds and standby that cannot all be kept."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import Rule
from adapter.policy.load import PlacedPolicy

FLOOR_OVER_MAX: Final = Code(
    "LT120",
    Severity.ERROR,
    "standby.floor does not fit under replicas.max",
    "Standby is on top of present demand, which keeps at least replicas.min busy. Where both "
    "together exceed the maximum, the promised spare replicas are never there.",
)
CEILING_OVER_MAX: Final = Code(
    "LT121",
    Severity.WARNING,
    "standby.ceiling never limits anything",
    "Between replicas.min and replicas.max there are fewer replicas than the ceiling allows to "
    "stand by, so the maximum is reached first.",
)
NOTHING_TO_SCALE: Final = Code(
    "LT122",
    Severity.INFO,
    "replicas.min equals replicas.max",
    "The count is fixed: load is read and explained, but changes nothing.",
)


def _floor_over_max(placed: PlacedPolicy) -> Iterator[Finding]:
    replicas, floor = placed.policy.spec.replicas, placed.policy.spec.standby.floor
    if replicas.min < replicas.max < floor + replicas.min:
        yield placed.finding(
            "standby.floor",
            FLOOR_OVER_MAX,
            message=f"standby.floor {floor} on top of replicas.min {replicas.min} exceeds "
            f"replicas.max {replicas.max}",
            fix=f"floor: {replicas.max - replicas.min}, or raise replicas.max",
        )


def _ceiling_over_max(placed: PlacedPolicy) -> Iterator[Finding]:
    replicas, ceiling = placed.policy.spec.replicas, placed.policy.spec.standby.ceiling
    room = replicas.max - replicas.min
    if ceiling is not None and ceiling > room > 0:
        yield placed.finding(
            "standby.ceiling",
            CEILING_OVER_MAX,
            message=f"standby.ceiling {ceiling} is above the {room} replicas between "
            f"replicas.min {replicas.min} and replicas.max {replicas.max}",
            fix=f"ceiling: {room}, or leave it out",
        )


def _nothing_to_scale(placed: PlacedPolicy) -> Iterator[Finding]:
    replicas = placed.policy.spec.replicas
    if replicas.min == replicas.max:
        yield placed.finding(
            "replicas.max",
            NOTHING_TO_SCALE,
            message=f"replicas.min and replicas.max are both {replicas.max}: the count is fixed",
        )


SIZING: Final = (
    Rule(FLOOR_OVER_MAX, _floor_over_max),
    Rule(CEILING_OVER_MAX, _ceiling_over_max),
    Rule(NOTHING_TO_SCALE, _nothing_to_scale),
)
"""The family, by number."""
