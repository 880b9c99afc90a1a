"""How long a replica takes from being asked for to its first good token."""

from pydantic import Field

from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds
from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.section import Section


class LoadTimeSection(Section):
    """``loadTime:``."""

    quantile: float = Field(default=0.95, gt=0, lt=1)
    """Which quantile of the measured starts counts as "the" load time."""

    default: PositiveDuration = default_duration("4m")
    """Used until starts have been measured; a 70B model on warm nodes takes about this."""


def lead_time(section: LoadTimeSection, fleet: FleetSnapshot) -> Seconds:
    """Return how long a replica that is ordered now takes to serve: measured, or the default."""
    return section.default if fleet.load_time is None else fleet.load_time.seconds
