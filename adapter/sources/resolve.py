"""Looks host names up without letting a dead name server hold up anything else."""

import asyncio
import socket
import threading
from concurrent.futures import Future

from aiohttp.abc import AbstractResolver, ResolveResult

_Question = tuple[str, int, socket.AddressFamily]
_Answer = list[ResolveResult]


class DaemonResolver(AbstractResolver):
    """One daemon thread per name that is being looked up.

    The system's resolver cannot be cancelled and may hang for half a minute. In the event loop's
    own small pool of threads, a handful of dead names would stop the saving of state with it, and
    a shutdown would wait for them.
    """

    def __init__(self) -> None:
        self._open: dict[_Question, Future[_Answer]] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> _Answer:
        """Return the addresses of ``host``; who asks while it is being looked up shares the thread.

        Raises:
            OSError: no such host, or the name server failed.
        """
        question = (host, port, family)
        answer = self._open.get(question)
        if answer is None:
            answer = self._open[question] = Future()
            answer.set_running_or_notify_cancel()  # from here on, giving up does not cancel it
            threading.Thread(target=self._look_up, args=(question, answer), daemon=True).start()
        return await asyncio.wrap_future(answer)

    async def close(self) -> None:
        """Wait for nobody: a thread that still looks something up ends with the process."""

    def _look_up(self, question: _Question, answer: "Future[_Answer]") -> None:
        host, port, family = question
        flags = socket.AI_ADDRCONFIG
        try:
            infos = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=flags)
        except OSError as error:
            del self._open[question]
            answer.set_exception(error)
        else:
            del self._open[question]
            answer.set_result([_result(host, port, info[0], str(info[4][0])) for info in infos])


def _result(host: str, port: int, family: socket.AddressFamily, address: str) -> ResolveResult:
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(
        hostname=host, host=address, port=port, family=family, proto=0, flags=numeric
    )
