"""Who sets the replicas of a world: the product with an HPA or KEDA around it, or a rival."""

from collections.abc import Callable, Coroutine
from typing import Any, Final, Generic, TypeVar

from adapter.controller.board import Board, PolicyKey
from adapter.controller.loop import Loop
from adapter.controller.ports import Clock, FleetSource
from adapter.fleet.reading import Cause
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Decision
from adapter.scaling.state import ScalingState
from adapter.simulator.agenda import Act, SetClock, at_once
from adapter.simulator.hpa import (
    SYNC_PERIOD,
    Behavior,
    HpaController,
    HpaSpec,
    HpaState,
    RatePolicy,
    Rules,
    Unit,
)
from adapter.simulator.keda import Keda, KedaSpec
from adapter.simulator.rivals.observation import RouterFacts, observe
from adapter.simulator.rivals.port import Published, Rival, Seat
from adapter.simulator.rivals.published import sync
from adapter.simulator.world import Autoscaler, World

State = TypeVar("State")

HPA_PHASE: Final = Seconds(7.0)
"""When the HPA syncs first: in a cluster nothing aligns it with the adapter's ticks."""

_DIRECT: Final = Rules(Seconds(0.0), (RatePolicy(Unit.PERCENT, 1000),), tolerance=0.0)

DIRECT: Final = Behavior(up=_DIRECT, down=_DIRECT)
"""The behavior that the product asks for: tolerance 0, no windows; the policy has its own."""


def _forgotten(decision: Decision) -> None:
    del decision


def _as_it_is(source: FleetSource) -> FleetSource:
    return source


def static(world: World) -> None:
    """Leave the replicas as they are."""
    del world


def product(
    policy: Policy,
    consumer: HpaSpec | KedaSpec | None = None,
    *,
    told: Callable[[Decision], None] = _forgotten,
    through: Callable[[FleetSource], FleetSource] = _as_it_is,
) -> Autoscaler:
    """Return the real loop for ``policy``, with ``consumer`` between it and the scale target.

    None: the HPA that the product generates for the policy's bounds. ``told`` gets every
    decision; ``through`` may put something between the loop and what it sees, a recorder.
    """
    bounds = policy.spec.replicas
    reads = consumer or HpaSpec(bounds.min, bounds.max, behavior=DIRECT)

    def attach(world: World) -> None:
        source = through(world.observer(stale_after=policy.spec.stale_after))
        loop, published = adapter_of(policy, source, world.clock)

        def tick(at: Timestamp) -> None:
            del at
            told(at_once(loop.tick(world.clock.now())))

        world.agenda.every(policy.spec.source.interval, tick, first=world.begin)
        _consume(world, reads, published)

    return attach


def adapter_of(
    policy: Policy,
    source: FleetSource,
    clock: Clock,
    *,
    interval: Seconds | None = None,
    state: ScalingState | None = None,
) -> tuple[Loop, "PublishedCount"]:
    """Return the loop of ``policy`` and the number that it publishes, both without a transport.

    ``interval`` is the policy's own unless given, and ``state`` the memory that it begins with.
    """
    board = Board()
    key = board.list_policy(policy, {})
    loop = Loop(
        key,
        policy.spec,
        interval=interval or policy.spec.source.interval,
        source=source,
        store=_Memory(state or ScalingState()),
        board=board,
        clock=clock,
        telemetry=_Uncounted(),
    )
    return loop, PublishedCount(board, key, clock)


def rival(rule: Rival[State], *, bounds: tuple[int, int], stale_after: Seconds) -> Autoscaler:
    """Return ``rule`` on the same scrapes and the same router, kept within ``bounds``.

    One that publishes is read by an HPA with the rule's own behavior; one that orders writes the
    scale itself.
    """

    def attach(world: World) -> None:
        world.gateway.watch()
        play = _RivalAtPlay(world, rule, bounds=bounds, stale_after=stale_after)
        world.agenda.every(rule.interval, play.decide, first=world.begin)
        world.agenda.every(SYNC_PERIOD, play.sync, first=Timestamp(world.begin + HPA_PHASE))

    return attach


