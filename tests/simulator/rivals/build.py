"""Observations, and the smallest world that can order replicas: one load, one load time."""

from collections.abc import Callable, Sequence

from adapter.fleet.units import Timestamp
from adapter.simulator.hpa import SYNC_PERIOD, HpaSpec, HpaState, Scale
from adapter.simulator.rivals.observation import Observation, PodFacts, RouterFacts
from adapter.simulator.rivals.port import Ordered, Published, Rival, Seat
from adapter.simulator.rivals.published import sync

NOTHING = RouterFacts()


def pods(*loads: tuple[float | None, float | None], ready: bool = True) -> tuple[PodFacts, ...]:
    """Pods of (KV-cache usage, waiting); what else they report is 0."""
    return tuple(
        PodFacts(name=f"pod-{n}", ready=ready, kv_usage_ratio=kv, waiting=waiting, running=0.0)
        for n, (kv, waiting) in enumerate(loads)
    )


def silent(count: int, *, ready: bool = True) -> tuple[PodFacts, ...]:
    """Pods that answer nothing."""
    return tuple(PodFacts(name=f"silent-{n}", ready=ready) for n in range(count))


def running(*counts: float) -> tuple[PodFacts, ...]:
    """Ready pods with so many running requests each, and no queue."""
    return tuple(
        PodFacts(name=f"pod-{n}", ready=True, running=count, waiting=0.0, kv_usage_ratio=0.5)
        for n, count in enumerate(counts)
    )


def seen(
    *facts: PodFacts,
    at: float = 0.0,
    spec: int | None = None,
    router: RouterFacts = NOTHING,
    low: int = 1,
    high: int = 100,
    error: str = "",
) -> Observation:
    return Observation(
        at=Timestamp(at),
        pods=facts,
        spec_replicas=len(facts) if spec is None else spec,
        router=router,
        min_replicas=low,
        max_replicas=high,
        source_error=error,
    )


def wish_once(rival: Rival, observation: Observation) -> Ordered | Published:
    return Seat(rival, observation).wish(observation)


def ordered_once(rival: Rival, observation: Observation) -> int:
    wish = wish_once(rival, observation)
    assert isinstance(wish, Ordered)
    return wish.replicas


def values_once(rival: Rival, observation: Observation) -> list[float | None]:
    wish = wish_once(rival, observation)
    assert isinstance(wish, Published)
    return [metric.value for metric in wish.metrics]


def synced_once(rival: Rival, observation: Observation) -> int:
    """Return what the rival's HPA wants, after tolerance, before windows and limits."""
    wish = wish_once(rival, observation)
    assert isinstance(wish, Published)
    count = observation.spec_replicas
    verdict, _ = sync(
        HpaSpec(observation.min_replicas, observation.max_replicas, behavior=rival.behavior),
        Scale(count, count),
        wish=wish,
        ready=observation.ready_replicas,
        at=observation.at,
        state=HpaState(),
    )
    assert verdict.wanted is not None
    return verdict.wanted


World = Callable[[float, int, int], Observation]
"""Makes an observation of the time, the ready and the ordered replicas."""


class Play:
    """Lets a rival order replicas that take ``load_time`` to get Ready; none is ever killed first.

    A removed replica is the youngest: loading ones go before Ready ones.
    """

    def __init__(self, rival: Rival, world: World, *, first: int, load_time: float) -> None:
        self.rival, self.world, self.load_time = rival, world, load_time
        self.ready_at = [float("-inf")] * first
        self.shed = 0
        """Replicas that were removed while loading."""

        self.hpa = HpaState()
        self.seat: Seat | None = None

    def until(
        self, end: float, *, begin: float = 0.0, step: float = 1.0
    ) -> list[tuple[float, int]]:
        """Play; return when the ordered count changed, and to what."""
        changes, at = [], begin
        wish: Ordered | Published | None = None
        while at <= end:
            if at % self.rival.interval == 0:
                wish = self._wish(at)
            count = len(self.ready_at)
            self._apply(wish, at)
            if len(self.ready_at) != count:
                changes.append((at, len(self.ready_at)))
            at += step
        return changes

    def _look(self, at: float) -> Observation:
        ready = sum(moment <= at for moment in self.ready_at)
        return self.world(at, ready, len(self.ready_at))

    def _wish(self, at: float) -> Ordered | Published:
        observation = self._look(at)
        if self.seat is None:
            self.seat = Seat(self.rival, observation)
        return self.seat.wish(observation)

    def _apply(self, wish: Ordered | Published | None, at: float) -> None:
        if isinstance(wish, Ordered):
            self._set(wish.replicas, at)
        elif wish is not None and at % SYNC_PERIOD == 0:
            observation = self._look(at)
            count = len(self.ready_at)
            verdict, self.hpa = sync(
                HpaSpec(
                    observation.min_replicas,
                    observation.max_replicas,
                    behavior=self.rival.behavior,
                ),
                Scale(count, count),
                wish=wish,
                ready=observation.ready_replicas,
                at=Timestamp(at),
                state=self.hpa,
            )
            self._set(verdict.replicas, at)

    def _set(self, count: int, at: float) -> None:
        while len(self.ready_at) < count:
            self.ready_at.append(at + self.load_time)
        while len(self.ready_at) > count:
            self.shed += self.ready_at.pop() > at


def reached(changes: Sequence[tuple[float, int]], count: int) -> float:
    """When at least ``count`` was ordered."""
    return next(at for at, ordered in changes if ordered >= count)
