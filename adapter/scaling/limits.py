"""The bounds of the count: minimum, maximum, and the largest step up."""

from typing import Annotated

from pydantic import Field, model_validator

from adapter.scaling.section import ContradictionError, Section

MaxStep = (
    Annotated[int, Field(ge=1)]
    | Annotated[str, Field(pattern=r"^[1-9][0-9]{0,3}%$", title="a share like 100%")]
)


class Replicas(Section):
    """``replicas:``."""

    min: int = Field(ge=1, examples=[2])
    """The least ever published; at least 1, because a pool at zero has no signal to wake on."""

    max: int = Field(ge=1, examples=[8])
    """The most ever published."""

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.max < self.min:
            raise ContradictionError(
                f"max {self.max} is below min {self.min}: raise max or lower min", at="max"
            )
        return self


class ScaleUp(Section):
    """``scaleUp:``."""

    max_step: MaxStep | None = None
    """The largest step up at once: a number of replicas, or a share of the published count
    (``100%`` doubles). Default: no limit, because a replica ordered late arrives late."""
