"""What a user does in the cluster: register the adapter, deploy, scale, look."""

import asyncio
import base64
import time
from collections.abc import Callable
from typing import Any

from kubernetes import client

from tests.controlplane.plane import ControlPlane

GROUP = "external.metrics.k8s.io"
API_SERVICE = f"v1beta1.{GROUP}"
METRIC = "leadtime-desired-replicas"
PATIENCE = 60.0


class Cluster:
    """A user's hands on one control plane; calls that wait do so beside the event loop."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.core = client.CoreV1Api(plane.api)
        self.apps = client.AppsV1Api(plane.api)
        self.scaling = client.AutoscalingV2Api(plane.api)
        self.services = client.ApiregistrationV1Api(plane.api)

    def register(self, port: int, ca: bytes) -> None:
        """Let ``GROUP`` be served on a loopback port, by a name that ``ca`` vouches for."""
        name, space = "external-metrics", "kube-system"
        if not self._exists(lambda: self.core.read_namespaced_service(name, space)):
            self.core.create_namespaced_service(
                space,
                {"metadata": {"name": name},
                 "spec": {"type": "ExternalName", "externalName": "localhost"}},
            )  # fmt: skip
        spec = {
            "group": GROUP,
            "version": "v1beta1",
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(ca).decode(),
            "service": {"name": name, "namespace": space, "port": port},
        }
        body = {"metadata": {"name": API_SERVICE}, "spec": spec}
        if self._exists(lambda: self.services.read_api_service(API_SERVICE)):
            self.services.patch_api_service(API_SERVICE, {"spec": spec})
        else:
            self.services.create_api_service(body)

    def available(self) -> dict[str, Any]:
        """Return the condition Available of the APIService."""
        status = self.services.read_api_service(API_SERVICE).status
        found = [c for c in (status.conditions or ()) if c.type == "Available"]
        return {c.type: c for c in found}["Available"].to_dict() if found else {"status": "False"}

    def namespace(self, name: str) -> None:
        """Make a namespace, if there is none."""
        if not self._exists(lambda: self.core.read_namespace(name)):
            self.core.create_namespace({"metadata": {"name": name}})

    def deploy(self, name: str, *, namespace: str, replicas: int) -> None:
        """Make a Deployment; without a kubelet its pods stay Pending, and are counted."""
        labels = {"app": name}
        template = {"metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "engine", "image": "engine"}]}}  # fmt: skip
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        self.apps.create_namespaced_deployment(
            namespace, {"metadata": {"name": name}, "spec": spec}
        )

    def autoscale(
        self, name: str, *, namespace: str, policy: str, most: int = 40, tolerance: str | None = "0"
    ) -> None:
        """Make the HPA that our documents ask for; without a tolerance, what people write."""
        down: dict[str, object] = {"stabilizationWindowSeconds": 0}
        ways = {"scaleUp": dict(down), "scaleDown": dict(down)}
        if tolerance is not None:
            for way in ways.values():
                way["tolerance"] = tolerance
        selector = {"matchLabels": {"policy": policy}}
        metric = {"metric": {"name": METRIC, "selector": selector},
                  "target": {"type": "AverageValue", "averageValue": "1"}}  # fmt: skip
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": 1,
            "maxReplicas": most,
            "metrics": [{"type": "External", "external": metric}],
            "behavior": ways,
        }
        self.scaling.create_namespaced_horizontal_pod_autoscaler(
            namespace, {"metadata": {"name": name}, "spec": spec}
        )

    def replicas(self, name: str, namespace: str) -> int:
        """Return what the Deployment is set to."""
        scale = self.apps.read_namespaced_deployment_scale(name, namespace)
        return int(scale.spec.replicas)

    def conditions(self, name: str, namespace: str) -> dict[str, Any]:
        """Return the HPA's conditions by type, as ``kubectl describe hpa`` shows them."""
        read = self.scaling.read_namespaced_horizontal_pod_autoscaler(name, namespace)
        return {c.type: c.to_dict() for c in (read.status.conditions or ())}

    def remove(self, name: str, namespace: str) -> None:
        """Remove an HPA and its Deployment."""
        self.scaling.delete_namespaced_horizontal_pod_autoscaler(name, namespace)
        self.apps.delete_namespaced_deployment(name, namespace)

    async def until(self, holds: Callable[[], bool], what: str) -> float:
        """Return the seconds until ``holds``; whatever the API server says meanwhile."""
        began = time.monotonic()
        while True:
            if await asyncio.to_thread(_quietly, holds):
                return time.monotonic() - began
            assert time.monotonic() - began < PATIENCE, f"not within {PATIENCE:g} s: {what}"
            await asyncio.sleep(0.1)

    def _exists(self, read: Callable[[], object]) -> bool:
        try:
            read()
        except client.ApiException as error:
            if error.status == 404:
                return False
            raise
        return True


def _quietly(holds: Callable[[], bool]) -> bool:
    try:
        return holds()
    except Exception:
        return False
