"""Which kinds of objects around a policy are read, and which of them are scaled."""

from typing import Final

KINDS: Final = frozenset(
    {
        "APIService", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition",
        "DaemonSet", "Deployment", "HorizontalPodAutoscaler", "LeaderWorkerSet", "Pod",
        "PodDisruptionBudget", "PrometheusRule", "ResourceQuota", "Role", "RoleBinding",
        "Rollout", "ScaledJob", "ScaledObject", "Service", "StatefulSet", "TriggerAuthentication",
    }
)  # fmt: skip
"""Kinds that some rule reads; of others nothing is said."""

WORKLOADS: Final = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout"})
