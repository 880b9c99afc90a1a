import asyncio
import os
from pathlib import Path

import pytest

from adapter.fleet.assemble import Target
from adapter.fleet.reading import Cause, Gap
from adapter.sources.directory import RecordedTargets
from tests.build import T0
from tests.fakes import FakeClock


def recorded(path: Path) -> RecordedTargets:
    return RecordedTargets(path, FakeClock())


async def one_target(targets: RecordedTargets) -> Target:
    (target,) = (await targets.roster(T0)).targets
    return target


async def test_every_dump_is_one_replica(tmp_path: Path):
    for name in ("b.prom", "a.prom", "notes.txt"):
        (tmp_path / name).write_text("x 1\n")

    roster = await recorded(tmp_path).roster(T0)

    assert sorted(target.uid for target in roster.targets) == [
        str(tmp_path / "a.prom"),
        str(tmp_path / "b.prom"),
    ]


async def test_a_pipe_among_the_dumps_is_a_gap_and_not_waited_for(tmp_path: Path):
    """Opening one blocks until somebody writes, and with it a thread, and the stop of it all."""
    os.mkfifo(tmp_path / "a.prom")
    writing = os.open(tmp_path / "a.prom", os.O_RDWR | os.O_NONBLOCK)
    targets = recorded(tmp_path)

    try:
        async with asyncio.timeout(5):
            gap = await targets.fetch(await one_target(targets))
    finally:
        os.close(writing)

    assert isinstance(gap, Gap)
    assert gap.detail.endswith("a.prom: cannot be read (a pipe is no recorded dump)")


async def test_a_dump_is_read_once_and_again_when_it_changed(tmp_path: Path):
    dump = tmp_path / "a.prom"
    dump.write_bytes(b"x 1\n")
    targets = recorded(tmp_path)
    target = await one_target(targets)

    first = await targets.fetch(target)
    same = await targets.fetch(target)
    dump.write_bytes(b"x 2\n")
    os.utime(dump, ns=(1, 1))
    changed = await targets.fetch(target)

    assert (first, same, changed) == (b"x 1\n", None, b"x 2\n")


async def test_a_dump_that_another_file_replaced_is_read_again(tmp_path: Path):
    """Size and time may be the same after a rename; the inode is not."""
    dump, other = tmp_path / "a.prom", tmp_path / "a.new"
    dump.write_bytes(b"x 1\n")
    other.write_bytes(b"x 2\n")
    for path in (dump, other):
        os.utime(path, ns=(1, 1))
    targets = recorded(tmp_path)
    target = await one_target(targets)
    await targets.fetch(target)

    other.replace(dump)

    assert await targets.fetch(target) == b"x 2\n"


async def test_a_dump_that_is_gone_is_a_replica_that_is_gone(tmp_path: Path):
    (tmp_path / "a.prom").write_text("x 1\n")
    (tmp_path / "b.prom").write_text("x 1\n")
    targets = recorded(tmp_path)
    await targets.roster(T0)

    (tmp_path / "a.prom").unlink()

    assert (await one_target(targets)).uid == str(tmp_path / "b.prom")


async def test_a_dump_that_comes_back_unchanged_is_read_again(tmp_path: Path):
    """It is a new replica by then: what was read of the old one is forgotten."""
    dump, away = tmp_path / "a.prom", tmp_path / "a.away"
    dump.write_bytes(b"x 1\n")
    targets = recorded(tmp_path)
    await targets.fetch(await one_target(targets))
    dump.rename(away)
    await targets.roster(T0)

    away.rename(dump)

    assert await targets.fetch(await one_target(targets)) == b"x 1\n"


async def test_a_dump_that_went_between_listing_and_reading_is_a_gap(tmp_path: Path):
    dump = tmp_path / "a.prom"
    dump.write_bytes(b"x 1\n")
    targets = recorded(tmp_path)
    target = await one_target(targets)
    await targets.fetch(target)

    dump.unlink()
    gap = await targets.fetch(target)
    dump.write_bytes(b"x 1\n")

    assert gap == Gap(T0, Cause.UNREACHABLE, f"{dump}: cannot be read (No such file or directory)")
    assert await targets.fetch(target) == b"x 1\n"


@pytest.mark.parametrize("missing", [False, True])
async def test_without_any_dump_the_directory_says_what_is_missing(tmp_path: Path, missing: bool):  # noqa: FBT001 - a parameter of the case
    path = tmp_path / "absent" if missing else tmp_path
    targets = recorded(path)

    gap = await targets.fetch(await one_target(targets))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.UNREACHABLE
    expected = "cannot be read (No such file" if missing else "no *.prom file in this directory"
    assert gap.detail.startswith(f"{path}: {expected}")


async def test_while_the_directory_is_away_its_replicas_stay_and_are_silent(tmp_path: Path):
    """An unmounted volume is no scale-down."""
    mount = tmp_path / "dumps"
    mount.mkdir()
    (mount / "a.prom").write_text("x 1\n")
    targets = recorded(mount)
    before = await targets.roster(T0)

    mount.rename(tmp_path / "away")
    after = await targets.roster(T0)

    assert after == before
    assert isinstance(await targets.fetch(after.targets[0]), Gap)


async def test_a_dump_over_the_limit_is_not_read(tmp_path: Path):
    (tmp_path / "a.prom").write_bytes(b"#" * (1024 * 1024 + 1))
    targets = RecordedTargets(tmp_path, FakeClock(), body_limit=1024 * 1024)

    gap = await targets.fetch(await one_target(targets))

    assert isinstance(gap, Gap)
    assert gap.cause is Cause.TOO_LARGE
    assert "over 1 MiB" in gap.detail
