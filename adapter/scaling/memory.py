"""What one decision leaves to the next: gaps, work seen, what a replica was found to carry."""

from collections.abc import Mapping
from dataclasses import replace

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.capacity import learned_in_flight
from adapter.scaling.progress import Judged
from adapter.scaling.signals import Signals
from adapter.scaling.state import ScalingState, Sustained
from adapter.scaling.sustained import EXCUSED, replicas_for
from adapter.scaling.sustained import learned as sustained_after
from adapter.scaling.view import View


def noted(state: ScalingState, at: Timestamp, *, good: bool, stale_after: Seconds) -> ScalingState:
    """Return ``state`` knowing whether this tick's data is good, and of gaps that begin or end.

    Ticks that never came are a gap like any other, once they are longer than ``stale_after``.
    """
    if not good:
        began = at if state.gap_began_at is None else state.gap_began_at
        return replace(state, gap_began_at=began)
    missed = state.good_at is not None and at - state.good_at > stale_after
    ended = state.gap_began_at is not None or missed
    return replace(
        state,
        good_at=at,
        gap_began_at=None,
        gap_ended_at=at if ended else state.gap_ended_at,
        started_at=at if state.published is None else state.started_at,
    )


def learned(state: ScalingState, view: View, judged: Judged, signals: Signals) -> ScalingState:
    """Return ``state`` with what this tick taught; bounded by the windows that read it."""
    ttft = signals.ttft
    window = Seconds(0.0) if ttft is None else ttft.window
    version = _one_version(view)
    if version is not None and version != state.learned_on:
        state = replace(state, sustained={}, learned_on=version)
        view = replace(view, slices=())
    beyond = view.at if _asked_beyond(view, signals) else state.asked_beyond_at
    return replace(
        state,
        progress=judged.progress,
        rates=view.rates,
        ttft=tuple(p for p in view.first_tokens if 0 <= view.at - p.at < window),
        work=view.slices,
        sustained=_sustained(state, view, beyond) if ttft is not None else state.sustained,
        asked_beyond_at=beyond,
        in_flight_peak=learned_in_flight(state.in_flight_peak, view, ttft=ttft),
    )


def _one_version(view: View) -> str | None:
    """Return the version that serves; None while there are several, or none.

    What two versions do together is neither's; what another one carried is not this one's.
    """
    versions = {replica.version for replica in view.serving}
    return versions.pop() if len(versions) == 1 else None


def _sustained(
    state: ScalingState, view: View, beyond: Timestamp | None
) -> Mapping[int, Sustained]:
    """Return the rates after this tick; only a fleet that is wholly heard and even teaches."""
    point = view.rates[-1] if view.rates else None
    if point is None or point.at != view.at or view.silent or _one_version(view) is None:
        return state.sustained
    past = beyond is not None and view.at - beyond < EXCUSED
    return sustained_after(
        state.sustained,
        view.slices,
        at=view.at,
        seconds=Seconds(point.seconds),
        serving=len(view.serving),
        excused=past or view.surplus > 0,
    )


def _asked_beyond(view: View, signals: Signals) -> bool:
    """Return whether more arrives than the serving replicas are planned with."""
    if view.arrivals is None or signals.queue is None:
        return False
    need = replicas_for(view.arrivals.rate, view.sustained, signals.queue.headroom)
    return need is not None and need > len(view.serving)
