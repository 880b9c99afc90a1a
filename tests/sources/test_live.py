import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from adapter.fleet.assemble import Target
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.sources.live import AT_ONCE, LiveFleet
from adapter.sources.scrape import SMALL_BODY, Scraper
from tests.build import T0, a_gap, a_reading
from tests.fakes import FakeClock, FakeTargets, a_target, until
from tests.sources.servers import hanging, saying, serving

INTERVAL = Seconds(5.0)


class Engines:
    """Answers for every target by its UID: a body, a gap, or a wait that a test ends."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes | Gap | None] = {}
        self.waits: dict[str, asyncio.Event] = {}
        self.asked: list[str] = []
        self.open = 0
        self.most_open = 0

    async def fetch(self, target: Target) -> bytes | Gap | None:
        self.asked.append(target.uid)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if target.uid in self.waits:
                await self.waits[target.uid].wait()
            await asyncio.sleep(0)
            return self.bodies.get(target.uid, b"0")
        finally:
            self.open -= 1

    def hang(self, *uids: str) -> None:
        self.waits.update({uid: asyncio.Event() for uid in uids})


def read_number(body: bytes, *, at: Timestamp, target: str) -> Reading | Gap:
    """Read a body that is the number of running requests."""
    if not body.strip().isdigit():
        return a_gap(Cause.NOT_METRICS, at=at, detail=f"{target}: no number")
    return a_reading(at=at, running=int(body))


def running(fleet: FleetSnapshot) -> dict[str, float | None]:
    """Return what each replica says of its running requests."""
    return {
        replica.uid: next(iter(replica.reading.values.values())) if replica.reading else None
        for replica in fleet.replicas
    }


@asynccontextmanager
async def a_live_fleet(
    engines: Engines, *uids: str, clock: FakeClock | None = None, interval: float = INTERVAL
) -> AsyncIterator[tuple[LiveFleet, FakeTargets]]:
    targets = FakeTargets([a_target(uid) for uid in uids])
    fleet = LiveFleet(
        targets,
        engines.fetch,
        read_number,
        clock=clock or FakeClock(),
        interval=Seconds(interval),
        stale_after=Seconds(2 * interval),
    )
    try:
        yield fleet, targets
    finally:
        await fleet.close()


async def test_every_tick_asks_everyone_and_sees_what_changed():
    engines, clock = Engines(), FakeClock()
    async with a_live_fleet(engines, "a", "b", clock=clock) as (fleet, _):
        engines.bodies = {"a": b"1", "b": b"2"}
        first = await fleet.snapshot(T0)
        engines.bodies = {"a": b"3", "b": b"2"}
        clock.pass_by(5)
        second = await fleet.snapshot(Timestamp(T0 + 5))

    assert running(first) == {"a": 1, "b": 2}
    assert running(second) == {"a": 3, "b": 2}
    assert [replica.previous is None for replica in second.replicas] == [False, False]


async def test_a_gap_is_part_of_the_snapshot():
    engines = Engines()
    engines.bodies = {"a": a_gap(Cause.HTTP_STATUS, detail="a: answered 404"), "b": b"<html>"}
    async with a_live_fleet(engines, "a", "b") as (fleet, _):
        snapshot = await fleet.snapshot(T0)

    causes = [replica.sample.cause for replica in snapshot.replicas]  # type: ignore[union-attr]
    assert causes == [Cause.HTTP_STATUS, Cause.NOT_METRICS]


async def test_a_target_that_says_nothing_new_stays_what_it_was():
    engines = Engines()
    engines.bodies = {"a": b"7"}
    async with a_live_fleet(engines, "a") as (fleet, _):
        await fleet.snapshot(T0)
        engines.bodies = {"a": None}
        again = await fleet.snapshot(Timestamp(T0 + 5))

    assert running(again) == {"a": 7}


async def test_a_slow_answer_is_used_at_the_next_tick():
    """The tick does not wait for it, and it is not asked a second time meanwhile.

    Measured 16 of vLLM.
    """
    engines = Engines()
    engines.bodies = {"slow": b"9", "well": b"1"}
    async with a_live_fleet(engines, "slow", "well") as (fleet, _):
        await fleet.snapshot(T0)
        engines.hang("slow")
        engines.bodies["slow"] = b"5"
        during = await fleet.snapshot(Timestamp(T0 + 5))
        engines.waits.pop("slow").set()
        await until(lambda: engines.open == 0)
        after = await fleet.snapshot(Timestamp(T0 + 5))

    assert running(during) == {"slow": 9, "well": 1}
    assert running(after)["slow"] == 5
    assert engines.asked.count("slow") == 3


async def test_no_target_has_two_questions_open():
    """Trap 23: a scrape costs the engine that serves users."""
    engines = Engines()
    engines.hang("a")
    async with a_live_fleet(engines, "a", interval=0.02) as (fleet, _):
        for tick in range(4):
            await fleet.snapshot(Timestamp(T0 + tick))

    assert engines.asked == ["a"]


async def test_a_target_that_timed_out_is_asked_and_not_waited_for():
    """It cost the others one wait; it costs no second one until it answers again."""
    engines = Engines()
    engines.bodies = {"a": a_gap(Cause.TIMEOUT), "b": b"1"}
    async with a_live_fleet(engines, "a", "b") as (fleet, _):
        await fleet.snapshot(T0)
        engines.hang("a")
        before = asyncio.get_running_loop().time()
        snapshot = await fleet.snapshot(Timestamp(T0 + 5))
        took = asyncio.get_running_loop().time() - before

    assert engines.asked.count("a") == 2
    assert running(snapshot) == {"a": None, "b": 1}
    assert took < 0.1


async def test_hanging_targets_hold_no_slot_of_the_others():
    """100 of 200 hang, 64 are asked at once: every other one is in the snapshot."""
    engines = Engines()
    uids = [f"{index:03}" for index in range(200)]
    async with a_live_fleet(engines, *uids) as (fleet, _):
        await fleet.snapshot(T0)
        engines.bodies = dict.fromkeys(uids, b"1")
        engines.hang(*uids[::2])
        snapshot = await fleet.snapshot(Timestamp(T0 + 5))

    said = running(snapshot)
    assert [said[uid] for uid in uids[1::2]] == [1] * 100
    assert [said[uid] for uid in uids[::2]] == [0] * 100


async def test_prompt_targets_are_asked_a_few_at_a_time():
    engines = Engines()
    async with a_live_fleet(engines, *(f"{index:03}" for index in range(300))) as (fleet, _):
        await fleet.snapshot(T0)

    assert len(engines.asked) == 300
    assert 1 < engines.most_open <= AT_ONCE


async def test_a_tick_waits_no_longer_than_half_its_interval():
    engines = Engines()
    uids = [f"{index:03}" for index in range(AT_ONCE * 3)]
    engines.hang(*uids)
    async with a_live_fleet(engines, *uids, interval=0.1) as (fleet, _):
        before = asyncio.get_running_loop().time()
        snapshot = await fleet.snapshot(T0)
        took = asyncio.get_running_loop().time() - before

    assert {replica.phase for replica in snapshot.replicas} == {Phase.LOADING}
    assert took < 0.5


async def test_a_replica_that_left_is_not_asked_again_and_its_question_dropped():
    engines = Engines()
    async with a_live_fleet(engines, "a", "b") as (fleet, targets):
        await fleet.snapshot(T0)
        engines.hang("a")
        await fleet.snapshot(T0)
        targets.targets = (a_target("b"),)
        snapshot = await fleet.snapshot(T0)
        await until(lambda: engines.open == 0)

        targets.targets = (a_target("a"), a_target("b"))
        engines.waits.clear()
        back = await fleet.snapshot(T0)

    assert running(snapshot) == {"b": 0}
    assert running(back) == {"a": 0, "b": 0}


async def test_large_bodies_are_read_beside_the_event_loop():
    threads = {}

    def read(body: bytes, *, at: Timestamp, target: str) -> Reading:
        threads[target] = threading.current_thread()
        return a_reading(at=at)

    engines = Engines()
    engines.bodies = {"large": b"1" * (SMALL_BODY + 1), "small": b"1" * SMALL_BODY}
    fleet = LiveFleet(
        FakeTargets([a_target("large"), a_target("small")]),
        engines.fetch,
        read,
        clock=FakeClock(),
        interval=INTERVAL,
        stale_after=INTERVAL,
    )

    await fleet.snapshot(T0)
    await fleet.close()

    assert threads["small"] is threading.main_thread()
    assert threads["large"] is not threading.main_thread()


async def test_a_bug_in_the_reader_is_raised_and_not_swallowed():
    """The supervisor logs it and starts the loop again; a silent gap would hide it."""

    def read(body: bytes, *, at: Timestamp, target: str) -> Reading:
        raise ZeroDivisionError

    fleet = LiveFleet(
        FakeTargets([a_target("a")]),
        Engines().fetch,
        read,
        clock=FakeClock(),
        interval=INTERVAL,
        stale_after=INTERVAL,
    )
    await fleet.snapshot(T0)

    with pytest.raises(ZeroDivisionError):
        await fleet.snapshot(Timestamp(T0 + 5))
    await fleet.close()


@pytest.mark.slow
async def test_five_of_two_hundred_real_targets_hang_and_delay_nobody():
    """195 answers over HTTP in the same tick; the next tick does not wait for the five at all."""
    clock = FakeClock()
    loop = asyncio.get_running_loop()
    async with serving(saying(b"4")) as well, serving(hanging) as hung, Scraper(clock) as scraper:
        targets = [a_target(f"{well}?{index}") for index in range(195)]
        targets += [a_target(f"{hung}?{index}") for index in range(5)]

        async def fetch(target: Target) -> bytes | Gap:
            return await scraper.fetch(target, Seconds(0.5))

        fleet = LiveFleet(
            FakeTargets(targets),
            fetch,
            read_number,
            clock=clock,
            interval=INTERVAL,
            stale_after=Seconds(10),
        )
        first = await fleet.snapshot(T0)
        before = loop.time()
        second = await fleet.snapshot(Timestamp(T0 + 5))
        took = loop.time() - before
        await fleet.close()

    answered = [uid for uid, said in running(first).items() if said == 4]
    assert len(answered) == 195
    assert running(second) == running(first)
    assert took < 1.0
