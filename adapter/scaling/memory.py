"""What one decision leaves to the next: gaps, work seen, what a replica was found to carry."""

from dataclasses import replace

from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.capacity import learned_in_flight
from adapter.scaling.carried import learned_carried
from adapter.scaling.progress import Judged
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.state import ScalingState
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


def learned(
    state: ScalingState, view: View, judged: Judged, *, ttft: TtftSection | None
) -> ScalingState:
    """Return ``state`` with what this tick taught; bounded by the windows that read it."""
    window = Seconds(0.0) if ttft is None else ttft.window
    return replace(
        state,
        progress=judged.progress,
        rates=view.rates,
        ttft=tuple(p for p in view.first_tokens if 0 <= view.at - p.at < window),
        in_flight_peak=learned_in_flight(state.in_flight_peak, view, ttft=ttft),
        carried=learned_carried(state.carried, view, ttft=ttft),
    )
