"""Worlds that the simulator's tests start from: small, steady, easy to bend."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.simulator.agenda import Agenda
from adapter.simulator.autoscaler import static
from adapter.simulator.deployment import Deployment, PodSpec
from adapter.simulator.engine import Request
from adapter.simulator.faults import Fault
from adapter.simulator.presets import preset
from adapter.simulator.starts import LoadTimes
from adapter.simulator.synthetic import Curve, Play, Steady
from adapter.simulator.workload import Arrival
from adapter.simulator.world import Autoscaler, Setting, World
from tests.build import T0

ENGINE = preset("llama-3.1-70b-4xh100")
CHAT = Steady([(1200, 120)])


class ExactLoads(LoadTimes):
    """Every start takes the mean."""

    def draw(self) -> Seconds:
        return self.mean


def exact_pods(load: float = 60.0, **more: object) -> PodSpec:
    """Return pods whose every start takes ``load`` seconds."""
    spec = PodSpec(preset=ENGINE, load_times=ExactLoads(Seconds(load), seed=0))
    return replace(spec, **more)  # type: ignore[arg-type]


class Ledger:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.finished: list[Request] = []
        self.lost: list[tuple[float, int]] = []

    def finish(self, requests: Iterable[Request]) -> None:
        self.finished += requests

    def lose(self, at: Timestamp, count: int) -> None:
        self.lost.append((at, count))


def a_deployment(
    agenda: Agenda, *, first: int = 2, load: float = 60.0, **more: object
) -> tuple[Deployment, Ledger]:
    """Return a deployment on ``agenda``, and the ledger of its requests."""
    ledger = Ledger()
    spec = exact_pods(load, **more)
    return Deployment("r", spec=spec, agenda=agenda, first=first, ledger=ledger), ledger


def arrivals(rate: float, length: float, *, seed: int = 1) -> Iterator[Arrival]:
    """Return requests of 1200 + 120 tokens at a constant mean rate."""
    curve = Curve(((0.0, rate),))
    return Play(rates=curve, decks=CHAT, length=Seconds(length), seed=seed).arrivals()


def a_world(
    requests: Iterator[Arrival],
    *,
    first: int = 2,
    load: float = 60.0,
    autoscaler: Autoscaler = static,
    faults: Iterable[Fault] = (),
    pods: PodSpec | None = None,
    **setting: object,
) -> World:
    """Return a world that begins at T0."""
    chosen = Setting(pods=pods or exact_pods(load), first=first, begin=T0, **setting)  # type: ignore[arg-type]
    return World(chosen, requests, autoscaler=autoscaler, faults=faults)


def a_policy(*, least: int = 1, most: int = 20, interval: str = "15s", **spec: object) -> Policy:
    """Return a policy with nothing but bounds, unless ``spec`` says more."""
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": "chat"},
            "spec": {
                "target": {"kind": "Deployment", "name": "chat"},
                "source": {"pods": {"interval": interval}},
                "replicas": {"min": least, "max": most},
                **spec,
            },
        }
    )


def after(world: World, seconds: float) -> Timestamp:
    """Return the moment ``seconds`` after ``world`` began."""
    return Timestamp(world.begin + seconds)
