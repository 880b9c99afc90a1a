import asyncio
import logging

import pytest

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import SourceError
from adapter.controller.loop import Loop
from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import ScalingState
from tests.build import T0, a_fleet, a_spec, serving, silent
from tests.controller.policies import a_policy
from tests.fakes import FakeClock, FakeSource, FakeStore, FakeTelemetry

KEY = PolicyKey("inference", "chat")
NAME = "inference/chat"


class Running:
    """A loop of ten seconds over fakes."""

    def __init__(self, source: FakeSource, clock: FakeClock | None = None) -> None:
        self.source, self.clock = source, clock or FakeClock()
        self.store, self.board, self.telemetry = FakeStore(), Board(), FakeTelemetry()
        self.board.list_policy(a_policy("chat", namespace="inference"), {})
        self.loop = Loop(
            KEY,
            a_spec(signals={"queue": {"targetInFlight": 8, "headroom": 1.0}}),
            interval=Seconds(10),
            source=source,
            store=self.store,
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
        )

    async def to_the_end(self) -> None:
        with pytest.raises(asyncio.CancelledError):
            await self.loop.run()


def busy(at: float) -> FleetSnapshot:
    return a_fleet(*serving(2, at=at, running=8), at=at)


async def test_a_tick_observes_decides_remembers_and_posts():
    running = Running(FakeSource(busy))

    decision = await running.loop.tick(T0)

    listing = running.board.find(KEY)
    assert running.source.asked == [T0]
    assert decision.at == T0
    assert listing.decision is decision
    assert listing.tick_at == T0
    assert running.store.states[NAME].published == decision.published
    assert running.telemetry.ticks == {NAME: 1}


async def test_the_memory_of_one_tick_is_what_the_next_one_starts_from():
    """Eight replicas were needed a tick ago; two idle ones now do not undo it at once."""
    running = Running(
        FakeSource(
            lambda at: a_fleet(*serving(2, at=at, running=32), at=at),
            lambda at: a_fleet(*serving(2, at=at, running=0), at=at),
        )
    )

    before = await running.loop.tick(T0)
    after = await running.loop.tick(Timestamp(T0 + 10))

    assert before.published >= 8
    assert after.published == before.published


async def test_ticks_stand_on_a_grid_that_a_slow_tick_does_not_shift():
    """The source takes 3 s of each 10 s; the ticks stay 10 s apart."""
    clock = FakeClock(stop_at=T0 + 35)

    def slow(at: Timestamp) -> FleetSnapshot:
        clock.pass_by(3)
        return busy(at)

    running = Running(FakeSource(slow), clock)
    await running.to_the_end()

    assert running.source.asked == [T0, T0 + 10, T0 + 20, T0 + 30]
    assert clock.slept == [7, 7, 7]
    assert running.board.find(KEY).tick_at == T0 + 33


async def test_a_tick_that_overran_skips_moments_and_catches_nothing_up():
    clock = FakeClock(stop_at=T0 + 65)

    def slow_at_first(at: Timestamp) -> FleetSnapshot:
        clock.pass_by(34 if at == T0 else 0)
        return busy(at)

    running = Running(FakeSource(slow_at_first), clock)
    await running.to_the_end()

    assert running.source.asked == [T0, T0 + 40, T0 + 50, T0 + 60]


@pytest.mark.parametrize(
    ("offset", "moments"),
    [
        (7.0, [0, 7, 17, 27]),
        (5.0, [0, 5, 15, 25]),
        (4.0, [0, 7, 14, 24, 34]),
        (0.0, [0, 10, 20, 30]),
        (9.999, [0, 10, 20, 30]),
    ],
)
async def test_loops_that_start_together_part_within_two_ticks(offset: float, moments: list[float]):
    """The second tick is never late, and never so near that two readings would tell no rate."""
    clock = FakeClock(stop_at=T0 + 35)
    running = Running(FakeSource(busy), clock)

    with pytest.raises(asyncio.CancelledError):
        await running.loop.run(offset=Seconds(offset))

    assert [at - T0 for at in running.source.asked] == pytest.approx(moments, abs=1e-3)


