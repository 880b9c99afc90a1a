"""Spare serving replicas on top of present demand."""

from pydantic import Field, model_validator

from adapter.scaling.decision import Stage, Step
from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.section import ContradictionError, Section


class Standby(Section):
    """``standby:``."""

    coverage: float = Field(default=0.99, gt=0, lt=1)
    """Share of the time that load growth within one load time must be covered."""

    history: PositiveDuration = default_duration("336h")
    """How much of the past the daily curve is drawn from."""

    floor: int = Field(default=0, ge=0)
    """Spare replicas at the least, whatever the curve says."""

    ceiling: int | None = Field(default=None, ge=0)
    """Spare replicas at the most; default: no limit but ``replicas.max``."""

    @model_validator(mode="after")
    def _ordered(self) -> "Standby":
        if self.ceiling is not None and self.ceiling < self.floor:
            raise ContradictionError(
                f"ceiling {self.ceiling} is below floor {self.floor}: raise ceiling or lower floor",
                at="ceiling",
            )
        return self


def with_standby(section: Standby, need: int) -> Step:
    """Return the need with its spare replicas on top."""
    because = f"{section.floor} spare at the least" if section.floor else "no standby asked for"
    return Step(Stage.STANDBY, need, need + section.floor, because)
