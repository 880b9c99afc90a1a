"""A real vLLM as a process of its own, and its core, which a test stops, wakes and kills."""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.e2e.tiny_model import write_model

MODEL: Final = "tiny"
AT_ONCE: Final = 8
"""Requests that run; all others wait."""

BLOCKS: Final = 32
BLOCK_TOKENS: Final = 128
"""The KV cache that is given away: eight requests of 512 tokens, prompt included."""

FITTING: Final = 440
OVERFLOWING: Final = 560
"""Tokens of an answer, eight of which the KV cache has room for, and has not."""

READY_WITHIN: Final = 240.0
"""Seconds; 30 to 60 on two cores."""

STOPS_WITHIN: Final = 20.0
"""Seconds; about 2."""

OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}
SMALL: Final = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
    "VLLM_HOST_IP": "127.0.0.1",
}


class Vllm:
    """One engine on loopback; what it says stands in ``log``."""

    def __init__(self, python: Path, directory: Path) -> None:
        self.log = directory / "vllm.log"
        self._port = _free_port()
        command = (
            *(python, "-m", "vllm.entrypoints.cli.main", "serve", write_model(directory / "model")),
            *("--served-model-name", MODEL, "--load-format", "dummy", "--dtype", "float32"),
            *("--host", "127.0.0.1", "--port", self._port, "--enforce-eager"),
            *("--max-model-len", 2 * FITTING, "--max-num-seqs", AT_ONCE),
            # One more than there is to give away: the null block is nobody's.
            *("--num-gpu-blocks-override", BLOCKS + 1, "--block-size", BLOCK_TOKENS),
        )
        places = {"HOME": str(directory), "TMPDIR": str(directory)}
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(word) for word in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={"PATH": os.environ["PATH"], **places, **OFFLINE, **SMALL},
                start_new_session=True,
            )

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    @property
    def metrics(self) -> str:
        return f"{self.base}/metrics"

    @property
    def healthy(self) -> bool:
        """Return whether it says that it is well."""
        return self._status("GET", "/health") == 200

    def wait_until_ready(self) -> None:
        """Return once it generates; an engine that does not is an error with its last words.

        A 200 of ``/health`` does not promise that: vLLM has died at its first token after it.
        """
        end = time.monotonic() + READY_WITHIN
        while not self.healthy:
            code = self._process.poll()
            assert code is None, f"vLLM ended with {code}:\n{self._last_words()}"
            assert time.monotonic() < end, f"vLLM does not answer:\n{self._last_words()}"
            time.sleep(0.2)
        asked = {"model": MODEL, "prompt": "a", "max_tokens": 2, "ignore_eos": True}
        status = self._status("POST", "/v1/completions", json.dumps(asked))
        assert status == 200, f"the first completion got {status}:\n{self._last_words()}"

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stop the core as a hung GPU would, and let it go on; the API server answers meanwhile."""
        core = self._core()
        os.kill(core, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(core, signal.SIGCONT)

    def kill_core(self) -> None:
        """End the core as the kernel does when memory is out: at once, with no word to anyone."""
        os.kill(self._core(), signal.SIGKILL)

    def stop(self) -> None:
        """End every process that this one started.

        They are told first, and given time, as only then they remove their shared memory.
        """
        end = time.monotonic() + STOPS_WITHIN
        self._process.terminate()
        with suppress(ProcessLookupError):
            while time.monotonic() < end:
                self._process.poll()
                os.killpg(self._process.pid, 0)
                time.sleep(0.1)
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _core(self) -> int:
        """Return the process that schedules and computes: a child of ours, by its title."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        for pid in children.read_text().split():
            if b"EngineCore" in Path(f"/proc/{pid}/cmdline").read_bytes():
                return int(pid)
        raise AssertionError("vLLM has no process called EngineCore")

    def _status(self, method: str, path: str, body: str | None = None) -> int | None:
        """Return the status of one answer, None where nobody answers."""
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def _last_words(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-30:])


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
