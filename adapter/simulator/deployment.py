"""A scale target without a cluster: ReplicaSet, scheduler and kubelet of simulated engines."""

import itertools
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from adapter.fleet.assemble import Roster, Target
from adapter.fleet.snapshot import LoadTime, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.agenda import Agenda
from adapter.simulator.engine import Request, SimulatedEngine
from adapter.simulator.hpa import Scale
from adapter.simulator.presets import EnginePreset
from adapter.simulator.starts import LoadTimes

REMEMBERED_STARTS: Final = 50
"""How many of the latest starts the load-time quantile is taken of."""

WARM_UP: Final = Seconds(2.0)
"""What is compiled and captured at first use, after the probes said ready. Up to a minute was
reported (vllm#17280); a smoke request before ready takes most of it away."""

GRACE: Final = Seconds(120.0)
"""Long enough for nearly every answer of a chat."""

DRAIN_CHECK: Final = Seconds(1.0)
"""How often a stopping container looks whether it has finished."""


class Ledger(Protocol):
    """Who is told of the end of each request."""

    def finish(self, requests: Sequence[Request]) -> None:
        """Note ``requests``, which have all their tokens."""
        ...

    def lose(self, at: Timestamp, count: int) -> None:
        """Note that ``count`` requests were cut off."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpec:
    """What the pod template and its nodes amount to."""

    preset: EnginePreset
    load_times: LoadTimes
    warm_up: Seconds = WARM_UP
    """From ready to the first step."""

    grace: Seconds = GRACE
    """``terminationGracePeriodSeconds``: how long a stopped pod may finish what it holds."""

    nodes: int | None = None
    """Pods that find a place; more stay pending. None: as many as asked for."""

    load_quantile: float = 0.95
    """The policy's ``loadTime.quantile``."""


@dataclass(slots=True, eq=False)
class Pod:
    """One replica. It has an engine from when it is ready."""

    name: str
    number: int
    created_at: Timestamp
    """When it was asked for."""

    phase: Phase = Phase.PENDING
    since: Timestamp = field(init=False)
    """When the phase began."""

    bound_at: Timestamp | None = None
    """When it got its node, and began to cost."""

    ready_at: Timestamp | None = None
    engine: SimulatedEngine | None = None
    prompt_tokens: int = 0
    """Of the requests sent here and not known to have ended."""

    load: int = 0
    """Tokens to compute and to generate, sent here and not known to be done."""

    def __post_init__(self) -> None:
        self.since = self.created_at

    def send(self, request: Request) -> None:
        """Hand ``request`` to the engine of this pod, which serves."""
        if self.engine is None:
            raise AssertionError(f"{self.name} has no engine: only serving pods get requests")
        self.engine.submit(request)
        self.prompt_tokens += request.prompt_tokens
        self.load += request.prompt_tokens + request.output_tokens

    def advance(self, until: float) -> list[Request]:
        """Let the engine work until then, and return who finished."""
        if self.engine is None:
            return []
        done = self.engine.advance(until)
        self.load = self.engine.outstanding_tokens
        for request in done:
            self.prompt_tokens -= request.prompt_tokens
        return done


