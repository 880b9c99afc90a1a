"""Golden cases: ticks in, decisions out, as JSON that a person reads.

``python -m tests.scaling.golden_cases`` writes the decisions anew; read the diff before you
commit it, for it is what operators will see.
"""

import json
from pathlib import Path
from typing import Any

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Decision
from adapter.scaling.evaluate import evaluate
from adapter.scaling.spec import ScalingSpec
from adapter.scaling.state import ScalingState
from tests.build import T0, a_fleet, a_gap, a_histogram, a_reading, a_replica

FOLDER = Path(__file__).parent / "golden"

Case = dict[str, Any]


def cases() -> list[Path]:
    """Return every case, in order of its name."""
    return sorted(FOLDER.glob("*.json"))


def decided(case: Case) -> list[Case]:
    """Return what is decided at each tick of ``case``."""
    spec = ScalingSpec.model_validate(case["spec"])
    state = _memory(case.get("memory", {}))
    latest: dict[str, Reading] = {}
    told = []
    for tick in case["ticks"]:
        fleet = _fleet(tick, latest)
        decision, state = evaluate(spec, fleet, state)
        told.append(_shown(decision))
    return told


def _memory(given: Case) -> ScalingState:
    """Return a memory whose moments are given in seconds before the first tick."""
    wanted = [(Timestamp(T0 - ago), count) for ago, count in given.get("wanted", [])]
    good = given.get("goodSecondsAgo")
    return ScalingState(
        published=given.get("published"),
        good_at=None if good is None else Timestamp(T0 - good),
        recommendations=tuple(wanted),
        in_flight_peak=given.get("inFlightPeak"),
    )


def _fleet(tick: Case, latest: dict[str, Reading]) -> FleetSnapshot:
    at = T0 + tick["seconds"]
    replicas = [
        _replica(f"{group['name']}{number}", group, at, latest)
        for group in tick["replicas"]
        for number in range(group.get("count", 1))
    ]
    facts = {k: v for k, v in tick.items() if k not in {"seconds", "replicas"}}
    return a_fleet(*replicas, at=at, **facts)


def _replica(uid: str, group: Case, at: float, latest: dict[str, Reading]) -> Replica:
    phase = Phase(group.get("phase", "serving"))
    since = at - group.get("forSeconds", 3600)
    if "silent" in group:
        latest.pop(uid, None)
        return a_replica(uid, phase=phase, since=since, sample=a_gap(Cause(group["silent"]), at=at))
    counters = {Metric(name): value for name, value in group.get("counters", {}).items()}
    ttft = a_histogram(group["firstTokens"]) if "firstTokens" in group else None
    reading = a_reading(
        at=at,
        running=group.get("running", 0),
        waiting=group.get("waiting", 0),
        kv=group.get("kv", 0.0),
        ttft=ttft,
        more=counters,
        missing=group.get("missing"),
    )
    previous = latest.get(uid)
    latest[uid] = reading
    return a_replica(uid, phase=phase, since=since, sample=reading, previous=previous)


def _shown(decision: Decision) -> Case:
    """Return a decision in the words of ``explain``, with moments in seconds of the case."""
    return {
        "seconds": decision.at - T0,
        "desired": decision.desired,
        "published": decision.published,
        **({"refusal": decision.refusal} if decision.refusal else {}),
        "demands": {d.signal: f"{_number(d.replicas)}: {d.because}" for d in decision.demands},
        "steps": {
            step.stage: f"{step.before} → {step.after}: {step.because}" for step in decision.steps
        },
        "holds": {
            hold.reason: f"until {_number(hold.until and hold.until - T0)} s: {hold.because}"
            for hold in decision.holds
        },
        "conditions": {
            condition.type: f"{condition.status} ({condition.reason}): {condition.message}"
            for condition in decision.conditions
            if condition.reason not in _USUAL
        },
    }


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


_USUAL = {"None", "Complete", "Decided", "Served", "DesiredWithinRange"}


def write(path: Path) -> None:
    """Play the case in ``path`` and put its decisions there."""
    case = json.loads(path.read_text(encoding="utf-8"))
    case["decisions"] = decided(case)
    path.write_text(json.dumps(case, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for found in cases():
        write(found)
