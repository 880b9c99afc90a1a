"""The control loop: every interval one snapshot, one decision, remembered, then on the board."""

import logging
import math
import re
from typing import Final

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import SourceError
from adapter.controller.ports import Clock, FleetSource, StateStore, Telemetry
from adapter.fleet.reading import Gap
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import ConditionType, Decision, Hold
from adapter.scaling.duration import clock_time
from adapter.scaling.evaluate import evaluate
from adapter.scaling.spec import ScalingSpec
from adapter.scaling.state import ScalingState

_DURATION: Final = re.compile(r"\b(\d+(\.\d+)? ?(ms|s|m|h|d))+\b")
"""An age within a cause: 31 s is the same cause as 21 s."""

_ON_GRID: Final = 1e-3
"""The share of an interval by which a moment may miss the grid and still be on it."""

_log = logging.getLogger("leadtime")


class Loop:
    """Runs one policy. The simulator runs this same class on virtual time."""

    def __init__(
        self,
        key: PolicyKey,
        spec: ScalingSpec,
        *,
        interval: Seconds,
        source: FleetSource,
        store: StateStore,
        board: Board,
        clock: Clock,
        telemetry: Telemetry,
    ) -> None:
        self._key, self._name, self._spec, self._interval = key, str(key), spec, interval
        self._source, self._store, self._board = source, store, board
        self._clock, self._telemetry = clock, telemetry
        self._told: tuple[object, ...] = ()
        self._saved = True

    async def run(self, *, offset: Seconds | None = None) -> None:
        """Tick until cancelled, on a fixed grid: a slow tick skips moments, it shifts none.

        The first tick is at once. The grid goes on from there, or, with an ``offset``, stands
        that far from the whole multiples of the interval, so that loops that start together
        do not tick together for ever.
        """
        moment = self._clock.now()
        while True:
            await self.tick(moment)
            moment = await self._next(moment, self._step(moment, offset))

    async def tick(self, at: Timestamp) -> Decision:
        """Observe, decide, remember, post: in that order, so a posted decision is never lost."""
        began = self._clock.now()
        fleet = await self._source.snapshot(at)
        decision, state = evaluate(self._spec, fleet, await self._store.load(self._name))
        await self._save(state)
        ended = self._clock.now()
        self._board.post(self._key, decision, ended)
        self._tell(fleet, decision, Seconds(max(0.0, ended - began)))
        return decision

    def _step(self, last: Timestamp, offset: Seconds | None) -> Seconds:
        """Return how long after ``last`` the next tick is: one interval, or less to join the grid.

        Never less than half an interval: two readings that are close tell no rate.
        """
        left = 0.0 if offset is None else (offset - last) % self._interval
        if min(left, self._interval - left) < _ON_GRID * self._interval:
            return self._interval
        return Seconds(left if 2 * left >= self._interval else (left + self._interval) / 2)

    async def _next(self, last: Timestamp, step: Seconds) -> Timestamp:
        """Wait for the next moment of the grid; where the clock was set, the grid starts anew."""
        now = self._clock.now()
        passed = math.floor((now - last) / step)
        start, steps = (last, passed + 1) if passed >= -1 else (now, 1)
        moment = Timestamp(start + max(1, steps) * step)
        await self._clock.sleep_until(moment)
        woken = self._clock.now()
        return moment if abs(woken - moment) < self._interval else woken

    async def _save(self, state: ScalingState) -> None:
        """Store ``state``; where that fails it lives on in this process, and the log says so."""
        try:
            await self._store.save(self._name, state)
        except SourceError as error:
            self._telemetry.unsaved(self._name)
            if self._saved:
                _log.error("policy=%s state=unsaved error=%r", self._name, str(error))
            self._saved = False
        else:
            if not self._saved:
                _log.warning("policy=%s state=saved note='saved again'", self._name)
            self._saved = True

    def _tell(self, fleet: FleetSnapshot, decision: Decision, took: Seconds) -> None:
        """Count the tick, and log it if it decided, or rests on, something else than the last."""
        for replica in fleet.replicas:
            if isinstance(replica.sample, Gap):
                self._telemetry.gap(self._name, replica.sample.cause)
        self._telemetry.ticked(self._name, took)
        told = (
            decision.published,
            decision.desired,
            decision.refusal is not None,
            tuple(hold.reason for hold in decision.holds),
            _cause(decision),
        )
        if told != self._told:
            self._told = told
            level = logging.WARNING if decision.refusal or decision.held else logging.INFO
            _log.log(level, "%s", _line(self._name, decision))


def _cause(decision: Decision) -> str:
    """Return why the data is missing, without what only grows older; empty while it is not."""
    for condition in decision.conditions:
        if condition.type is ConditionType.METRICS_AVAILABLE and not condition.status:
            return _DURATION.sub("", condition.message)
    return ""


def _line(policy: str, decision: Decision) -> str:
    """Return the decision as key=value, each clause once.

    What is refused has no count that could be mistaken for one that is served.
    """
    counts = decision.census
    refusal = decision.refusal
    served = f"published={decision.published}" if refusal is None else f"refused={refusal!r}"
    said = refusal is not None or decision.because in {hold.because for hold in decision.holds}
    because = "" if said else f" because={decision.because!r}"
    holds = repr("; ".join(map(_hold, decision.holds))) if decision.holds else "none"
    return (
        f"policy={policy} {served} desired={decision.desired} "
        f"serving={counts.serving} loading={counts.loading} silent={counts.silent} "
        f"holds={holds}{because}"
    )


def _hold(hold: Hold) -> str:
    end = "" if hold.until is None else f" until {clock_time(hold.until)}"
    return f"{hold.reason}{end}: {hold.because}"
