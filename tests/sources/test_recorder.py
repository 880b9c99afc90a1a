"""The recorder: it writes what a loop sees and decides, and is in nobody's way."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapter.controller.loop import Loop
from adapter.controller.supervisor import World
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.state import ScalingState
from adapter.sources.recorder import RecordedBoard, Recorder, recorded
from adapter.sources.recording import Session, Tick, read_recording
from tests.build import T0, a_fleet, serving
from tests.fakes import FakeClock, FakeSource, FakeSources, FakeStore, FakeTelemetry
from tests.simulator.worlds import a_policy

POLICY = a_policy()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    recorder = Recorder(tmp_path / "rec")
    yield recorder
    recorder.close()


def a_loop(recorder: Recorder, store: FakeStore, *, running: float = 20) -> tuple[Loop, FakeSource]:
    """Return the loop of a recorded world, and the source beneath."""
    clock, board = FakeClock(), RecordedBoard(recorder)
    sources = FakeSources(
        lambda _: FakeSource(lambda at: a_fleet(*serving(2, running=running), at=at))
    )
    world = recorded(
        World(sources=sources, store=store, board=board, clock=clock, telemetry=FakeTelemetry()),
        recorder,
    )
    key = board.list_policy(POLICY, {})
    loop = Loop(
        key,
        POLICY.spec,
        interval=Seconds(15.0),
        source=world.sources.open(POLICY),
        store=world.store,
        board=world.board,
        clock=clock,
        telemetry=world.telemetry,
    )
    return loop, sources.opened[0][1]


def on(recorder: Recorder, directory: Path) -> list[Session | Tick]:
    recorder.close()
    return list(read_recording(directory / "rec" / "default" / "chat.jsonl"))


async def test_each_tick_is_a_line_after_the_memory_that_it_began_with(recorder, tmp_path):
    store = FakeStore()
    store.states["default/chat"] = ScalingState(published=7)
    loop, _ = a_loop(recorder, store)

    decisions = [await loop.tick(Timestamp(T0 + after)) for after in (0, 15)]

    session, *ticks = on(recorder, tmp_path)
    assert session == Session("default/chat", ScalingState(published=7))
    assert [tick.fleet.at for tick in ticks] == [T0, T0 + 15]
    assert [decision.desired for decision in decisions] == [
        int(tick.decision.partition(b'"desired":')[2].partition(b",")[0]) for tick in ticks
    ]


async def test_a_source_that_is_opened_again_begins_a_session(recorder, tmp_path):
    store, states = FakeStore(), []
    for after in (0, 15):
        loop, _ = a_loop(recorder, store)
        states.append(await store.load("default/chat"))
        await loop.tick(Timestamp(T0 + after))

    found = on(recorder, tmp_path)

    assert [type(each) for each in found] == [Session, Tick, Session, Tick]
    assert [each.state for each in found[::2]] == states


async def test_a_restart_appends_and_mends_what_was_cut_off(recorder, tmp_path):
    loop, _ = a_loop(recorder, FakeStore())
    await loop.tick(T0)
    recorder.close()
    path = tmp_path / "rec" / "default" / "chat.jsonl"
    with path.open("a") as file:
        file.write('{"fleet":' + " " * 200_000)

    again = Recorder(tmp_path / "rec")
    loop, _ = a_loop(again, FakeStore())
    await loop.tick(T0)

    assert [type(each) for each in on(again, tmp_path)] == [Session, Tick, Session, Tick]


async def test_a_file_without_a_single_whole_line_is_begun_anew(recorder, tmp_path):
    path = tmp_path / "rec" / "default" / "chat.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text('{"recor')
    loop, _ = a_loop(recorder, FakeStore())

    await loop.tick(T0)

    assert [type(each) for each in on(recorder, tmp_path)] == [Session, Tick]


async def test_what_cannot_be_written_is_said_once_and_nothing_else_changes(
    tmp_path, caplog: pytest.LogCaptureFixture
):
    (tmp_path / "rec").write_text("a file where the directory should be")
    loop, _ = a_loop(Recorder(tmp_path / "rec"), FakeStore())

    with caplog.at_level(logging.ERROR, logger="leadtime"):
        decisions = [await loop.tick(Timestamp(T0 + after)) for after in (0, 15)]

    assert [decision.desired for decision in decisions] == [3, 3]
    (line,) = [record.getMessage() for record in caplog.records]
    assert "policy=default/chat recording=lost" in line


async def test_a_tick_that_broke_leaves_no_half(recorder, tmp_path):
    store = FakeStore()
    loop, source = a_loop(recorder, store)
    source._snapshots[:] = [RuntimeError("a bug"), a_fleet(*serving(1))]

    with pytest.raises(RuntimeError):
        await loop.tick(T0)
    await loop.tick(Timestamp(T0 + 15))

    assert [type(each) for each in on(recorder, tmp_path)] == [Session, Tick]


async def test_closing_closes_what_is_beneath(recorder):
    sources = FakeSources(lambda _: FakeSource(a_fleet(*serving(1))))
    world = World(
        sources=sources,
        store=FakeStore(),
        board=RecordedBoard(recorder),
        clock=FakeClock(),
        telemetry=FakeTelemetry(),
    )

    await recorded(world, recorder).sources.open(POLICY).close()

    assert sources.opened[0][1].closed
