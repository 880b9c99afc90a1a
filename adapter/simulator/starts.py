"""How long a new replica takes to load its model: seeded, and now and then a straggler."""

import math
import random
from dataclasses import dataclass, field
from typing import Final

from adapter.fleet.units import Seconds

_STRAGGLERS: Final = 0.02
_STRAGGLER_FACTOR: Final = 2.0
"""One start in fifty takes twice as long: a cold cache, a slow node."""


@dataclass(slots=True)
class LoadTimes:
    """Draws load times, lognormal around ``mean`` with the coefficient of variation ``cv``."""

    mean: Seconds
    """Presets: 20 host-cached, 60 local disk and compile cache, 240 typical, 600 new node."""

    seed: int
    cv: float = 0.15
    _chance: random.Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def draw(self) -> Seconds:
        """Return the next start's load time."""
        sigma = math.sqrt(math.log1p(self.cv**2))
        seconds = self._chance.lognormvariate(math.log(self.mean) - sigma**2 / 2, sigma)
        straggles = self._chance.random() < _STRAGGLERS
        return Seconds(seconds * (_STRAGGLER_FACTOR if straggles else 1.0))
