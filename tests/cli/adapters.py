"""The real ``leadtime serve`` as a process of its own, over engines on loopback."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.serving.wire import HPA, SERVICE, Pki

PATIENCE = 15.0
"""Seconds after which a condition that should come true is given up on; far above what it takes."""


class Engine:
    """An engine's metrics endpoint that a test turns: load, silence, refusal, sudden death."""

    def __init__(self) -> None:
        self.waiting = self.running = self.tokens = 0
        self.status = 200
        self.scrapes = 0
        self.changed_at = 0.0
        self._server: asyncio.Server | None = None
        self._port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/metrics"

    def carries(self, *, running: int, waiting: int = 0) -> None:
        """Change the load, and remember when."""
        self.running, self.waiting = running, waiting
        self.changed_at = asyncio.get_running_loop().time()

    async def start(self) -> None:
        """Listen; a second start listens on the same port again."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse connections from now on."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.scrapes += 1
            self.tokens += 100
            body = self._exposition().encode()
            head = f"HTTP/1.1 {self.status} X\r\nConnection: close\r\nContent-Length: {len(body)}"
            writer.write(f"{head}\r\n\r\n".encode() + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    def _exposition(self) -> str:
        labels = '{engine="0",model_name="m"}'
        values = {
            "num_requests_running": self.running,
            "num_requests_waiting": self.waiting,
            "kv_cache_usage_perc": 0.1,
            "generation_tokens_total": self.tokens,
            "prompt_tokens_total": self.tokens,
            "request_success_total": self.tokens // 100,
            "e2e_request_latency_seconds_sum": self.tokens / 100,
            "time_to_first_token_seconds_sum": self.tokens / 1000,
            "time_to_first_token_seconds_count": self.tokens / 100,
        }
        lines = [f"vllm:{name}{labels} {value}" for name, value in values.items()]
        for bound in ("0.5", "+Inf"):
            bucket = f'{{engine="0",le="{bound}",model_name="m"}}'
            lines.append(f"vllm:time_to_first_token_seconds_bucket{bucket} {self.tokens / 100}")
        return "\n".join([*lines, ""])


@asynccontextmanager
async def an_engine(*, running: int = 8) -> AsyncIterator[Engine]:
    engine = Engine()
    engine.running = running
    await engine.start()
    try:
        yield engine
    finally:
        await engine.stop()


def policy_of(*engines: Engine, name: str = "chat", top: int = 24, stale_after: str = "2m") -> str:
    """Return a policy over ``engines``: eight requests per replica, a tick a second."""
    urls = ", ".join(engine.url for engine in engines)
    return f"""\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {{name: {name}, namespace: inference}}
spec:
  engine: vllm
  source:
    static: {{urls: [{urls}], interval: 1s}}
  replicas: {{min: 1, max: {top}}}
  signals:
    queue: {{targetInFlight: 8, headroom: 1.0}}
    kvCache: null
    ttft: null
  staleAfter: {stale_after}
"""


class Adapter:
    """A running ``leadtime serve``."""

    def __init__(
        self, process: asyncio.subprocess.Process, session: aiohttp.ClientSession, pki: Pki | None
    ) -> None:
        self.process, self._session = process, session
        self.proxy = pki.front_proxy() if pki else None
        self.user = HPA
        self.said: list[str] = []
        self.base = ""
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            self.said.append(line.decode().rstrip())
            found = re.search(r"leadtime serve: \d+ polic\S+ on (\S+?);", self.said[-1])
            if found:
                self.base = found[1]

    async def get(self, path: str) -> tuple[int, str]:
        """Ask as the front proxy does for the HPA controller; without TLS nobody looks."""
        async with self._session.get(
            self.base + path,
            headers=[("X-Remote-User", self.user), ("X-Remote-Group", "system:authenticated")],
            ssl=self.proxy or True,
            server_hostname=SERVICE if self.proxy else None,
        ) as answer:
            return answer.status, await answer.text()

    async def metric(self, policy: str = "chat") -> tuple[int, dict[str, Any]]:
        """Ask as the HPA controller does."""
        metrics = "/apis/external.metrics.k8s.io/v1beta1/namespaces/inference"
        path = f"{metrics}/leadtime-desired-replicas?labelSelector=policy%3D{policy}"
        status, text = await self.get(path)
        return status, json.loads(text)

    async def replicas(self, policy: str = "chat") -> int | None:
        """Return the served count, None for an error; more or fewer items than one fail."""
        status, answer = await self.metric(policy)
        if status != 200:
            return None
        (item,) = answer["items"]
        return int(item["value"])

    async def until(
        self, true: Callable[[], Awaitable[bool]], *, patience: float = PATIENCE
    ) -> float:
        """Ask again and again; return the loop's time when it was true."""
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while not await true():
            assert loop.time() < end, "\n".join(
                ["it did not come true; the adapter said:", *self.said]
            )
            await asyncio.sleep(0.005)
        return loop.time()

    async def until_replicas(self, count: int | None, policy: str = "chat") -> float:
        async def reached() -> bool:
            return await self.replicas(policy) == count

        return await self.until(reached)

    async def ends(self, number: signal.Signals | None = None) -> int:
        """Send ``number``, and return the exit code once everything it said is read."""
        if number is not None:
            self.process.send_signal(number)
        async with asyncio.timeout(PATIENCE):
            code = await self.process.wait()
            await self._reading
        return code


@asynccontextmanager
async def adapter(
    policies: Path,
    *options: str,
    ready: bool = True,
    pki: Pki | None = None,
    front_proxy: bool = True,
) -> AsyncIterator[Adapter]:
    """Start ``leadtime serve`` over a directory on a free port; kill it at the end if it runs.

    With ``pki`` it serves TLS, and with ``front_proxy`` to that; without plain HTTP to everybody.
    """
    security = _tls_options(pki, front_proxy=front_proxy) if pki else ["--insecure-http"]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "adapter", "serve", "--port", "0", *security),
        *("--policies", str(policies), *options),
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    async with aiohttp.ClientSession() as session:
        running = Adapter(process, session, pki)
        try:
            if ready:
                async with asyncio.timeout(PATIENCE):
                    while not running.base:
                        assert process.returncode is None, "\n".join(running.said)
                        await asyncio.sleep(0.01)
            yield running
        finally:
            if process.returncode is None:
                process.kill()
            await running.ends()


def _tls_options(pki: Pki, *, front_proxy: bool) -> list[str]:
    files = pki.files
    pairs = (
        ("--host", "127.0.0.1"),
        ("--tls-cert", files.certificate),
        ("--tls-key", files.key),
        *([("--requestheader-ca", files.client_ca)] if front_proxy else []),
    )
    return [str(word) for pair in pairs for word in pair]
