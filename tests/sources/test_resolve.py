import asyncio
import socket
import threading

import pytest

from adapter.sources.resolve import DaemonResolver


async def test_a_name_becomes_its_addresses():
    found = await DaemonResolver().resolve("localhost", 8000, socket.AF_INET)

    assert ("127.0.0.1", 8000, socket.AF_INET) in [
        (each["host"], each["port"], each["family"]) for each in found
    ]
    assert {each["hostname"] for each in found} == {"localhost"}


async def test_a_name_that_does_not_exist_is_an_error():
    with pytest.raises(OSError, match=r"."):
        await DaemonResolver().resolve("engine.invalid", 8000, socket.AF_UNSPEC)


class Hanging(DaemonResolver):
    """A resolver whose name server answers when the test lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.release, self.asked = threading.Event(), 0

    def _look_up(self, *question: object) -> None:
        self.asked += 1
        self.release.wait()
        super()._look_up(*question)  # type: ignore[arg-type]


async def test_a_name_server_that_hangs_can_be_given_up_on_and_is_asked_once():
    """Ten scrapes give up on one dead name: one thread hangs, and the next answer is used."""
    resolver = Hanging()
    for _ in range(10):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await resolver.resolve("localhost", 80, socket.AF_INET)
    assert resolver.asked == 1

    waiting = asyncio.create_task(resolver.resolve("localhost", 80, socket.AF_INET))
    await asyncio.sleep(0)
    resolver.release.set()
    found = await waiting
    await resolver.close()

    assert found
    assert resolver.asked == 1


async def test_the_threads_do_not_keep_the_process():
    resolver = Hanging()
    asking = asyncio.create_task(resolver.resolve("localhost", 80, socket.AF_INET))
    await asyncio.sleep(0)

    fresh = [thread for thread in threading.enumerate() if "_look_up" in thread.name]
    assert [thread.daemon for thread in fresh] == [True]

    resolver.release.set()
    await asking