async def test_a_loop_that_lost_its_place_returns_to_it():
    """A tick of 12 s skips its moment; the clock is set by 3 s; the grid stands where it stood."""
    clock = FakeClock(stop_at=T0 + 79, jumps={4: 13.0})

    def slow_once(at: Timestamp) -> FleetSnapshot:
        clock.pass_by(12 if at == T0 + 7 else 0)
        return busy(at)

    running = Running(FakeSource(slow_once), clock)
    with pytest.raises(asyncio.CancelledError):
        await running.loop.run(offset=Seconds(7))

    asked = [at - T0 for at in running.source.asked]
    assert asked[:4] == [0, 7, 27, 37]
    assert asked[-2:] == [70, 77]


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_a_clock_set_by_an_hour_neither_spins_nor_stalls_the_loop(jump: float):
    """It is set while the loop sleeps; every wait before and after is one interval."""
    clock = FakeClock(stop_at=T0 + max(jump, 0.0) + 35, jumps={1: jump})

    def three_more(at: Timestamp) -> FleetSnapshot:
        if len(running.source.asked) == 6:
            raise asyncio.CancelledError
        return busy(at)

    running = Running(FakeSource(three_more), clock)
    await running.to_the_end()

    moments = [T0, T0 + 10, T0 + 20 + jump, T0 + 30 + jump, T0 + 40 + jump, T0 + 50 + jump]
    assert running.source.asked == moments[: len(running.source.asked)]
    assert len(running.source.asked) >= 4
    assert set(clock.slept) == {10}


async def test_a_clock_set_back_during_a_tick_does_not_stall_the_loop():
    clock = FakeClock()

    def set_back(at: Timestamp) -> FleetSnapshot:
        if at == T0:
            clock.pass_by(-3600)
        if len(running.source.asked) == 4:
            raise asyncio.CancelledError
        return busy(at)

    running = Running(FakeSource(set_back), clock)
    await running.to_the_end()

    assert running.source.asked == [T0, T0 - 3590, T0 - 3580, T0 - 3570]
    assert running.telemetry.ticks == {NAME: 3}


async def test_a_wake_up_a_hair_early_is_not_ticked_twice():
    """Timers may fire a fraction early against the wall clock."""
    clock = FakeClock(stop_at=T0 + 35, jumps={0: -0.001, 1: -0.001, 2: -0.001})
    running = Running(FakeSource(busy), clock)

    await running.to_the_end()

    assert running.source.asked == [T0, T0 + 10, T0 + 20, T0 + 30]


async def test_a_store_that_fails_is_loud_once_and_stops_nothing(
    caplog: pytest.LogCaptureFixture,
):
    running = Running(FakeSource(busy))
    running.store.broken = True

    first = await running.loop.tick(T0)
    await running.loop.tick(Timestamp(T0 + 10))
    running.store.broken = False
    await running.loop.tick(Timestamp(T0 + 20))
    await running.loop.tick(Timestamp(T0 + 30))

    told = [record for record in caplog.records if "state=" in record.getMessage()]
    assert first.published == running.board.decided(KEY, Timestamp(T0 + 30)).published
    assert running.telemetry.unsaved_ticks == {NAME: 2}
    assert [record.levelno for record in told] == [logging.ERROR, logging.WARNING]
    assert "disk full" in told[0].getMessage()


async def test_a_decision_is_remembered_before_it_is_posted():
    """A posted count that a restart does not know would be undone by it."""
    running = Running(FakeSource(busy))

    class Crashing(FakeStore):
        async def save(self, policy: str, state: ScalingState) -> None:
            raise SystemExit

    running.loop._store = Crashing()
    with pytest.raises(SystemExit):
        await running.loop.tick(T0)

    assert running.board.find(KEY).decision is None


async def test_every_silent_replica_is_counted_by_its_cause():
    fleet = a_fleet(
        *serving(1),
        *silent(2, cause=Cause.TIMEOUT),
        *silent(1, cause=Cause.HTTP_STATUS, prefix="y"),
    )
    running = Running(FakeSource(fleet))

    await running.loop.tick(T0)

    assert running.telemetry.gaps == {(NAME, Cause.TIMEOUT): 2, (NAME, Cause.HTTP_STATUS): 1}


