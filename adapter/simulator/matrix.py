"""The matrix of the scaling benchmark: one cell is one policy on one load, judged and priced.

Every policy of a course gets the same requests, router, load times, first replicas and bounds.
Source: evaluation sections 4.3 and 7.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.ablations import ABLATIONS, OURS, policy_named
from adapter.simulator.autoscaler import product, rival, static
from adapter.simulator.bound import Task, bound
from adapter.simulator.deployment import PodSpec
from adapter.simulator.presets import EnginePreset, preset
from adapter.simulator.rivals import rivals
from adapter.simulator.rivals.in_flight import InFlightHpa
from adapter.simulator.rivals.port import Calibration
from adapter.simulator.rivals.static import best_static, static_p100
from adapter.simulator.saturation import GOOD, calibrate, saturated, work_of
from adapter.simulator.score import Objective, Score
from adapter.simulator.starts import LoadTimes
from adapter.simulator.stretches import Hours, Stretch, stretch
from adapter.simulator.synthetic import Deck
from adapter.simulator.trials import trial
from adapter.simulator.world import Autoscaler, Fault, Setting, World

STATIC_BEST: Final = "static-best"
STATIC_P100: Final = "static-p100"
TUNED: Final = "hpa-in-flight-tuned"

GRID: Final = (5.0, 8.0, 12.0, 16.0, 20.0, 30.0)
"""Targets in flight among which the tuned HPA's is chosen."""

_TUNING: Final = 1.0
"""Hours before the judged ones that a target is chosen on, where the warm-up is shorter."""

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
    fault: str | None = None
    """By its name in ``trials``; None: nothing goes wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a cell; hours are replica-hours, starting and draining included."""

    attainment: float
    paid_hours: float
    bound_hours: float
    worst_window: float
    """The attainment of the worst ten minutes, by arrival."""

    starts: int
    ttft_p99: Seconds | None
    """None: nobody was served."""

    tuned_to: float | None = None
    """The target in flight that was chosen beforehand; None: nothing is tuned."""

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
    """Return every policy's name: ours, the constants in hindsight, and every rival.

    Ablations of ours are known beside these, and played only when asked for.
    """
    nominal = Calibration(
        kv_tokens=1,
        prefill_tokens_per_second=1.0,
        requests_per_second=1.0,
        batched_tokens=1,
        sequences=1,
    )
    return (OURS, STATIC_BEST, STATIC_P100, TUNED, *(rule.name for rule in rivals(nominal)))


def run(cell: Cell) -> Outcome:
    """Play one cell.

    Raises:
        TraceError: the trace is not there.
        KeyError: no such engine, policy or fault.
    """
    track = _track(cell.course)
    tuned_to = tuned_target(cell.course) if cell.policy == TUNED else None
    match cell.policy:
        case "static-best":
            score = track.best_static(cell.fault)
        case "static-p100":
            score = track.constant(static_p100(track.task).replicas, cell.fault)
        case _:
            player, first = track.autoscaler(cell.policy, tuned_to), track.first(track.stretch)
            score = track.play(player, first=first, fault=cell.fault)
    return Outcome(
        attainment=score.attainment,
        paid_hours=score.paid_hours,
        bound_hours=track.bound_hours,
        worst_window=score.worst_window,
        starts=score.starts,
        ttft_p99=None if math.isnan(score.ttft_p99) else score.ttft_p99,
        tuned_to=tuned_to,
    )


@lru_cache(maxsize=1)
def tuned_target(course: Course) -> float:
    """Return the target of the grid that an operator would choose before the judged hours."""
    track = _track(course)
    return cheapest_good({target: track.rehearse(target) for target in GRID})


def cheapest_good(trials: Mapping[float, Score]) -> float:
    """Return the cheapest target that met the objective; the lowest when none did."""
    good = [target for target, score in trials.items() if score.attainment >= GOOD]
    return min(good, key=lambda target: (trials[target].paid_hours, target), default=min(trials))


