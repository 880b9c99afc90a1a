"""Policies as text and as values, for the tests of the controller."""

from adapter.policy.document import Policy
from adapter.policy.load import read_files


def policy_text(name: str = "chat", *, namespace: str = "inference", top: int = 100) -> str:
    """Return the YAML of a policy over one static address."""
    return f"""\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec:
  engine: vllm
  source:
    static: {{urls: [http://127.0.0.1:1/metrics], interval: 10s}}
  replicas: {{min: 1, max: {top}}}
  signals:
    queue: {{targetInFlight: 8, headroom: 1.0}}
"""


def a_policy(name: str = "chat", *, namespace: str = "inference", top: int = 100) -> Policy:
    """Return the same as a value."""
    text = policy_text(name, namespace=namespace, top=top)
    (placed,), _ = read_files({f"{name}.yaml": text.encode()})
    return placed.policy
