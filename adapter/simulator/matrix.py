"""The matrix of the scaling benchmark: one cell is one policy on one load, judged and priced.

Every policy of a course gets the same requests, router, load times, first replicas and bounds.
Source: evaluation sections 4.3 and 7.
"""

import math
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.simulator.autoscaler import product, rival, static
from adapter.simulator.bound import Task, bound
from adapter.simulator.deployment import PodSpec
from adapter.simulator.presets import EnginePreset, preset
from adapter.simulator.rivals import rivals
from adapter.simulator.rivals.port import Calibration
from adapter.simulator.rivals.static import best_static, static_p100
from adapter.simulator.saturation import GOOD, calibrate, saturated, work_of
from adapter.simulator.score import Objective, Score
from adapter.simulator.starts import LoadTimes
from adapter.simulator.stretches import Hours, Stretch, stretch
from adapter.simulator.synthetic import Deck
from adapter.simulator.world import Autoscaler, Setting, World

OURS: Final = "leadtime"
STATIC_BEST: Final = "static-best"
STATIC_P100: Final = "static-p100"

_SLOT: Final = Seconds(60.0)
_HOUR: Final = 3600.0
_ROOM: Final = 3
"""Replicas allowed, as a multiple of those that the peak saturates: a wild rule ends there."""

_EASY: Final = 0.7
"""How busy the replicas are that everybody begins with."""

_LONG: Final = 0.99
"""The quantile of the prompts whose promise is the slack of all: the bound may be too low only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What every policy of a comparison is put through."""

    trace: str
    engine: str
    load_time: Seconds
    """Mean; drawn around it, with stragglers."""

    fleet: int
    """Saturated replicas that the peak of the curve keeps busy."""

    seed: int
    hours: Hours


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy on one course."""

    course: Course
    policy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a cell; hours are replica-hours, starting and draining included."""

    attainment: float
    paid_hours: float
    bound_hours: float
    starts: int
    ttft_p99: Seconds | None
    """None: nobody was served."""

    @property
    def ratio(self) -> float:
        """Return how many times the bound was paid."""
        return self.paid_hours / self.bound_hours

    @property
    def good(self) -> bool:
        """Return whether the objective was met."""
        return self.attainment >= GOOD

    @property
    def impossible(self) -> bool:
        """Return whether it met the objective below the bound: a fault of bound or benchmark."""
        return self.good and self.paid_hours < self.bound_hours


@cache
def policies() -> tuple[str, ...]:
    """Return every policy's name: ours, the constants in hindsight, and every rival."""
    nominal = Calibration(
        kv_tokens=1,
        prefill_tokens_per_second=1.0,
        requests_per_second=1.0,
        batched_tokens=1,
        sequences=1,
    )
    return (OURS, STATIC_BEST, STATIC_P100, *(rule.name for rule in rivals(nominal)))


def run(cell: Cell) -> Outcome:
    """Play one cell.

    Raises:
        TraceError: the trace is not there.
        KeyError: no such engine or policy.
    """
    track = _track(cell.course)
    match cell.policy:
        case "static-best":
            score = track.best_static()
        case "static-p100":
            score = track.constant(static_p100(track.task).replicas)
        case _:
            score = track.play(track.autoscaler(cell.policy), first=track.first)
    return Outcome(
        attainment=score.attainment,
        paid_hours=score.paid_hours,
        bound_hours=track.bound_hours,
        starts=score.starts,
        ttft_p99=None if math.isnan(score.ttft_p99) else score.ttft_p99,
    )


