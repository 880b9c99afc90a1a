"""kube-apiserver, kube-controller-manager and etcd: ready ones, cached ones, or built ones."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

MODULE = Path(__file__).parent
PACKAGES = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
}
BUILD_SECONDS = 3000


class NoControlPlaneError(Exception):
    """The binaries cannot be had; says which, and what was tried."""


def binaries() -> Path:
    """Return the folder that holds the three.

    ``KUBEBUILDER_ASSETS`` names one with ready binaries, as controller-runtime's tests take it;
    otherwise they are built once per state of ``go.mod`` and kept in the user's cache.

    Raises:
        NoControlPlaneError: no ready ones, and no Go to build them with.
    """
    ready = os.environ.get("KUBEBUILDER_ASSETS")
    if ready:
        return _complete(Path(ready), f"KUBEBUILDER_ASSETS={ready}")
    folder = _cache() / f"controlplane-{_digest()}"
    if not all((folder / name).is_file() for name in PACKAGES):
        _build(folder)
    return folder


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "leadtime"


def _digest() -> str:
    """Return what the binaries are made from, shortened."""
    made_from = b"".join((MODULE / name).read_bytes() for name in ("go.mod", "go.sum"))
    return hashlib.sha256(made_from).hexdigest()[:16]


def _complete(folder: Path, named: str) -> Path:
    missing = [name for name in PACKAGES if not (folder / name).is_file()]
    if missing:
        raise NoControlPlaneError(f"{named} lacks {', '.join(missing)}")
    return folder


def _build(folder: Path) -> None:
    """Build into a folder beside, and rename at the end: half a build is never taken for one."""
    go = shutil.which("go")
    if go is None:
        raise NoControlPlaneError("no go on PATH to build it with, and KUBEBUILDER_ASSETS not set")
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    unfinished.mkdir(parents=True, exist_ok=True)
    for name, package in PACKAGES.items():
        command = [
            go,
            "build",
            "-trimpath",
            "-ldflags=-s -w",
            "-o",
            str(unfinished / name),
            package,
        ]
        done = subprocess.run(
            command,
            cwd=MODULE,
            env={**os.environ, "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
        if done.returncode:
            shutil.rmtree(unfinished)
            raise NoControlPlaneError(f"go build {package}: {done.stderr.strip()[-500:]}")
    shutil.rmtree(folder, ignore_errors=True)
    unfinished.rename(folder)
