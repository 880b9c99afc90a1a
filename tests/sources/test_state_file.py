import logging
from pathlib import Path

import pytest

from adapter.controller.errors import SourceError
from adapter.scaling.state import ScalingState, dump_state
from adapter.sources.state_file import MemoryStates, StateFiles
from tests.build import T0

STATE = ScalingState(published=7, started_at=T0, good_at=T0, recommendations=((T0, 7),))
POLICY = "inference/chat"


async def test_what_was_saved_is_there_after_a_restart(tmp_path: Path):
    await StateFiles(tmp_path).save(POLICY, STATE)

    assert await StateFiles(tmp_path).load(POLICY) == STATE


async def test_policies_of_one_name_in_two_namespaces_keep_apart(tmp_path: Path):
    await StateFiles(tmp_path).save("a/chat", STATE)

    assert await StateFiles(tmp_path).load("b/chat") == ScalingState()


async def test_without_a_file_the_memory_is_fresh_and_nothing_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    assert await StateFiles(tmp_path).load(POLICY) == ScalingState()
    assert caplog.records == []


async def test_a_save_leaves_nothing_but_the_file(tmp_path: Path):
    states = StateFiles(tmp_path)

    for published in range(3):
        await states.save(POLICY, ScalingState(published=published))

    assert [path.name for path in (tmp_path / "inference").iterdir()] == ["chat.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b'{"version": 1', b"\x00\xff", b"[]", dump_state(ScalingState(version=99))],
)
async def test_a_file_of_no_use_is_put_aside_loudly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
):
    """Corrupt, cut short or of a newer release: start without memory, and keep the evidence."""
    path = tmp_path / "inference" / "chat.json"
    path.parent.mkdir()
    path.write_bytes(content)

    state = await StateFiles(tmp_path).load(POLICY)

    assert state == ScalingState()
    assert not path.exists()
    assert path.with_suffix(".json.unusable").read_bytes() == content
    assert [record.levelno for record in caplog.records] == [logging.ERROR]
    assert "policy=inference/chat state=unusable" in caplog.text
    assert "starting without memory" in caplog.text


async def test_a_file_that_cannot_be_read_nor_moved_is_named_where_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    path = tmp_path / "inference" / "chat.json"
    path.mkdir(parents=True)
    aside = path.with_suffix(".json.unusable")
    aside.write_bytes(b"in the way of a directory")

    assert await StateFiles(tmp_path).load(POLICY) == ScalingState()
    assert f"kept={path} " in caplog.text


async def test_a_disk_that_takes_nothing_costs_the_restart_not_the_next_tick(tmp_path: Path):
    (tmp_path / "inference").write_bytes(b"a file where a directory should be")
    states = StateFiles(tmp_path)

    with pytest.raises(
        SourceError, match=r"state of policy inference/chat: .* could not be written"
    ):
        await states.save(POLICY, STATE)

    assert await states.load(POLICY) == STATE


async def test_a_failed_save_leaves_the_last_one_whole(tmp_path: Path):
    states = StateFiles(tmp_path)
    await states.save(POLICY, STATE)
    (tmp_path / "inference" / "chat.json.new").mkdir()

    with pytest.raises(SourceError):
        await states.save(POLICY, ScalingState(published=1))

    assert await StateFiles(tmp_path).load(POLICY) == STATE


async def test_memory_lasts_as_long_as_the_process():
    states = MemoryStates()
    assert await states.load(POLICY) == ScalingState()

    await states.save(POLICY, STATE)

    assert await states.load(POLICY) == STATE
