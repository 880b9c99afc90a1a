"""A constant count: what a team pays that provisions for the peak, or knew the best count before.

Source: evaluation section 7, policy 1. Defect: pays the peak all night, and the best count is
known only afterwards. Missing data changes nothing.
"""

from dataclasses import dataclass

from adapter.fleet.units import Seconds
from adapter.simulator.bound import Task, UnservableError, needed
from adapter.simulator.hpa import SYNC_PERIOD
from adapter.simulator.rivals.observation import Observation
from adapter.simulator.rivals.port import Memoryless, NoMemory, Ordered, Wish


@dataclass(frozen=True, slots=True)
class Static(Memoryless):
    """``replicas`` at every moment."""

    replicas: int
    name: str = "static"
    interval: Seconds = SYNC_PERIOD
    behavior: None = None

    def decide(self, seen: Observation, state: NoMemory) -> tuple[Wish, NoMemory]:
        """Return the count, whatever is seen or missing."""
        del seen
        return Ordered(self.replicas), state


def static_p100(task: Task) -> Static:
    """Return the count that the busiest slot needs."""
    return Static(max(needed(task), default=task.min_replicas), name="static-p100")


def best_static(task: Task, *, missed_share: float) -> Static:
    """Return the fewest constant replicas that miss at most ``missed_share`` of the work.

    In fluid terms, where a slot's work is spread evenly: a simulation starts its search here.

    Raises:
        UnservableError: even the largest fleet misses more.
    """
    budget = missed_share * task.slot * sum(task.work)
    for count in range(task.min_replicas, task.max_replicas + 1):
        if task.missed([count] * len(task.work)) <= budget:
            return Static(count, name="static-best")
    raise UnservableError(
        f"{task.max_replicas} constant replicas miss more than {missed_share:.2%} of the work: "
        "allow more replicas"
    )
