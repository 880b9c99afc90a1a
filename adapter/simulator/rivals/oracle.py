"""The clairvoyant's plan, ordered one load time ahead: how near to the bound a simulation comes.

Source: evaluation section 4.3. Defect: needs the future; nobody can deploy it.
"""

from dataclasses import dataclass

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.hpa import SYNC_PERIOD
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import Memoryless, NoMemory, Ordered, Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle(Memoryless):
    """Orders what ``serving`` wants at any moment of the next ``lead``, and nothing else."""

    serving: tuple[int, ...]
    """Replicas that serve in each slot, from ``first`` on: ``bound.Bound.plan``."""

    first: Timestamp
    slot: Seconds
    lead: Seconds
    """The load time with its stragglers: what is ordered now serves then."""

    name: str = "oracle"
    interval: Seconds = SYNC_PERIOD
    behavior: None = None

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return the most that the plan serves within the lead; before and after, its ends.

        Exact for a plan that keeps through every gap shorter than the lead, as an optimal one.
        """
        now = self._place(seen.at)
        until = self._place(Timestamp(seen.at + self.lead))
        return Ordered(max(self.serving[now : until + 1])), state

    def _place(self, at: Timestamp) -> int:
        return max(0, min(len(self.serving) - 1, int((at - self.first) // self.slot)))
