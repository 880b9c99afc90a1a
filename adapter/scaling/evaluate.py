"""The decision on one page: from a spec, a snapshot and the memory to a replica count."""

from dataclasses import replace

from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Timestamp
from adapter.scaling.brakes import brakes_on
from adapter.scaling.combine import combine
from adapter.scaling.conditions import conditions, off_condition
from adapter.scaling.decision import Census, Decision, Stage, Step
from adapter.scaling.gaps import outage_holds, outage_of, refusal_of, through_outage
from adapter.scaling.limits import limit
from adapter.scaling.load_time import lead_time
from adapter.scaling.memory import learned, noted
from adapter.scaling.progress import judge
from adapter.scaling.signals.queue import target_in_flight
from adapter.scaling.spec import Mode, ScalingSpec
from adapter.scaling.stabilize import delay_of, remembered, stabilize
from adapter.scaling.standby import with_standby
from adapter.scaling.state import ScalingState, not_ahead_of
from adapter.scaling.supply import census, shortage, standing, with_replacements
from adapter.scaling.view import look


def evaluate(
    spec: ScalingSpec, fleet: FleetSnapshot, state: ScalingState
) -> tuple[Decision, ScalingState]:
    """Decide the replica count of ``fleet`` at ``fleet.at``.

    Returns the decision and the memory to pass to the next call. Never raises for bad data: what
    nobody can tell is held at the last good count, and refused after ``spec.stale_after``. The
    same input gives the same output to the byte.
    """
    if spec.mode is Mode.OFF:
        return _off(spec, fleet, state), state
    state = not_ahead_of(state, fleet.at)
    lead = lead_time(spec.load_time, fleet)
    delay = delay_of(spec.scale_down, lead)
    judged = judge(fleet, state.progress)
    target = target_in_flight(spec.signals.queue, state.in_flight_peak)
    view = look(judged, state, lead=lead, target=target)
    demands = spec.signals.demands(view)
    outage = outage_of(demands, view, state, stale_after=spec.stale_after)
    refusal = refusal_of(outage, demands, fleet.at, stale_after=spec.stale_after)
    good = outage is None and refusal is None
    base = _base(spec, fleet, state, served=refusal is None)
    state = noted(state, fleet.at, good=good, stale_after=spec.stale_after)

    combined = combine(demands, view, base=base)
    spare = with_standby(spec.standby, combined.after)
    replaced = with_replacements(spare.after, view)
    bridged = through_outage(outage, demands, replaced.after, base=base)
    wanted = remembered(state.recommendations, (fleet.at, bridged.after), delay=delay)
    brakes = brakes_on(fleet, view, state, base=base, need=spare.after, delay=delay)
    steady = stabilize(spec.scale_down, wanted, brakes)
    short = shortage(fleet, view)
    limited = limit(
        spec.replicas, spec.scale_up, steady.step.after, base=base, live=view.live, shortage=short
    )
    desired = limited.step.after
    published = _published(spec.mode, desired, base=base)
    decision = Decision(
        at=fleet.at,
        desired=desired,
        published=published.after,
        refusal=refusal,
        valid_until=Timestamp(fleet.at + spec.stale_after),
        demands=demands,
        steps=(combined, spare, replaced, bridged, steady.step, limited.step, published),
        holds=steady.holds if outage is None else outage_holds(outage, refusal),
        conditions=conditions(
            fleet, view, demands, outage=outage, refusal=refusal, limited=limited, shortage=short
        ),
        census=census(view),
        standby=max(0, desired - combined.after),
        lead_time=lead,
        data_at=state.good_at,
    )
    state = learned(state, view, judged, ttft=spec.signals.ttft)
    return decision, replace(
        state,
        published=published.after if refusal is None else state.published,
        recommendations=wanted if outage is None else state.recommendations,
        busy_since=steady.busy_since,
    )


def _base(spec: ScalingSpec, fleet: FleetSnapshot, state: ScalingState, *, served: bool) -> int:
    """Return the count to go on from: the published one, or what runs where nobody knows better.

    Advisory mode publishes what runs. Memory older than the staleness limit was refused on the
    wire meanwhile, so others may have set a larger count since.
    """
    runs = standing(fleet)
    count = runs if state.published is None or spec.mode is Mode.ADVISORY else state.published
    outdated = state.good_at is None or fleet.at - state.good_at > spec.stale_after
    if served and outdated:
        count = max(count, runs)
    return min(spec.replicas.max, max(spec.replicas.min, count))


def _published(mode: Mode, desired: int, *, base: int) -> Step:
    if mode is Mode.ADVISORY:
        return Step(Stage.PUBLISH, desired, base, f"advisory: {base} is what runs")
    return Step(Stage.PUBLISH, desired, desired, "active: what is wanted")


def _off(spec: ScalingSpec, fleet: FleetSnapshot, state: ScalingState) -> Decision:
    """Return the decision of a policy that is off: what runs, and a refusal to serve it."""
    count = _base(spec, fleet, state, served=False)
    return Decision(
        at=fleet.at,
        desired=count,
        published=count,
        refusal="mode is off: nothing is computed; set spec.mode to active or advisory",
        valid_until=Timestamp(fleet.at + spec.stale_after),
        demands=(),
        steps=(),
        holds=(),
        conditions=(off_condition(),),
        census=Census(),
        standby=0,
        lead_time=lead_time(spec.load_time, fleet),
    )
