"""Queue: work in flight over what one replica carries."""

from typing import Annotated, Literal

from pydantic import Field

from adapter.scaling.section import Section


class QueueSection(Section):
    """``signals.queue:``."""

    target_in_flight: Literal["auto"] | Annotated[float, Field(gt=0)] = "auto"
    """Requests in flight (running + waiting) that one replica carries within the objective;
    ``auto`` learns it from the moment queueing begins."""

    headroom: float = Field(default=0.9, gt=0, le=1)
    """Share of the target that is planned with, so that noise does not queue."""
