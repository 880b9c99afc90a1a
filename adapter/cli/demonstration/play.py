"""Plays a morning: the real adapter among stand-ins for the cluster, on one virtual time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.aggregator import AggregatedMetric
from adapter.cli.demonstration.deployment import Deployment
from adapter.cli.demonstration.moment import Moment
from adapter.cli.demonstration.product import product
from adapter.cli.demonstration.report import Report
from adapter.cli.demonstration.screen import Screen, screen_for
from adapter.cli.demonstration.users import Users
from adapter.cli.demonstration.wire import SERVER_NAME
from adapter.controller.board import Board, PolicyKey
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.clock import SharedClock
from adapter.simulator.hpa import HpaController
from adapter.simulator.starts import LoadTimes
from adapter.simulator.workload import Workload

STEP: Final = Seconds(1.0)
"""How often users, router and kubelet act, in fleet time."""

HPA_PHASE: Final = Seconds(7.0)
"""When the HPA syncs first: in a cluster nothing aligns it with the adapter's ticks."""

_GLANCE: Final = 0.005
"""Wall seconds between two looks for the first decision."""

_KEY: Final = PolicyKey(scene.NAMESPACE, scene.NAME)


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    length: Seconds
    """Fleet time to play."""

    speed: float
    """Fleet seconds in a wall second at the most; ``inf`` does not wait."""

    patience: float
    """Wall seconds after which it ends, however far it came."""

    seed: int = 1
    port: int = 0
    """Where the adapter serves; 0 takes a free one."""


def play_on_terminal(options: Options) -> Report:
    """Play, and show it on stderr: a live table on a terminal, else a line now and then."""
    logging.getLogger("leadtime").setLevel(logging.ERROR)  # the screen tells every decision

    async def played() -> Report:
        title = (
            f"{options.length / 60:.0f} min of a 70B fleet, {options.speed:.0f} times as fast; "
            f"a replica takes about {scene.LOAD_TIME:.0f} s to load"
        )
        wall = asyncio.get_running_loop().time
        with screen_for(Console(stderr=True), title, wall) as screen:
            return await play(options, screen)

    return asyncio.run(played())


async def play(options: Options, screen: Screen) -> Report:
    """Play to the end or to the end of patience, and return what came of it.

    Raises:
        ListenError: the port cannot be had.
    """
    clock = SharedClock(scene.DAYBREAK, speed=options.speed)
    deployment = Deployment(
        scene.NAME,
        model=scene.MODEL,
        preset=scene.PRESET,
        load_times=LoadTimes(scene.LOAD_TIME, seed=options.seed),
        clock=clock,
    )
    async with (
        contextlib.aclosing(deployment),
        product(deployment, clock=clock, port=options.port) as adapter,
        AggregatedMetric(
            adapter.metric_url, trust=adapter.aggregator, server_name=SERVER_NAME
        ) as metric,
    ):
        await deployment.open(scene.FIRST_REPLICAS)
        hpa = HpaController(scene.HPA, metric=metric, target=deployment, clock=clock)
        morning = _Morning(options, clock, deployment, board=adapter.board, hpa=hpa, screen=screen)
        wall = asyncio.get_running_loop().time
        begun = wall()
        with contextlib.suppress(TimeoutError):
            async with (
                asyncio.timeout(options.patience),
                meanwhile(adapter.supervisor.run(), _sync(hpa, clock)),
            ):
                await morning.first_decision()
                async with meanwhile(clock.run()):
                    await morning.run()
        return morning.report(metric, wall=Seconds(wall() - begun))


class _Morning:
    """Moves the stand-ins step by step, and keeps what was seen."""

    def __init__(
        self,
        options: Options,
        clock: SharedClock,
        deployment: Deployment,
        *,
        board: Board,
        hpa: HpaController,
        screen: Screen,
    ) -> None:
        self._options, self._clock, self._deployment = options, clock, deployment
        self._board, self._hpa, self._screen = board, hpa, screen
        arrivals = Workload(options.length, options.seed).arrivals()
        self._users = Users(arrivals, begin=clock.now(), deployment=deployment)
        self._moments: list[Moment] = []
        self._pod_seconds = 0.0

    async def first_decision(self) -> None:
        """Wait for it before time moves, so that every play begins alike."""
        while self._board.find(_KEY).decision is None:
            await asyncio.sleep(_GLANCE)

    async def run(self) -> None:
        """Play to the end."""
        while self._clock.elapsed < self._options.length:
            await self._clock.sleep_until(Timestamp(self._clock.now() + STEP))
            await self._deployment.step()
            self._users.advance(self._clock.now())
            self._pod_seconds += len(self._deployment.pods) * STEP
            self._look()

    def report(self, metric: AggregatedMetric, *, wall: Seconds) -> Report:
        """Return what came of it so far."""
        self._users.give_up(self._clock.now())
        return Report(
            moments=tuple(self._moments),
            first_replicas=scene.FIRST_REPLICAS,
            judged=self._users.judged,
            good=self._users.good,
            pod_seconds=self._pod_seconds,
            started=self._deployment.started,
            stopped=self._deployment.stopped,
            reads=metric.reads,
            failed_reads=metric.failed_reads,
            played=self._clock.elapsed,
            planned=self._options.length,
            wall=wall,
        )

    def _look(self) -> None:
        """Keep the decision on the board if it is a new one."""
        decision = self._board.find(_KEY).decision
        if decision is None or (self._moments and self._moments[-1].decision is decision):
            return
        moment = Moment(
            elapsed=Seconds(decision.at - scene.DAYBREAK),
            decision=decision,
            traffic=self._users.traffic(self._clock.now()),
            replicas=self._deployment.scale.spec_replicas,
            hpa=self._hpa.verdict,
        )
        self._moments.append(moment)
        self._screen.show(moment)


async def _sync(hpa: HpaController, clock: SharedClock) -> None:
    await clock.sleep_until(Timestamp(clock.now() + HPA_PHASE))
    await hpa.run()


@contextlib.asynccontextmanager
async def meanwhile(*jobs: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run ``jobs`` while the context is open; one that fails ends it, and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
            yield
            for task in tasks:
                task.cancel()
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from failed
