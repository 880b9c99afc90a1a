"""Rules over the cluster's side of external metrics: who may read, and who serves."""

from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import KubeObject, Landscape
from adapter.policy.scaler import our_metrics

GROUP: Final = "external.metrics.k8s.io"
_SERVICE_NAME: Final = f"v1beta1.{GROUP}"
_READER: Final = "horizontal-pod-autoscaler"
_READS: Final = frozenset({"list", "*"})
"""The controller's GET is of a collection, for which RBAC's verb is ``list``."""

_READERS: Final = frozenset(
    {
        f"system:serviceaccount:kube-system:{_READER}",
        "system:serviceaccounts:kube-system", "system:serviceaccounts", "system:authenticated",
    }
)  # fmt: skip
"""As a user, and as the groups that it is in."""

NOT_ALLOWED: Final = Code(
    "LT401",
    Severity.ERROR,
    "the HPA may not read external metrics",
    f"The controller asks as ServiceAccount {_READER} in kube-system. Without a ClusterRole "
    f"with get and list on {GROUP} bound to it, every read is a 403 and nothing scales.",
)
NOT_OURS: Final = Code(
    "LT402",
    Severity.ERROR,
    "the APIService of external metrics is not usable",
    f"There is one {_SERVICE_NAME} per cluster. Owned by another server, an HPA on our metric gets "
    "that server's answer, or none; use KEDA's road then. Without a caBundle the API server cannot "
    "trust ours, and with insecureSkipTLSVerify it trusts anybody.",
)


def _not_allowed(landscape: Landscape) -> Iterator[Finding]:
    """Say it only where RBAC for external metrics is being written: elsewhere it may exist."""
    roles = [one for one in landscape.of_kind("ClusterRole") if _is_about(one)]
    bound = [one for one in landscape.of_kind("ClusterRoleBinding") if _binds_reader(one)]
    names = {one.name for one in roles}
    for role in roles:
        verbs = _verbs(role)
        bindings = [b for b in bound if b.text("roleRef", "name") == role.name]
        if not bindings and not any(b.text("roleRef", "name") in names for b in bound):
            yield role.finding(
                ("metadata", "name"),
                NOT_ALLOWED,
                message=f"{role.shown} is bound to nobody who reads: the HPA controller is "
                f"ServiceAccount kube-system/{_READER}",
                fix=f"bind it to ServiceAccount {_READER} in kube-system",
            )
        elif bindings and not verbs & _READS:
            yield role.finding(
                ("rules",),
                NOT_ALLOWED,
                message=f"{role.shown} allows {', '.join(sorted(verbs)) or 'nothing'}, and the HPA "
                "lists",
                fix="verbs: [get, list]",
            )
    for binding in bound:
        given = [c for c in landscape.of_kind("ClusterRole")
                 if c.name == binding.text("roleRef", "name")]  # fmt: skip
        if given and not any(_verbs(one) for one in given):
            yield binding.finding(
                ("roleRef", "name"),
                NOT_ALLOWED,
                message=f"{binding.shown} gives the HPA controller {given[0].shown}, which says "
                f"nothing of {GROUP}",
                fix=f"apiGroups: [{GROUP}], resources: ['*'], verbs: [get, list]",
            )


def _is_about(role: KubeObject) -> bool:
    """Return whether a role names the group; one for everything is somebody else's."""
    rules = (role.value("rules", number, "apiGroups") for number in range(role.count("rules")))
    return any(isinstance(groups, list) and GROUP in groups for groups in rules)


def _verbs(role: KubeObject) -> frozenset[str]:
    found: set[str] = set()
    for number in range(role.count("rules")):
        groups = role.value("rules", number, "apiGroups")
        verbs = role.value("rules", number, "verbs")
        if isinstance(groups, list) and {GROUP, "*"} & {str(g) for g in groups}:
            found |= {str(verb) for verb in verbs} if isinstance(verbs, list) else set()
    return frozenset(found)


def _binds_reader(binding: KubeObject) -> bool:
    for number in range(binding.count("subjects")):
        name = binding.text("subjects", number, "name")
        space = binding.text("subjects", number, "namespace")
        if (name == _READER and space == "kube-system") or name in _READERS:
            return True
    return False


def _not_ours(landscape: Landscape) -> Iterator[Finding]:
    readers = [one for one in landscape.of_kind("HorizontalPodAutoscaler") if our_metrics(one)]
    for service in landscape.of_kind("APIService"):
        if service.name != _SERVICE_NAME:
            continue
        owner = service.text("spec", "service", "name")
        space = service.text("spec", "service", "namespace")
        ours = "leadtime" in owner or "leadtime" in space
        if readers and not ours:
            yield service.finding(
                ("spec", "service", "name"),
                NOT_OURS,
                message=f"{service.shown} is served by {space or '?'}/{owner or '?'}, and "
                f"{readers[0].shown} asks for our metric",
                fix="scale through KEDA's external scaler, or register leadtime's service",
            )
        if ours:
            yield from _trust(service)


def _trust(service: KubeObject) -> Iterator[Finding]:
    skips = service.value("spec", "insecureSkipTLSVerify") is True
    if skips:
        yield service.finding(
            ("spec", "insecureSkipTLSVerify"),
            NOT_OURS,
            message=f"{service.shown}: insecureSkipTLSVerify lets anybody answer for us",
            fix="caBundle: the CA of the serving certificate",
        )
    elif not service.text("spec", "caBundle") and not _injected(service):
        yield service.finding(
            ("spec",),
            NOT_OURS,
            message=f"{service.shown} has no caBundle: the API server cannot trust the answer",
            fix="caBundle: the CA of the serving certificate, or cert-manager's annotation",
        )


def _injected(service: KubeObject) -> bool:
    """Return whether somebody else fills in the CA when the object is applied."""
    return any("inject-ca" in key for key in service.mapping("metadata", "annotations"))


PLATFORM: Final = (
    AroundRule(NOT_ALLOWED, _not_allowed),
    AroundRule(NOT_OURS, _not_ours),
)
"""The family, by number."""
