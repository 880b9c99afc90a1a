"""Real servers on loopback that behave as engines do, and as they should not."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

EXPOSITION = b"# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n"


@asynccontextmanager
async def serving(answer: Answer) -> AsyncIterator[str]:
    """Serve ``answer`` for each connection on a free port; yield the metrics address."""
    open_connections: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        open_connections.add(task)
        try:
            await answer(reader, writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            open_connections.discard(task)
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        server.close()
        for task in tuple(open_connections):
            task.cancel()
        await asyncio.gather(*open_connections, return_exceptions=True)
        await server.wait_closed()


async def request(reader: asyncio.StreamReader) -> bytes:
    """Return the head of the next request; empty when the client has gone."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def saying(
    body: bytes = EXPOSITION,
    *,
    status: str = "200 OK",
    headers: str = "Content-Type: text/plain; version=1.0.0; charset=utf-8\r\n",
    length: int | None = None,
) -> Answer:
    """Return an answer that says the same for ever; ``length`` may lie about the body."""
    promised = len(body) if length is None else length

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await request(reader):
            head = f"HTTP/1.1 {status}\r\n{headers}Content-Length: {promised}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            if promised > len(body):
                return

    return answer


async def hanging(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take the request and never answer."""
    await request(reader)
    await reader.read()