class Deployment:
    """Keeps as many pods as it is told to, each serving one load time after it got a node.

    Its first pods serve already: an autoscaler is installed on a fleet that runs. What it takes
    away is what a ReplicaSet takes away: pods that are not ready first, then the newest.
    """

    def __init__(
        self, name: str, *, spec: PodSpec, agenda: Agenda, first: int, ledger: Ledger
    ) -> None:
        """Begin with ``first`` pods that have served for an hour."""
        self._name, self._spec, self._agenda, self._ledger = name, spec, agenda, ledger
        self._numbers = itertools.count()
        self._replicas = first
        self._pods: list[Pod] = []
        self._starts: deque[Seconds] = deque(maxlen=REMEMBERED_STARTS)
        self._paid = 0.0
        self.load_factor = 1.0
        """How much longer than usual a model takes to load now."""

        self.serving: list[Pod] = []
        """The pods behind the Service, in the order they became ready."""

        self.started = 0
        """Pods asked for since the beginning, without the first ones."""

        self.history: list[tuple[Timestamp, int]] = [(agenda.now(), first)]
        """Each count that was asked for, and when."""

        for _ in range(first):
            self._open()

    @property
    def pods(self) -> Sequence[Pod]:
        """Return every pod that exists, the oldest first."""
        return self._pods

    @property
    def scale(self) -> Scale:
        """Return ``/scale``: pods that are being deleted are in neither number."""
        return Scale(self._replicas, len(self._active()))

    @property
    def paid_seconds(self) -> float:
        """Return the time that nodes were held until now, of all pods together."""
        now = self._agenda.now()
        return self._paid + sum(_held(pod, now) for pod in self._pods)

    def set_replicas(self, count: int) -> None:
        """Create or stop pods at once until ``count`` are wanted."""
        if count != self._replicas:
            self.history.append((self._agenda.now(), count))
        self._replicas = count
        for _ in range(count - len(self._active())):
            self._create()
        for pod in self._unwanted(len(self._active()) - count):
            self._stop(pod)

    def lose(self, pod: Pod) -> None:
        """Take ``pod`` away with its node and all that it holds; another is created for it."""
        self._remove(pod)
        self.set_replicas(self._replicas)

    def advance(self, until: float) -> None:
        """Let every engine work until then."""
        for pod in self._pods:
            self._work(pod, until)

    def roster(self) -> Roster:
        """Return what a watch of these pods and their scale target would say."""
        scale = self.scale
        return Roster(
            targets=tuple(
                Target(pod.name, pod.name, pod.name, phase=pod.phase, since=pod.since)
                for pod in self._pods
            ),
            spec_replicas=scale.spec_replicas,
            status_replicas=scale.status_replicas,
            load_time=self._load_time(),
        )

    def _active(self) -> list[Pod]:
        return [pod for pod in self._pods if pod.phase is not Phase.DRAINING]

    def _unwanted(self, count: int) -> list[Pod]:
        """Return the ``count`` pods that go first."""
        order = sorted(
            self._active(),
            key=lambda pod: (
                pod.phase is not Phase.PENDING,
                pod.phase is Phase.SERVING,
                -pod.since,
                -pod.number,
            ),
        )
        return order[: max(0, count)]

    def _open(self) -> None:
        now = self._agenda.now()
        pod = self._new(Timestamp(now - 3600))
        pod.bound_at = now
        self._serve(pod, Timestamp(now - 3600), engine_from=now)

    def _create(self) -> None:
        self._new(self._agenda.now())
        self.started += 1
        self._bind()

    def _new(self, created_at: Timestamp) -> Pod:
        number = next(self._numbers)
        pod = Pod(f"{self._name}-{number}", number, created_at)
        self._pods.append(pod)
        return pod

    def _bind(self) -> None:
        """Give nodes to the pods that wait for one, the oldest first, as far as there are any."""
        held = sum(pod.bound_at is not None for pod in self._pods)
        free = math.inf if self._spec.nodes is None else self._spec.nodes - held
        now = self._agenda.now()
        for pod in [pod for pod in self._pods if pod.phase is Phase.PENDING]:
            if free < 1:
                return
            free -= 1
            pod.phase, pod.since, pod.bound_at = Phase.LOADING, now, now
            ready_at = now + self.load_factor * self._spec.load_times.draw()
            self._agenda.at(Timestamp(ready_at), partial(self._loaded, pod))

    def _loaded(self, pod: Pod, at: Timestamp) -> None:
        if pod.phase is not Phase.LOADING or pod not in self._pods:
            return
        self._starts.append(Seconds(at - pod.created_at))
        self._serve(pod, at, engine_from=Timestamp(at + self._spec.warm_up))

    def _serve(self, pod: Pod, at: Timestamp, *, engine_from: Timestamp) -> None:
        pod.phase, pod.since, pod.ready_at = Phase.SERVING, at, at
        pod.engine = SimulatedEngine(self._spec.preset, started_at=engine_from)
        self.serving.append(pod)

    def _stop(self, pod: Pod) -> None:
        """Take ``pod`` out of the Service; it goes once it is empty, or when grace ends."""
        now = self._agenda.now()
        if pod.engine is None:
            self._remove(pod)
            return
        self.serving.remove(pod)
        pod.phase, pod.since = Phase.DRAINING, now
        self._drain(pod, now)

    def _drain(self, pod: Pod, at: Timestamp) -> None:
        if pod not in self._pods:
            return
        self._work(pod, at)
        in_flight = pod.engine.in_flight if pod.engine else 0
        if not in_flight or at >= pod.since + self._spec.grace:
            self._remove(pod)
            return
        later = Timestamp(min(at + DRAIN_CHECK, pod.since + self._spec.grace))
        self._agenda.at(later, partial(self._drain, pod))

    def _remove(self, pod: Pod) -> None:
        """Let ``pod`` be gone, its requests lost and its node free."""
        now = self._agenda.now()
        self._work(pod, now)
        if pod.engine is not None and pod.engine.in_flight:
            self._ledger.lose(now, pod.engine.in_flight)
        self._paid += _held(pod, now)
        self._pods.remove(pod)
        if pod in self.serving:
            self.serving.remove(pod)
        self._bind()

    def _work(self, pod: Pod, until: float) -> None:
        done = pod.advance(until)
        if done:
            self._ledger.finish(done)

    def _load_time(self) -> LoadTime | None:
        """Return the policy's quantile of the latest starts; None before the first."""
        if not self._starts:
            return None
        rank = math.ceil(self._spec.load_quantile * len(self._starts))
        return LoadTime(sorted(self._starts)[rank - 1], starts=len(self._starts))


def _held(pod: Pod, now: Timestamp) -> float:
    return 0.0 if pod.bound_at is None else now - pod.bound_at
