"""ReplicaSet and kubelet in one stand-in: pods that load, serve, drain and are gone."""

import itertools
import math
from dataclasses import dataclass
from functools import partial
from typing import Final

from adapter.cli.demonstration.face import Face
from adapter.controller.ports import Clock
from adapter.fleet.assemble import Roster, Target
from adapter.fleet.snapshot import LoadTime, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.engine import SimulatedEngine
from adapter.simulator.exposition import vllm_exposition
from adapter.simulator.hpa import Scale
from adapter.simulator.presets import EnginePreset
from adapter.simulator.starts import LoadTimes

_LOAD_QUANTILE: Final = 0.95
"""The default of `loadTime.quantile`."""

GRACE: Final = Seconds(120.0)
"""``terminationGracePeriodSeconds``: how long a stopped pod may finish what it holds."""


@dataclass(slots=True)
class Pod:
    """One engine in its pod."""

    name: str
    engine: SimulatedEngine
    face: Face
    phase: Phase
    since: Timestamp
    """When the phase began."""

    until: Timestamp
    """When a loading pod serves, or a draining one is killed."""


class Deployment:
    """A scale target whose pods serve one load time after they were asked for.

    Its first pods serve already: an autoscaler is installed on a fleet that runs. What it takes
    away is what a ReplicaSet takes away: pods that are not ready first, then the newest.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str,
        preset: EnginePreset,
        load_times: LoadTimes,
        clock: Clock,
    ) -> None:
        self._name, self._numbers = name, itertools.count()
        self._model, self._preset = model, preset
        self._load_times, self._clock = load_times, clock
        self._replicas = 0
        self._pods: list[Pod] = []
        self._measured: list[Seconds] = []
        self.started = 0
        """Pods asked for since the beginning, without the first ones."""

        self.stopped = 0

    async def open(self, count: int) -> None:
        """Begin with ``count`` pods that serve for an hour already."""
        self._replicas = count
        began = Timestamp(self._clock.now() - 3600)
        for _ in range(count):
            await self._serve(self._new_pod(began), began)

    async def aclose(self) -> None:
        """Give every port back."""
        for pod in self._pods:
            await pod.face.close()

    @property
    def scale(self) -> Scale:
        """Return ``/scale``: pods that are being deleted are in neither number."""
        return Scale(self._replicas, len(self._active()))

    @property
    def pods(self) -> tuple[Pod, ...]:
        """Return every pod that exists, the oldest first."""
        return tuple(self._pods)

    def phase(self, phase: Phase) -> tuple[Pod, ...]:
        """Return the pods in ``phase``, the oldest first."""
        return tuple(pod for pod in self._pods if pod.phase is phase)

    def set_replicas(self, count: int) -> None:
        """Create or stop pods at once until ``count`` are wanted."""
        self._replicas = count
        for _ in range(count - len(self._active())):
            self._new_pod(self._clock.now())
            self.started += 1
        for pod in self._unwanted(len(self._active()) - count):
            self._stop(pod)

    async def step(self) -> None:
        """Let loaded pods serve, and drained ones go."""
        now = self._clock.now()
        for pod in self.phase(Phase.LOADING):
            if pod.until <= now:
                self._measured.append(Seconds(now - pod.since))
                await self._serve(pod, now)
        for pod in self.phase(Phase.DRAINING):
            if pod.until <= now or not pod.engine.in_flight:
                self._pods.remove(pod)
                await pod.face.close()

    async def roster(self, at: Timestamp) -> Roster:
        """Return what a watch of these pods and their scale target would say."""
        del at
        return Roster(
            targets=tuple(
                Target(pod.name, pod.name, pod.face.url, phase=pod.phase, since=pod.since)
                for pod in self._pods
            ),
            spec_replicas=self._replicas,
            status_replicas=len(self._active()),
            load_time=self._load_time(),
        )

    def _active(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self._pods if pod.phase is not Phase.DRAINING)

    def _unwanted(self, count: int) -> tuple[Pod, ...]:
        """Return the ``count`` pods that go first."""
        newest_first = reversed(self._active())
        order = sorted(newest_first, key=lambda pod: (pod.phase is Phase.SERVING, -pod.since))
        return tuple(order[: max(0, count)])

    def _new_pod(self, now: Timestamp) -> Pod:
        name = f"{self._name}-{next(self._numbers)}"
        loaded_at = Timestamp(now + self._load_times.draw())
        engine = SimulatedEngine(self._preset, started_at=now)
        render = partial(
            vllm_exposition, engine, model=self._model, started_at=now, loaded_at=loaded_at
        )
        pod = Pod(name, engine, Face(render), Phase.LOADING, since=now, until=loaded_at)
        self._pods.append(pod)
        return pod

    async def _serve(self, pod: Pod, now: Timestamp) -> None:
        pod.phase, pod.since = Phase.SERVING, now
        pod.engine.advance(self._clock.now())  # it begins here, whatever waits for it already
        await pod.face.open()

    def _stop(self, pod: Pod) -> None:
        now = self._clock.now()
        pod.phase, pod.since, pod.until = Phase.DRAINING, now, Timestamp(now + GRACE)
        self.stopped += 1

    def _load_time(self) -> LoadTime | None:
        """Return the policy's quantile of the starts so far; None before the first."""
        if not self._measured:
            return None
        rank = math.ceil(_LOAD_QUANTILE * len(self._measured))
        return LoadTime(sorted(self._measured)[rank - 1], starts=len(self._measured))
