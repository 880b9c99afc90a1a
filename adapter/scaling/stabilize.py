"""Down slowly: no lower than the largest recommendation of the scale-down delay."""

from typing import Literal

from pydantic import Field

from adapter.scaling.duration import Duration, default_duration
from adapter.scaling.section import Section


class ScaleDown(Section):
    """``scaleDown:``."""

    delay: Literal["auto"] | Duration = "auto"
    """How long a lower need must last before the count follows; ``auto`` = factor x load time."""

    delay_factor: float = Field(default=1.0, gt=0, le=10)
    """1.0 is the ski-rental break-even: waiting one load time costs at most twice the best."""

    min_delay: Duration = default_duration("2m")
    """The least that ``auto`` comes to."""

    max_delay: Duration = default_duration("30m")
    """The most that ``auto`` comes to."""

    only_idle: bool = True
    """Step down by at most the number of idle replicas, so that no stream is cut for it."""
