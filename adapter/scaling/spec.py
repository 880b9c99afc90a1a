"""``spec:`` as far as it is about scaling, put together from the stages' sections."""

from enum import StrEnum

from pydantic import Field

from adapter.scaling.duration import PositiveDuration, default_duration
from adapter.scaling.limits import Replicas, ScaleUp
from adapter.scaling.load_time import LoadTimeSection
from adapter.scaling.section import Section
from adapter.scaling.signals import Signals
from adapter.scaling.stabilize import ScaleDown
from adapter.scaling.standby import Standby


class Mode(StrEnum):
    """What happens with a decision."""

    ACTIVE = "active"
    """Publish what is wanted."""

    ADVISORY = "advisory"
    """Compute and export what is wanted, publish what is."""

    OFF = "off"
    """Do nothing; asked for the metric, answer an error that says so."""


class ScalingSpec(Section):
    """The part of a policy that the decision reads."""

    mode: Mode = Mode.ACTIVE
    """``active`` serves what is wanted; ``advisory`` computes and exports it and serves what is;
    ``off`` does nothing, and says so to whoever asks. Quote ``"off"``: to kubectl it is false."""

    replicas: Replicas = Field(examples=[{"min": 2, "max": 8}])
    """The bounds. Minimum 0 is refused: a pool at zero has no signal to wake on."""

    signals: Signals = Field(default_factory=Signals)
    """What is read from the engines, and the targets for it. The largest demand wins."""

    scale_up: ScaleUp = Field(default_factory=ScaleUp)
    """Up is at once and to the full need, unless a limit is set here."""

    scale_down: ScaleDown = Field(default_factory=ScaleDown)
    """Down is slow: after a delay tied to the load time, and only past idle replicas."""

    load_time: LoadTimeSection = Field(default_factory=LoadTimeSection)
    """How long a replica takes to serve: measured, with a default until then."""

    standby: Standby = Field(default_factory=Standby)
    """Spare serving replicas above present demand."""

    stale_after: PositiveDuration = default_duration("2m")
    """How long the last good count is held when metrics are gone; then the answer is an error,
    which the HPA and KEDA treat as "leave it as it is". While a replica that just started answers
    without a first token, the count is held until it counts, a minute at the most."""