class _RivalAtPlay(Generic[State]):
    """A rival, its latest wish, and the HPA that reads it."""

    def __init__(
        self, world: World, rule: Rival[State], *, bounds: tuple[int, int], stale_after: Seconds
    ) -> None:
        self._world, self._rule, self._bounds = world, rule, bounds
        self._source = world.observer(stale_after=stale_after)
        self._seat: Seat[State] | None = None
        self._published: Published | None = None
        self._ready = 0
        self._hpa = HpaState()

    def decide(self, at: Timestamp) -> None:
        """Let the rule see the fleet, and take its wish."""
        least, most = self._bounds
        seen = observe(
            at_once(self._source.snapshot(self._world.clock.now())),
            _router_facts(self._world, at),
            spec_replicas=self._world.deployment.scale.spec_replicas,
            min_replicas=least,
            max_replicas=most,
        )
        if self._seat is None:
            self._seat = Seat(self._rule, seen)
        wish = self._seat.wish(seen)
        self._ready = seen.ready_replicas
        if isinstance(wish, Published):
            self._published = wish
        else:
            self._world.deployment.set_replicas(max(least, min(most, wish.replicas)))

    def sync(self, at: Timestamp) -> None:
        """Let the HPA act on what is published, if anything is."""
        if self._published is None:
            return
        deployment = self._world.deployment
        verdict, self._hpa = sync(
            HpaSpec(*self._bounds, behavior=self._rule.behavior),
            deployment.scale,
            wish=self._published,
            ready=self._ready,
            at=at,
            state=self._hpa,
        )
        if verdict.replicas != deployment.scale.spec_replicas:
            deployment.set_replicas(verdict.replicas)


def _router_facts(world: World, at: Timestamp) -> RouterFacts:
    minute = world.gateway.minute(at)
    return RouterFacts(
        in_flight_requests=float(world.gateway.in_flight),
        queued_requests=float(world.queued),
        requests_per_second=minute.requests_per_second,
        prompt_tokens_mean=minute.prompt_tokens_mean,
        output_tokens_mean=minute.output_tokens_mean,
        uncached_tokens_in_flight=float(sum(pod.prompt_tokens for pod in world.deployment.pods)),
        ttft_p90_seconds=minute.ttft_p90,
        tpot_p90_seconds=minute.seconds_per_token_p90,
    )


def _consume(world: World, reads: HpaSpec | KedaSpec, metric: "PublishedCount") -> None:
    """Put the HPA's syncs down, and with KEDA the operator's polls."""
    first = Timestamp(world.begin + HPA_PHASE)
    clock = SetClock(world.agenda)
    if isinstance(reads, HpaSpec):
        hpa = HpaController(reads, metric=metric, target=world.deployment, clock=clock)
    else:
        keda = Keda(reads, metric=metric, target=world.deployment, clock=clock)
        world.agenda.every(reads.polling_interval, _sync(keda.poll), first=first)
        hpa = keda.hpa
    world.agenda.every(SYNC_PERIOD, _sync(hpa.sync), first=first)


def _sync(act: Callable[[], Coroutine[Any, Any, None]]) -> Act:
    return lambda _: at_once(act())


class PublishedCount:
    """The number on the board, as the HPA gets it through the aggregator."""

    def __init__(self, board: Board, key: PolicyKey, clock: Clock) -> None:
        self._board, self._key, self._clock = board, key, clock

    async def read(self) -> tuple[int, ...]:
        """Return the published count in milli; raises what the wire would answer."""
        return (1000 * self._board.decided(self._key, self._clock.now()).published,)


class _Memory:
    """A state store that lives as long as the world."""

    def __init__(self, state: ScalingState) -> None:
        self._first = state
        self._states: dict[str, ScalingState] = {}

    async def load(self, policy: str) -> ScalingState:
        """Return what was saved, or what it began with."""
        return self._states.get(policy, self._first)

    async def save(self, policy: str, state: ScalingState) -> None:
        """Keep ``state``."""
        self._states[policy] = state


class _Uncounted:
    """Telemetry that nobody reads: what a run was like is in its score."""

    def ticked(self, policy: str, seconds: Seconds) -> None:
        """Count nothing."""

    def gap(self, policy: str, cause: Cause) -> None:
        """Count nothing."""

    def unsaved(self, policy: str) -> None:
        """Count nothing."""

    def crashed(self, policy: str) -> None:
        """Count nothing."""

    def reloaded(self, *, broken: int) -> None:
        """Count nothing."""

    def forget(self, policy: str) -> None:
        """Count nothing."""
