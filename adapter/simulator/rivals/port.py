"""What a rival is: settings, a state value, and one pure decision; and what it may wish for."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Generic, Protocol, TypeVar

from adapter.fleet.units import Seconds
from adapter.simulator.hpa import Behavior
from adapter.simulator.rivals.observation import Observation

S = TypeVar("S")

DEFAULT_BEHAVIOR: Final = Behavior()
"""Of an HPA whose manifest says nothing."""


class TargetType(StrEnum):
    """How an HPA reads an external metric."""

    AVERAGE_VALUE = "AverageValue"
    """A total, divided by the replicas."""

    VALUE = "Value"
    """A ratio, multiplied by the Ready replicas."""


@dataclass(frozen=True, slots=True)
class ExternalMetric:
    """One trigger of an HPA or ScaledObject."""

    value: float | None
    """Finite; None where the metric API answers an error."""

    target: float
    kind: TargetType = TargetType.AVERAGE_VALUE


@dataclass(frozen=True, slots=True)
class Published:
    """Metrics for an HPA, which decides by itself: the largest count that any of them asks for."""

    metrics: tuple[ExternalMetric, ...]


@dataclass(frozen=True, slots=True)
class Ordered:
    """A count that the rival writes to ``/scale`` itself; whoever writes it keeps the bounds."""

    replicas: int


Wish = Published | Ordered


class Rival(Protocol[S]):
    """One rule. A frozen dataclass whose fields are its settings; the state is all its memory."""

    @property
    def name(self) -> str:
        """Return what tables call it."""
        ...

    @property
    def interval(self) -> Seconds:
        """Return how often it decides."""
        ...

    @property
    def behavior(self) -> Behavior | None:
        """Return ``behavior`` of the HPA that reads it; None for one that writes ``/scale``."""
        ...

    def begin(self, seen: Observation) -> S:
        """Return the state of a controller that has just started."""
        ...

    def decide(self, seen: Observation, state: S) -> tuple[Wish, S]:
        """Return what it wants now, and what it remembers."""
        ...


class Seat(Generic[S]):
    """A rival at play: its rule with its latest state."""

    def __init__(self, rival: Rival[S], seen: Observation) -> None:
        """Start it as a controller that sees ``seen`` first."""
        self.rival = rival
        self._state = rival.begin(seen)

    def wish(self, seen: Observation) -> Wish:
        """Return what it wants now."""
        wish, self._state = self.rival.decide(seen, self._state)
        return wish


@dataclass(frozen=True, slots=True)
class NoMemory:
    """The state of a rule that remembers nothing."""


class Memoryless:
    """A rule that looks at the present moment alone."""

    __slots__ = ()

    def begin(self, seen: Observation) -> NoMemory:
        """Return nothing to remember."""
        del seen
        return NoMemory()


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What an operator measures once on one replica before a rule that needs it can be set up."""

    kv_tokens: int
    """Tokens that the KV cache holds."""

    prefill_tokens_per_second: float
    requests_per_second: float
    """Within the objective, of this model's usual lengths."""

    batched_tokens: int
    """``--max-num-batched-tokens``."""

    sequences: int
    """``--max-num-seqs``."""
