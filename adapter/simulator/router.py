"""Which replica gets the next request: the router in front of the pool."""

import random
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar


class Loaded(Protocol):
    """What a router weighs."""

    load: int
    """Work sent and not known to be done, in tokens."""


Replica = TypeVar("Replica", bound=Loaded)


class Router(Protocol):
    """Chooses among the serving replicas, of which there is at least one."""

    def choose(self, replicas: Sequence[Replica]) -> Replica:
        """Return the replica for the next request; ``replicas`` are in the order they began."""
        ...


class RoundRobin:
    """One after the other, blind to load: a Service without a smarter router."""

    def __init__(self) -> None:
        self._turn = -1

    def choose(self, replicas: Sequence[Replica]) -> Replica:
        """Return the next in turn."""
        self._turn += 1
        return replicas[self._turn % len(replicas)]


class PowerOfTwo:
    """The less loaded of two drawn at random: Envoy's least request, Ray Serve."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).random

    def choose(self, replicas: Sequence[Replica]) -> Replica:
        """Return the less loaded of two different replicas, the first drawn when equal."""
        count = len(replicas)
        if count == 1:
            return replicas[0]
        place = int(self._draw() * count)
        other = int(self._draw() * (count - 1))
        one, two = replicas[place], replicas[other + (other >= place)]
        return two if two.load < one.load else one


class LeastWork:
    """The least loaded of all, the oldest when equal: an endpoint picker that counts tokens."""

    def choose(self, replicas: Sequence[Replica]) -> Replica:
        """Return the replica with the least work."""
        best, least = replicas[0], replicas[0].load
        for replica in replicas:
            load = replica.load
            if load < least:
                best, least = replica, load
        return best


ROUTERS: Final = ("round-robin", "power-of-two", "least-work")
"""The names for ``router``."""


def router(name: str, *, seed: int) -> Router:
    """Return a fresh router of that name.

    Raises:
        KeyError: no such router; names those that there are.
    """
    match name:
        case "round-robin":
            return RoundRobin()
        case "power-of-two":
            return PowerOfTwo(seed)
        case "least-work":
            return LeastWork()
    raise KeyError(f"no router {name!r}; there are {', '.join(ROUTERS)}")