@lru_cache(maxsize=1)
def _track(course: Course) -> "_Track":
    return _Track.of(course)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Track:
    """A course laid out: its load scaled, its bound computed, and its engine measured."""

    course: Course
    engine: EnginePreset
    stretch: Stretch
    factor: float
    """By which the load is scaled."""

    first: int
    """Replicas that everybody begins with, but for the constants."""

    most: int
    task: Task
    bound_hours: float
    calibration: Calibration

    @classmethod
    def of(cls, course: Course) -> "_Track":
        engine, load = preset(course.engine), stretch(course.trace, course.hours)
        before, after = (load.decks.deck(at) for at in (load.since, load.since + load.length))
        work = work_of(engine)
        mean = math.fsum(work(*card) for card in before) / len(before)
        full = max(saturated(engine, before), saturated(engine, after))
        factor, most = course.fleet * full / mean / load.peak, _ROOM * course.fleet
        begun = factor * load.rates.rate(load.since) * mean / full
        task = Task(
            work=_work(engine, load, factor, seed=course.seed),
            capacity=tuple(replicas * full for replicas in range(most + 1)),
            slot=_SLOT,
            load_time=course.load_time,
            slack=_slack(engine, after),
            running=most,  # who begins with how many, and when they started, is not judged
        )
        return cls(
            course=course,
            engine=engine,
            stretch=load,
            factor=factor,
            first=max(1, min(most, math.ceil(begun / _EASY))),
            most=most,
            task=task,
            bound_hours=bound(task, missed_share=1 - GOOD).paid / _HOUR,
            calibration=calibrate(engine, before),
        )

    def autoscaler(self, name: str) -> Autoscaler:
        """Return who plays under that name."""
        ours = _our_policy(self.most)
        if name == OURS:
            return product(ours)
        for rule in rivals(self.calibration):
            if rule.name == name:
                return rival(rule, bounds=(1, self.most), stale_after=ours.spec.stale_after)
        raise KeyError(f"no policy {name!r}; there are {', '.join(policies())}")

    def play(self, autoscaler: Autoscaler, *, first: int) -> Score:
        """Return what came of one run."""
        course, load = self.course, self.stretch
        starts = LoadTimes(course.load_time, seed=course.seed)
        setting = Setting(
            pods=PodSpec(preset=self.engine, load_times=starts),
            first=first,
            begin=load.begin,
            scored_after=load.warm_up,
            seed=course.seed,
        )
        requests = load.play(self.factor, seed=course.seed).arrivals()
        world = World(setting, requests, autoscaler=autoscaler)
        world.play(Timestamp(load.begin + load.length))
        return world.score()

    def constant(self, replicas: int) -> Score:
        """Return what came of so many replicas all the time."""
        return self.play(static, first=replicas)

    def best_static(self) -> Score:
        """Return the run of the fewest constant replicas that met the objective.

        The search begins at the fluid answer; at the most replicas allowed it gives up.
        """
        count = best_static(self.task, missed_share=1 - GOOD).replicas
        score = self.constant(count)
        while score.attainment < GOOD and count < self.most:
            count += 1
            score = self.constant(count)
        return score


def _work(engine: EnginePreset, load: Stretch, factor: float, *, seed: int) -> tuple[float, ...]:
    """Return the engine-seconds per second that arrive in each judged minute."""
    work = work_of(engine)
    minutes = [0.0] * math.ceil(load.judged / _SLOT)
    for one in load.play(factor, seed=seed).arrivals():
        tokens = one.prompt_tokens + one.output_tokens
        if one.after >= load.warm_up and tokens <= engine.admissible_tokens:
            minute = int((one.after - load.warm_up) // _SLOT)
            minutes[minute] += work(one.prompt_tokens, one.output_tokens)
    return tuple(minute / _SLOT for minute in minutes)


def _slack(engine: EnginePreset, deck: Deck) -> Seconds:
    """Return how late a long prompt may have its first token."""
    promise = Objective()
    prompts = sorted(prompt for prompt, _ in deck)
    alone = engine.isolated_prefill_seconds(prompts[int(_LONG * len(prompts))])
    return Seconds(promise.ttft + promise.prefills * alone)


def _our_policy(most: int) -> Policy:
    """Return a policy that says nothing but its bounds: everything else is the default."""
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": "bench"},
            "spec": {
                "target": {"kind": "Deployment", "name": "bench"},
                "source": {"pods": {}},
                "replicas": {"min": 1, "max": most},
            },
        }
    )