def before(hours: Hours) -> Hours:
    """Return what a rule may be tuned on: the warm-up, or an hour where the load has one."""
    judged = hours.since + hours.warm_up
    length = min(judged, max(hours.warm_up, _TUNING))
    return Hours(since=judged - length, warm_up=0.0, judged=length)


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

    share: float
    """Of a saturated replica, kept busy by what was one request per second before the scaling."""

    most: int
    task: Task
    bound_hours: float
    calibration: Calibration

    @classmethod
    def of(cls, course: Course) -> "_Track":
        engine, load = preset(course.engine), stretch(course.trace, course.hours)
        earlier, later = (load.decks.deck(at) for at in (load.since, load.since + load.length))
        work = work_of(engine)
        mean = math.fsum(work(*card) for card in earlier) / len(earlier)
        full = max(saturated(engine, earlier), saturated(engine, later))
        factor, most = course.fleet * full / mean / load.peak, _ROOM * course.fleet
        share = factor * mean / full
        task = Task(
            work=_work(engine, load, factor, seed=course.seed),
            capacity=tuple(replicas * full for replicas in range(most + 1)),
            slot=_SLOT,
            load_time=course.load_time,
            slack=_slack(engine, later),
            running=most,  # who begins with how many, and when they started, is not judged
        )
        return cls(
            course=course,
            engine=engine,
            stretch=load,
            factor=factor,
            share=share,
            most=most,
            task=task,
            bound_hours=bound(task, missed_share=1 - GOOD).paid / _HOUR,
            calibration=calibrate(engine, earlier),
        )

    def first(self, load: Stretch) -> int:
        """Return the replicas that everybody begins ``load`` with, but for the constants."""
        busy = self.share * load.rates.rate(load.since)
        return max(1, min(self.most, math.ceil(busy / _EASY)))

    def autoscaler(self, name: str, tuned_to: float | None = None) -> Autoscaler:
        """Return who plays under that name."""
        if name == OURS or name in ABLATIONS:
            return product(policy_named(name, most=self.most))
        rules = rivals(self.calibration)
        if tuned_to is not None:
            rules = (InFlightHpa(tuned_to, name=TUNED), *rules)
        for rule in rules:
            if rule.name == name:
                ours = policy_named(OURS, most=self.most)
                return rival(rule, bounds=(1, self.most), stale_after=ours.spec.stale_after)
        raise KeyError(f"no policy {name!r}; there are {', '.join((*policies(), *ABLATIONS))}")

    def play(self, autoscaler: Autoscaler, *, first: int, fault: str | None = None) -> Score:
        """Return what came of one run."""
        load = self.stretch
        wrong = () if fault is None else (trial(fault, warm_up=load.warm_up, judged=load.judged),)
        return self._play(load, autoscaler, first=first, faults=wrong)

    def rehearse(self, target: float) -> Score:
        """Return what an in-flight HPA with that target makes of the time before the judged."""
        load = stretch(self.course.trace, before(self.course.hours))
        return self._play(load, self.autoscaler(TUNED, target), first=self.first(load))

    def _play(
        self, load: Stretch, autoscaler: Autoscaler, *, first: int, faults: Sequence[Fault] = ()
    ) -> Score:
        course = self.course
        starts = LoadTimes(course.load_time, seed=course.seed)
        setting = Setting(
            pods=PodSpec(preset=self.engine, load_times=starts),
            first=first,
            begin=load.begin,
            scored_after=load.warm_up,
            seed=course.seed,
        )
        requests = load.play(self.factor, seed=course.seed).arrivals()
        world = World(setting, requests, autoscaler=autoscaler, faults=faults)
        world.play(Timestamp(load.begin + load.length))
        return world.score()

    def constant(self, replicas: int, fault: str | None = None) -> Score:
        """Return what came of so many replicas all the time."""
        return self.play(static, first=replicas, fault=fault)

    def best_static(self, fault: str | None = None) -> Score:
        """Return the run of the fewest constant replicas that met the objective.

        The search begins at the fluid answer; at the most replicas allowed it gives up. It knows
        the whole load, and of no fault.
        """
        count = best_static(self.task, missed_share=1 - GOOD).replicas
        score = self.constant(count)
        while score.attainment < GOOD and count < self.most:
            count += 1
            score = self.constant(count)
        return score if fault is None else self.constant(count, fault)


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
