"""What one signal asks for."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Demand:
    """Replicas that one signal asks for, or None when it cannot say."""

    signal: str
    """``queue``, ``kvCache``, ``ttft``."""

    replicas: float | None
    """Fractional, >= 0: rounding up happens once, after the signals are combined."""

    because: str
    """One clause for a person, with the numbers: ``31 in flight / (8 x 0.9) per replica``."""

    floor: float | None = None
    """The least that is safe to go down to: silent replicas counted as busy. None: ``replicas``."""

    evidence: Mapping[str, float] = field(default_factory=dict)
    """The numbers behind the clause, by name with unit: ``waiting_requests``, ``ttft_seconds``."""

    blocks_down: bool = False
    """True when the reading is lost, not merely absent by nature: nothing may go down on it."""

    unserved: bool = False
    """True when the engine exports nothing for this signal: a fact about the policy, no gap."""
