"""TTFT trend: the windowed quantile projected one load time ahead; it only ever raises."""

from pydantic import Field

from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.section import Section


class TtftSection(Section):
    """``signals.ttft:``."""

    objective: PositiveDuration = default_duration("2s")
    """The time to first token that users are promised."""

    quantile: float = Field(default=0.95, gt=0, lt=1)
    """Which quantile the promise is about."""

    window: PositiveDuration = default_duration("2m")
    """How much of the recent past the quantile and its trend are taken from."""
