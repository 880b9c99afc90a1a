"""The clairvoyant bound of a load: the work in each slot, and the engine that may serve it."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from adapter.controller.errors import AdapterError
from adapter.fleet.units import Seconds
from adapter.simulator.backtest.outcome import Plan
from adapter.simulator.bound import Bound, Task, UnservableError, bound
from adapter.simulator.presets import EnginePreset
from adapter.simulator.saturation import GOOD, saturated, work_of
from adapter.simulator.score import Objective
from adapter.simulator.synthetic import Deck
from adapter.simulator.workload import Arrival

MINUTE: Final = Seconds(60.0)

_LONG: Final = 0.99
"""The quantile of the prompts whose promise is the slack of all: the bound may be too low only."""

_MOST: Final = 4096
"""Replicas in the largest fleet that is reckoned with."""

_MINUTES: Final = 2 * 1440
_WIDE: Final = 5
"""Beyond two days slots of five minutes are enough, and take a fifth of the time. The bound moves
by 1 %: up, as less of a slot can wait for the next one, or down, as its peak is averaged."""

_EASY: Final = 0.7
"""How busy the replicas are that a fleet begins with."""

_FIRST: Final = 10
"""Minutes whose mean the fleet at the begin is for."""


class UnplayableError(AdapterError):
    """The load has nothing that the engine could serve; says so. The user's to mend."""


class Tally:
    """Counts the work of requests by the minute while somebody else takes them."""

    def __init__(self, arrivals: Iterator[Arrival], engine: EnginePreset) -> None:
        self._arrivals, self._work = arrivals, work_of(engine)
        self._largest = engine.admissible_tokens
        self._known: dict[tuple[int, int], float] = {}
        self.minutes: list[float] = []
        """Engine-seconds that came in each; what no engine could hold is left out."""

    def __iter__(self) -> Iterator[Arrival]:
        """Yield the requests."""
        minutes, largest, work = self.minutes, self._largest, self._work
        for one in self._arrivals:
            minute = int(one.after // MINUTE)
            while len(minutes) <= minute:
                minutes.append(0.0)
            if one.prompt_tokens + one.output_tokens <= largest:
                minutes[minute] += work(one.prompt_tokens, one.output_tokens)
            yield one


def full(plan: Plan) -> float:
    """Return the most engine-seconds that a replica does in a second, whatever the mix then.

    Raises:
        UnplayableError: there is no request, or none that the engine could hold.
    """
    largest = plan.engine.admissible_tokens
    decks = [deck for deck in plan.load.lengths() if any(sum(card) <= largest for card in deck)]
    if not decks:
        raise UnplayableError(
            f"{plan.load.name}: no request in this part of it that {plan.engine.name} could hold "
            f"({largest} tokens): take another part, or an engine with more KV cache"
        )
    return max(saturated(plan.engine, deck) for deck in decks)


def first_replicas(plan: Plan, *, capacity: float) -> int:
    """Return how many replicas the fleet begins with: 70 % busy, within the policy's bounds."""
    work, largest = mean_work(plan.engine, plan.load.lengths()[0]), plan.policy.spec.replicas
    come = plan.load.bins(MINUTE, scale=plan.scale, seed=plan.seed)
    some = [one for one, _ in zip(come, range(_FIRST), strict=False)]
    seconds = sum(one.seconds for one in some)
    busy = work * sum(one.requests for one in some) / seconds if seconds else 0.0
    return max(largest.min, min(largest.max, math.ceil(busy / capacity / _EASY)))


def mean_work(engine: EnginePreset, deck: Deck) -> float:
    """Return the engine-seconds of a request of ``deck``, on average."""
    work: Callable[[int, int], float] = work_of(engine)
    return math.fsum(work(*card) for card in deck) / len(deck)


def least(plan: Plan, minutes: Sequence[float], *, capacity: float) -> tuple[Bound | None, Seconds]:
    """Return the bound of the judged time, and the slot of its plan.

    ``minutes`` hold the work since the load's begin. Who begins with how many replicas is not
    judged, as little as the policy's own bounds: it is what nobody at all can beat.
    """
    slack = _slack(plan.engine, plan.load.lengths()[-1], plan.objective)
    judged = minutes[math.ceil(plan.warm_up / MINUTE) :]
    wide = max(math.floor(slack / MINUTE) + 1, _WIDE if len(judged) > _MINUTES else 1)
    slots = [judged[n : n + wide] for n in range(0, len(judged), wide)]
    slot = Seconds(wide * MINUTE)
    work = tuple(math.fsum(part) / (len(part) * MINUTE) for part in slots)
    most = min(_MOST, math.ceil(max(work, default=0.0) / capacity) + 1)
    task = Task(
        work=work,
        capacity=tuple(count * capacity for count in range(most + 1)),
        slot=slot,
        load_time=plan.load_time,
        slack=slack,
        running=most,
    )
    try:
        return bound(task, missed_share=1 - GOOD), slot
    except UnservableError:
        return None, slot


def _slack(engine: EnginePreset, deck: Deck, promise: Objective) -> Seconds:
    """Return how late a long prompt may have its first token."""
    prompts = sorted(prompt for prompt, _ in deck)
    alone = engine.isolated_prefill_seconds(prompts[int(_LONG * len(prompts))])
    return Seconds(promise.ttft + promise.prefills * alone)
