"""Missing data is never a number: hold the last good count, loudly, then refuse."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adapter.fleet.reading import Cause, Gap
from adapter.fleet.snapshot import WARMING_SECONDS, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Hold, HoldReason, Stage, Step
from adapter.scaling.demand import Demand
from adapter.scaling.duration import clock_time, format_duration
from adapter.scaling.state import ScalingState
from adapter.scaling.view import View
from adapter.scaling.work import Lack


@dataclass(frozen=True, slots=True)
class Outage:
    """Nobody can tell the demand."""

    lack: Lack
    detail: str
    good_at: Timestamp | None
    """When somebody last could; None: never since the memory began."""

    until: Timestamp
    """Until when the last good count is served."""


def outage_of(
    demands: Sequence[Demand], view: View, state: ScalingState, *, stale_after: Seconds
) -> Outage | None:
    """Return the outage, or None while the signals that must tell do tell.

    Where none must, because the policy has only such as raise, any replica that answers will do.
    Named after the commonest cause among the silent replicas, with the words of the first one
    that has it: one broken pod must not hide that the whole fleet times out.

    While a replica answers and warms, the hold lasts until it counts, whatever the limit: that is
    a minute at the most, and an engine that is there is no reason for an error.
    """
    told = any(demand.replicas is not None for demand in demands)
    answered = told or any(replica.reading is not None for replica in view.serving)
    if answered and not any(demand.blocks_down for demand in demands):
        return None
    said = [silence for _, silence in view.silent]
    commonest = Counter(silence.lack for silence in said).most_common(1)
    if commonest:
        lack = commonest[0][0]
        first = next(silence for silence in said if silence.lack is lack)
        detail = f"{commonest[0][1]} of {len(view.serving)} serving replicas: {first.detail}"
    else:
        lack, detail = Lack.MISSING, _nobody_serves(view)
    good_at = state.good_at
    until = view.at if good_at is None else Timestamp(good_at + stale_after)
    warming = sorted((ends, began, name) for name, began, ends in _warming(view))
    if warming:
        ends, began, name = warming[0]
        until = max(until, warming[-1][0])
        detail += (
            f"; {name} answers since {clock_time(began)}: "
            f"it counts as serving after its first token, or at {clock_time(ends)}"
        )
    return Outage(lack, detail, good_at, until)


def _warming(view: View) -> Iterator[tuple[str, Timestamp, Timestamp]]:
    """Yield who answers before its first token: its name, since when, and when it counts."""
    for replica in view.coming:
        since = replica.since
        if replica.phase is Phase.WARMING and replica.reading is not None and since is not None:
            yield replica.name, since, Timestamp(since + WARMING_SECONDS)


def _nobody_serves(view: View) -> str:
    """Return who is on the way, with what most of them answer instead of metrics.

    A replica behind a wrong address, or of another model, looks like one that loads for ever.
    """
    if not view.coming:
        return "no replica of the target serves"
    gaps = [r.sample for r in view.coming if isinstance(r.sample, Gap)]
    asked = [gap for gap in gaps if gap.cause is not Cause.NOT_SCRAPED]
    commonest = Counter(gap.cause for gap in asked).most_common(1)
    said = ""
    if commonest:
        cause, count = commonest[0]
        said = f"; {count} of them: {next(gap.detail for gap in asked if gap.cause is cause)}"
    their = "its" if len(view.coming) == 1 else "their"
    return f"no replica of the target serves, {len(view.coming)} on {their} way{said}"


def through_outage(
    outage: Outage | None, demands: Sequence[Demand], need: int, *, base: int
) -> Step:
    """Return the need; in an outage the last good count, which other signals may only raise."""
    if outage is None:
        return Step(Stage.GAPS, need, need, "the signals that must tell do tell")
    told = any(demand.replicas is not None for demand in demands)
    held = max(need, base) if told else base
    return Step(Stage.GAPS, need, held, f"{outage.lack}: {outage.detail}")


def outage_holds(outage: Outage, refusal: str | None) -> tuple[Hold, ...]:
    """Return the hold of the last good count; none once it is refused, which is its end."""
    if refusal is not None:
        return ()
    return (Hold(HoldReason.METRICS_GAP, outage.until, f"{outage.lack}: {outage.detail}"),)


def recovering(state: ScalingState, at: Timestamp, *, delay: Seconds) -> Hold | None:
    """Return the hold after a gap: a whole delay of good data before anything goes down."""
    if state.gap_ended_at is None or at - state.gap_ended_at >= delay:
        return None
    until = Timestamp(state.gap_ended_at + delay)
    left = format_duration(round(until - at))
    return Hold(HoldReason.AFTER_GAP, until, f"data came back; {left} left of a whole delay")


def refusal_of(
    outage: Outage | None, demands: Sequence[Demand], at: Timestamp, *, stale_after: Seconds
) -> str | None:
    """Return why there is no count worth serving, or None."""
    if not demands:
        return "no signal is on: set signals.queue (or kvCache, ttft) in the policy"
    if all(demand.unserved for demand in demands):
        said = "; ".join(f"{demand.signal}: {demand.because}" for demand in demands)
        return f"no configured signal is served: {said}; turn on one that the engine exports"
    if outage is None:
        return None
    if outage.good_at is None:
        return f"no data yet: {outage.detail}"
    if at <= outage.until:
        return None
    age = at - outage.good_at
    return (
        f"stale: last sample {age:.0f} s old, spec.staleAfter is {format_duration(stale_after)}; "
        f"{outage.detail}"
    )
