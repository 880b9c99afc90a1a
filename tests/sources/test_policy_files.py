import asyncio
import os
from pathlib import Path

import pytest

from adapter.controller.errors import SourceError
from adapter.policy.source_text import MAX_BYTES
from adapter.sources.policy_files import PolicyDirectory


async def read(path: Path) -> dict[str, bytes]:
    return await PolicyDirectory(path).read()


async def test_yaml_and_yml_are_read_at_every_depth_in_order(tmp_path: Path):
    for name in ("b.yaml", "team/a.yml", "a.yaml", "README.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)

    found = await read(tmp_path)

    assert list(found.items()) == [
        (str(tmp_path / name), name.encode()) for name in ("a.yaml", "b.yaml", "team/a.yml")
    ]


async def test_a_mounted_configmap_holds_each_file_once(tmp_path: Path):
    """The kubelet mounts ``..data`` -> ``..2026_…``, and every file as a link through it."""
    version = tmp_path / "..2026_12_01"
    version.mkdir()
    (version / "chat.yaml").write_text("kind: ScalingPolicy")
    (tmp_path / "..data").symlink_to(version.name)
    (tmp_path / "chat.yaml").symlink_to("..data/chat.yaml")

    assert await read(tmp_path) == {str(tmp_path / "chat.yaml"): b"kind: ScalingPolicy"}


async def test_drafts_of_editors_are_left_out(tmp_path: Path):
    (tmp_path / ".chat.yaml").write_text("draft")

    assert await read(tmp_path) == {}


async def test_a_file_of_any_size_costs_no_more_than_the_limit(tmp_path: Path):
    (tmp_path / "a.yaml").write_bytes(b"#" * (MAX_BYTES + 5))

    (content,) = (await read(tmp_path)).values()

    assert len(content) == MAX_BYTES + 1


async def test_a_pipe_among_the_files_is_not_waited_for(tmp_path: Path):
    """Opening one blocks until somebody writes: no policy was read again, and no stop obeyed."""
    (tmp_path / "a.yaml").write_text("kind: ScalingPolicy")
    os.mkfifo(tmp_path / "b.yaml")
    writing = os.open(tmp_path / "b.yaml", os.O_RDWR | os.O_NONBLOCK)

    try:
        async with asyncio.timeout(5):
            found = await read(tmp_path)
    finally:
        os.close(writing)

    assert found == {str(tmp_path / "a.yaml"): b"kind: ScalingPolicy"}


async def test_a_directory_that_is_missing_is_an_error_with_its_name(tmp_path: Path):
    absent = tmp_path / "absent"

    with pytest.raises(SourceError, match=f"policies: {absent} cannot be read \\(No such file"):
        await read(absent)


async def test_a_file_that_cannot_be_read_is_an_error_not_a_deleted_policy(tmp_path: Path):
    (tmp_path / "a.yaml").symlink_to("nowhere")

    with pytest.raises(SourceError, match=r"a\.yaml cannot be read"):
        await read(tmp_path)
