"""Requests played one by one: engines with batches and KV caches, a router, an HPA."""

from collections.abc import Callable
from typing import Final

from adapter.controller.ports import FleetSource
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Decision
from adapter.simulator.autoscaler import product
from adapter.simulator.backtest.least import MINUTE, Tally, first_replicas, full, least
from adapter.simulator.backtest.outcome import Backtest, Moment, Plan, demand_of, since
from adapter.simulator.deployment import PodSpec
from adapter.simulator.starts import LoadTimes
from adapter.simulator.world import Setting, World

MODE: Final = "requests"

_STRIDE: Final = Seconds(600.0)
"""Played between two reports of progress."""

_HOUR: Final = 3600.0


def _alone(source: FleetSource) -> FleetSource:
    return source


def _untold(share: float) -> None:
    del share


def play(
    plan: Plan,
    *,
    through: Callable[[FleetSource], FleetSource] = _alone,
    told: Callable[[float], None] = _untold,
) -> Backtest:
    """Return what came of ``plan``; ``told`` gets the share that is done, 0..1.

    ``through`` may put a recorder between the loop and what it sees.
    """
    capacity = full(plan)
    tally = Tally(plan.load.arrivals(scale=plan.scale, seed=plan.seed), plan.engine)
    book = _Logbook(plan)
    world = World(
        Setting(
            pods=PodSpec(
                preset=plan.engine,
                load_times=LoadTimes(plan.load_time, seed=plan.seed),
                load_quantile=plan.policy.spec.load_time.quantile,
            ),
            first=first_replicas(plan, capacity=capacity),
            scrape_interval=plan.policy.spec.source.interval,
            begin=plan.load.begin,
            scored_after=plan.warm_up,
            objective=plan.objective,
            seed=plan.seed,
        ),
        iter(tally),
        autoscaler=product(plan.active, told=book.decided, through=through),
    )
    book.follow(world)
    at = plan.load.begin
    while at < plan.end:
        at = Timestamp(min(plan.end, at + _STRIDE))
        world.play(at)
        told((at - plan.load.begin) / plan.load.length)
    score = world.score()
    found, slot = least(plan, tally.minutes, capacity=capacity)
    return Backtest(
        plan=plan,
        mode=MODE,
        score=score,
        moments=since(book.moments, plan.judged_from),
        asked=tuple(world.deployment.history),
        bound=found,
        slot=slot,
    )


class _Logbook:
    """Writes down the fleet and the latest decision once a minute."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._latest: Decision | None = None
        self._paid_before = 0.0
        self.moments: list[Moment] = []

    def decided(self, decision: Decision) -> None:
        """Note the latest decision."""
        self._latest = decision

    def follow(self, world: World) -> None:
        """Write from now on."""
        self._world = world
        world.agenda.at(self._plan.judged_from, self._begin)
        world.agenda.every(MINUTE, self._write, first=self._plan.judged_from)

    def _begin(self, at: Timestamp) -> None:
        del at
        self._paid_before = self._world.deployment.paid_seconds

    def _write(self, at: Timestamp) -> None:
        deployment, latest = self._world.deployment, self._latest
        serving, pods = len(deployment.serving), deployment.pods
        paid = deployment.paid_seconds - self._paid_before
        self.moments.append(
            Moment(
                at=at,
                demand=None if latest is None else demand_of(latest),
                desired=deployment.scale.spec_replicas if latest is None else latest.desired,
                serving=serving,
                loading=sum(pod.ready_at is None for pod in pods),
                in_flight=float(self._world.gateway.in_flight),
                paid_hours=paid / _HOUR,
            )
        )
