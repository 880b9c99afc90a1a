"""Starts and ends a control plane of one host: etcd, kube-apiserver, kube-controller-manager."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Any

from kubernetes import client, config

from tests.controlplane.pki import Ca, account_keys, kubeconfig

PATIENCE = 60.0
"""Seconds for a process of it to be ready; on a quiet machine it takes three."""

SYNC_SECONDS = 1
"""Of the HPA controller; a real cluster's is 15."""

CONTROLLERS = (
    "horizontal-pod-autoscaler-controller,deployment-controller,replicaset-controller,"
    "statefulset-controller,serviceaccount-controller,namespace-controller,"
    "garbage-collector-controller,clusterrole-aggregation-controller"
)


class ControlPlane:
    """One throw-away cluster; ``api`` is an administrator's client."""

    def __init__(self, binaries: Path, folder: Path) -> None:
        self._binaries, self._folder = binaries, folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._etcd, self._peer, self._secure, self._manager = (_free_port() for _ in range(4))
        self.server = f"https://127.0.0.1:{self._secure}"
        self.ca, self.front_proxy, self.extension = Ca("kubernetes"), Ca("front-proxy"), Ca("ext")
        self._write_pki()
        self.api: client.ApiClient = config.new_client_from_config(str(folder / "admin.conf"))

    def start(self) -> None:
        """Start all three, and return when the HPA controller runs."""
        self.start_etcd()
        self.start_api_server()
        self.start_controllers()

    def start_etcd(self) -> None:
        """Start etcd on an empty folder, or on what it had."""
        url = f"http://127.0.0.1:{self._etcd}"
        peer = f"http://127.0.0.1:{self._peer}"
        self._run(
            "etcd", "--data-dir", str(self._folder / "etcd"), "--listen-client-urls", url,
            "--advertise-client-urls", url, "--listen-peer-urls", peer,
            "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}",
            "--unsafe-no-fsync",
        )  # fmt: skip
        self._until("etcd", lambda: _answers(f"{url}/health"))

    def start_api_server(self) -> None:
        """Start kube-apiserver, and return when it is ready."""
        at = self._folder
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._secure}",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={at}/sa.pub",
            f"--service-account-signing-key-file={at}/sa.key",
            f"--client-ca-file={at}/ca.crt",
            f"--tls-cert-file={at}/apiserver.crt",
            f"--tls-private-key-file={at}/apiserver.key",
            "--authorization-mode=RBAC",
            f"--requestheader-client-ca-file={at}/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={at}/front-proxy-client.crt",
            f"--proxy-client-key-file={at}/front-proxy-client.key",
        )
        self._until("kube-apiserver", self._ready)

    def start_controllers(self) -> None:
        """Start kube-controller-manager with what a Deployment and an HPA need."""
        path = str(self._folder / "manager.conf")
        self._run(
            "kube-controller-manager",
            f"--kubeconfig={path}",
            f"--authentication-kubeconfig={path}",
            f"--authorization-kubeconfig={path}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self._manager}",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._folder}/sa.key",
            f"--root-ca-file={self._folder}/ca.crt",
            f"--controllers={CONTROLLERS}",
            f"--horizontal-pod-autoscaler-sync-period={SYNC_SECONDS}s",
            "--horizontal-pod-autoscaler-downscale-stabilization=0s",
        )

    def stop(self) -> None:
        """End what runs: the API server before etcd, or it hangs."""
        for name in ("kube-controller-manager", "kube-apiserver", "etcd"):
            self.stop_one(name)

    def stop_one(self, name: str) -> None:
        """End one process, by its id."""
        process = self._running.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def log(self, name: str) -> str:
        """Return the last lines that a process wrote."""
        return (self._folder / f"{name}.log").read_text(errors="replace")[-4000:]

    def get(self, path: str) -> Any:
        """Return what ``kubectl get --raw PATH`` prints, parsed.

        Raises:
            kubernetes.client.ApiException: the API server's error.
        """
        return raw(self.api, self.server + path)

    def _ready(self) -> bool:
        """Return whether all is up, the roles of controllers included."""
        with contextlib.suppress(Exception):  # every kind of not yet
            answer = self.api.call_api("GET", f"{self.server}/readyz")
            return int(answer.status) == HTTPStatus.OK
        return False

    def _run(self, name: str, *arguments: str) -> None:
        log = (self._folder / f"{name}.log").open("ab")
        with log:
            self._running[name] = subprocess.Popen(
                [str(self._binaries / name), *arguments],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
                env={**os.environ, "GOMAXPROCS": "2"},
            )

    def _until(self, name: str, holds: Callable[[], bool]) -> None:
        ends = time.monotonic() + PATIENCE
        while not holds():
            if self._running[name].poll() is not None or time.monotonic() > ends:
                raise RuntimeError(f"{name} did not come up:\n{self.log(name)}")
            time.sleep(0.1)

    def _write_pki(self) -> None:
        write = self._write
        write("ca.crt", self.ca.certificate)
        write("front-proxy-ca.crt", self.front_proxy.certificate)
        serving = self.ca.sign("kube-apiserver", names=("127.0.0.1", "localhost"))
        proxy = self.front_proxy.sign("front-proxy-client")
        accounts = account_keys()
        write("apiserver.crt", serving.certificate)
        write("apiserver.key", serving.key)
        write("front-proxy-client.crt", proxy.certificate)
        write("front-proxy-client.key", proxy.key)
        write("sa.pub", accounts.certificate)
        write("sa.key", accounts.key)
        admin = self.ca.sign("admin", group="system:masters")
        manager = self.ca.sign("system:kube-controller-manager")
        ca = self.ca.certificate
        kubeconfig(self._folder / "admin.conf", self.server, ca, admin)
        kubeconfig(self._folder / "manager.conf", self.server, ca, manager)

    def _write(self, name: str, data: bytes) -> None:
        (self._folder / name).write_bytes(data)


def raw(api: client.ApiClient, url: str) -> Any:
    """Return what a user sees at ``url``, parsed.

    Raises:
        kubernetes.client.ApiException: the API server's error.
    """
    answer = api.call_api("GET", url, {"Accept": "application/json"})
    body = answer.read()
    if answer.status != HTTPStatus.OK:
        raise client.ApiException(status=answer.status, body=body.decode())
    return json.loads(body)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:  # noqa: S310 - loopback
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port