async def test_a_changed_decision_is_one_line_and_an_unchanged_one_is_none(
    caplog: pytest.LogCaptureFixture,
):
    caplog.set_level(logging.DEBUG, logger="leadtime")
    running = Running(
        FakeSource(busy, busy, busy, lambda at: a_fleet(*serving(2, at=at, running=40), at=at))
    )

    for tick in range(4):
        await running.loop.tick(Timestamp(T0 + 10 * tick))

    lines = [record.getMessage() for record in caplog.records if "published=" in record.message]
    assert len(lines) == 2
    assert all(line.startswith(f"policy={NAME} published=") for line in lines)
    assert "\n" not in "".join(lines)


async def test_a_hold_for_missing_data_is_a_warning(caplog: pytest.LogCaptureFixture):
    running = Running(FakeSource(busy, lambda at: a_fleet(*silent(2), at=at)))

    await running.loop.tick(T0)
    decision = await running.loop.tick(Timestamp(T0 + 10))

    assert decision.held
    assert caplog.records[-1].levelno == logging.WARNING
    assert "MetricsGap" in caplog.records[-1].getMessage()


async def test_the_line_of_a_hold_has_its_cause_and_its_end_and_then_the_end_of_it(
    caplog: pytest.LogCaptureFixture,
):
    """What is promised of every decision: each hold with its reason and its end."""
    caplog.set_level(logging.INFO, logger="leadtime")
    away = "http://engine/metrics: no connection"
    running = Running(FakeSource(busy, lambda at: a_fleet(*silent(2, detail=away), at=at), busy))

    for tick in range(3):
        await running.loop.tick(Timestamp(T0 + 10 * tick))

    held, ended = [record.getMessage() for record in caplog.records][1:]
    assert held == (
        "policy=inference/chat published=2 desired=2 serving=2 loading=0 silent=2 "
        f"holds='MetricsGap until 08:02:00Z: Error: 2 of 2 serving replicas: {away}'"
    )
    assert "silent=0 holds=none because='queue: " in ended


async def test_another_cause_of_the_same_hold_is_another_line(caplog: pytest.LogCaptureFixture):
    """The engine hung, then its pod was gone: the second is what somebody has to look at."""
    caplog.set_level(logging.INFO, logger="leadtime")

    def away(detail: str):
        return lambda at: a_fleet(*silent(2, detail=detail), at=at)

    hung, gone = away("e: no complete answer within 5 s"), away("e: no such host")
    running = Running(FakeSource(busy, hung, hung, gone, gone))

    for tick in range(5):
        await running.loop.tick(Timestamp(T0 + 10 * tick))

    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert ("no complete answer" in lines[1], "no such host" in lines[2]) == (True, True)


async def test_a_cause_that_only_grows_older_is_told_once(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, logger="leadtime")

    def stale(at: Timestamp) -> FleetSnapshot:
        detail = f"e: the last answer is {at - T0:.0f} s old, limit 10 s"
        return a_fleet(*silent(2, detail=detail), at=at)

    running = Running(FakeSource(busy, stale))

    for tick in range(40):
        await running.loop.tick(Timestamp(T0 + 10 * tick))

    assert [("refused=" in r.getMessage(), r.levelno) for r in caplog.records] == [
        (False, logging.INFO),
        (False, logging.WARNING),
        (True, logging.WARNING),
    ]


async def test_a_refused_tick_names_no_count_as_if_it_were_served(
    caplog: pytest.LogCaptureFixture,
):
    running = Running(FakeSource(lambda at: a_fleet(*silent(2, detail="e: no such host"), at=at)))

    await running.loop.tick(T0)

    assert caplog.records[-1].getMessage() == (
        "policy=inference/chat refused='no data yet: 2 of 2 serving replicas: e: no such host' "
        "desired=2 serving=2 loading=0 silent=2 holds=none"
    )


async def test_what_a_source_raises_ends_the_loop_for_the_supervisor_to_see():
    running = Running(FakeSource(SourceError("no such kind")))

    with pytest.raises(SourceError):
        await running.loop.run()
