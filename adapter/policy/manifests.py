"""The manifests that read our number, made from a policy: each line that matters says why."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from adapter.policy.document import Policy, Target
from adapter.policy.scalars import YAML_1_1_BOOLEANS
from adapter.policy.scaler import METRIC

PUSHED_ABOVE_SECONDS: Final = 10.0
"""An interval above which a poll on top is too slow for fast up, so that the trigger is pushed."""

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9./-]*")
_WORDS: Final = {*YAML_1_1_BOOLEANS, "null", "Null", "NULL"}


@dataclass(frozen=True, slots=True)
class Scaler:
    """Where KEDA finds the external scaler, and how it trusts it."""

    address: str = "leadtime.leadtime.svc:9090"
    """``HOST:PORT``; the certificate must be good for the host."""

    secret: str | None = "leadtime-keda-tls"  # noqa: S105 - a name
    """The Secret with ``ca.crt`` in the policy's namespace; None: plain text."""

    mutual: bool = False
    """Whether the Secret's ``tls.crt`` and ``tls.key`` are shown to the scaler."""


@dataclass(frozen=True, slots=True)
class Registration:
    """Which Service answers for ``external.metrics.k8s.io``."""

    service: str = "leadtime"
    namespace: str = "leadtime"
    certificate: str | None = "leadtime/leadtime-serving"
    """NAMESPACE/NAME of the cert-manager Certificate whose CA is injected."""

    ca_bundle: str = ""
    """The CA in base64, where nothing injects it."""


def scaled_objects(policies: Sequence[Policy], scaler: Scaler) -> str:
    """Return a ScaledObject for each policy, after what they are authenticated with."""
    spaces = dict.fromkeys(policy.metadata.namespace for policy in policies)
    if scaler.secret is None:
        spaces = {}
    return _documents(
        (
            *(_authentication(space, scaler) for space in spaces),
            *(_scaled_object(policy, scaler) for policy in policies),
        )
    )


def autoscalers(policies: Sequence[Policy]) -> str:
    """Return a HorizontalPodAutoscaler for each policy."""
    return _documents(_autoscaler(policy) for policy in policies)


def api_service(registration: Registration) -> str:
    """Return the APIService that makes the API server ask us."""
    if registration.ca_bundle:
        annotations, bundle = "", f"  caBundle: {registration.ca_bundle}\n"
    else:
        annotations = (
            "  annotations:\n"
            f"    cert-manager.io/inject-ca-from: {_word(registration.certificate or '')}\n"
        )
        bundle = ""
    return f"""\
# There is one such object in a cluster. Where KEDA runs, it owns it: do not apply this one there,
# `leadtime generate scaledobject` needs none.
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata:
  name: v1beta1.external.metrics.k8s.io
{annotations}spec:
  group: external.metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  service:
    name: {_word(registration.service)}
    namespace: {_word(registration.namespace)}
    port: 443
{bundle}"""


def _documents(texts: Iterable[str]) -> str:
    return "---\n".join(texts)


def _scaled_object(policy: Policy, scaler: Scaler) -> str:
    bounds, name = policy.spec.replicas, _word(policy.metadata.name)
    return f"""\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {name}
  namespace: {_word(policy.metadata.namespace)}
spec:
{_target(policy, indent=2)}
  # The policy's own bounds. KEDA's default minimum is 0, and an empty pool exports nothing that
  # would wake it; so no idleReplicaCount either, and cooldownPeriod is only about the step to 0.
  minReplicaCount: {bounds.min}
  maxReplicaCount: {bounds.max}
  pollingInterval: 5
  # On errors of the scaler: what runs stays, and never less than the policy's minimum. KEDA does
  # not get here where it cannot reach the scaler at all (keda#8056): then the HPA keeps the count.
  fallback:
    failureThreshold: 3
    replicas: {bounds.min}
    behavior: currentReplicasIfHigher
  advanced:
    horizontalPodAutoscalerConfig:
{_behavior(indent=6)}
  triggers:
{_trigger(policy, scaler)}"""


def _trigger(policy: Policy, scaler: Scaler) -> str:
    lines = []
    if policy.spec.source.interval > PUSHED_ABOVE_SECONDS:
        lines += [
            f"  # Pushed: the policy looks every {policy.spec.source.interval:g} s, and a poll on "
            "top would be too slow.",
            "  - type: external-push",
        ]
    else:
        lines.append("  - type: external")
    lines += [
        "    # The metric is the wanted count: per replica it is 1, and Value would multiply it.",
        "    metricType: AverageValue",
        "    metadata:",
        f"      scalerAddress: {_word(scaler.address)}",
    ]
    if scaler.secret is not None:
        lines.append('      enableTLS: "true"')
    lines.append(f"      policy: {_word(policy.metadata.name)}")
    if scaler.secret is not None:
        lines += ["    authenticationRef:", f"      name: {_word(scaler.secret)}"]
    return "\n".join([*lines, ""])


def _authentication(namespace: str, scaler: Scaler) -> str:
    name = _word(scaler.secret or "")
    keys = [("caCert", "ca.crt")]
    if scaler.mutual:
        keys += [("tlsClientCert", "tls.crt"), ("tlsClientKey", "tls.key")]
    refs = "".join(
        f"  - parameter: {parameter}\n    name: {name}\n    key: {key}\n" for parameter, key in keys
    )
    return f"""\
apiVersion: keda.sh/v1alpha1
kind: TriggerAuthentication
metadata:
  name: {name}
  namespace: {_word(namespace)}
spec:
  secretTargetRef:
{refs}"""


def _autoscaler(policy: Policy) -> str:
    bounds, name = policy.spec.replicas, _word(policy.metadata.name)
    return f"""\
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata:
  name: {name}
  namespace: {_word(policy.metadata.namespace)}
spec:
{_target(policy, indent=2)}
  # The policy's own bounds: a narrower maximum would refuse what the peak needs.
  minReplicas: {bounds.min}
  maxReplicas: {bounds.max}
{_behavior(indent=2)}
  metrics:
  - type: External
    external:
      metric:
        name: {METRIC}
        # One policy by its name: an HPA adds up whatever a selector matches.
        selector:
          matchLabels:
            policy: {name}
      # The metric is the wanted count: per replica it is 1, and Value would multiply it.
      target:
        type: AverageValue
        averageValue: "1"
"""


def _behavior(*, indent: int) -> str:
    text = """\
behavior:
  # tolerance 0: within the default 10 % a pool of ten or more never changes by one.
  # Kubernetes has the field by default from 1.35 on, and drops it silently before.
  # Windows 0: the published count is stabilized already, and delays would add up.
  scaleUp:
    tolerance: "0"
    stabilizationWindowSeconds: 0
  scaleDown:
    tolerance: "0"
    stabilizationWindowSeconds: 0"""
    return "\n".join(" " * indent + line for line in text.splitlines())


def _target(policy: Policy, *, indent: int) -> str:
    target: Target | None = policy.spec.target
    if target is None:
        raise AssertionError("a policy without spec.target has nothing to scale")
    lines = (
        "scaleTargetRef:",
        f"  apiVersion: {_word(target.api_version)}",
        f"  kind: {_word(target.kind)}",
        f"  name: {_word(target.name)}",
    )
    return "\n".join(" " * indent + line for line in lines)


def _word(text: str) -> str:
    """Return ``text`` as YAML reads it back: in quotes where it would be something else."""
    return text if _PLAIN.fullmatch(text) and text not in _WORDS else json.dumps(text)
