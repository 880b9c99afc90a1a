"""Users of the engine, who count for themselves what they sent, got and waited for."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp

from tests.e2e.engine import MODEL, Vllm


@dataclass
class Request:
    """One streamed completion, as its user sees it."""

    prompt: str
    wanted: int
    """Tokens to generate: the end-of-text token is ignored, so it is all of them."""

    tokens: int = 0
    first_after: float | None = None
    """Seconds from sending to the first token."""

    error: str = ""

    @property
    def whole(self) -> bool:
        return self.tokens == self.wanted and not self.error


@dataclass
class Crowd:
    """Requests that were all sent at once."""

    requests: list[Request] = field(default_factory=list)
    sending: list["asyncio.Task[None]"] = field(default_factory=list)

    async def served(self, *, patience: float = 120.0) -> None:
        """Return when every stream has ended, whichever way."""
        _, late = await asyncio.wait(self.sending, timeout=patience)
        assert not late, f"{len(late)} streams have not ended after {patience:g} s"
        for task in self.sending:
            task.result()

    async def reached(self, tokens: int, *, patience: float = 60.0) -> None:
        """Return when every user has so many tokens."""
        async with asyncio.timeout(patience):
            while any(request.tokens < tokens for request in self.requests):
                await asyncio.sleep(0.01)

    @property
    def all_served(self) -> bool:
        return all(task.done() for task in self.sending)

    async def leaves(self) -> None:
        """Hang up on what is not answered yet."""
        for task in self.sending:
            task.cancel()
        await asyncio.gather(*self.sending, return_exceptions=True)


@asynccontextmanager
async def crowd(engine: Vllm, count: int, *, tokens: int) -> AsyncIterator[Crowd]:
    """Send ``count`` requests at once, each with a prompt of its own; at the end, hang up."""
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(
        timeout=timeout, connector=aiohttp.TCPConnector(limit=0)
    ) as session:
        people = Crowd([Request(_prompt(number), tokens) for number in range(count)])
        people.sending = [
            asyncio.create_task(_send(session, engine, request)) for request in people.requests
        ]
        try:
            yield people
        finally:
            await people.leaves()


def _prompt(number: int) -> str:
    """Return letters, which are a token each; the first one differs, so nothing is cached."""
    return chr(ord("A") + number) + "abcdefgh " * 5 + "z" * number


async def _send(session: aiohttp.ClientSession, engine: Vllm, request: Request) -> None:
    body = {
        "model": MODEL,
        "prompt": request.prompt,
        "max_tokens": request.wanted,
        "ignore_eos": True,
        "stream": True,
        "return_token_ids": True,
    }
    sent = asyncio.get_running_loop().time()
    try:
        async with session.post(f"{engine.base}/v1/completions", json=body) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                if line.startswith(b"data: {"):
                    _count(json.loads(line.removeprefix(b"data: ")), request, sent)
    except aiohttp.ClientError as error:
        request.error = repr(error)


def _count(event: dict[str, object], request: Request, sent: float) -> None:
    choices = event.get("choices")
    if not isinstance(choices, list):
        request.error = json.dumps(event)
        return
    new = sum(len(choice["token_ids"] or ()) for choice in choices)
    if new and request.first_after is None:
        request.first_after = asyncio.get_running_loop().time() - sent
    request.tokens += new
