"""The aggregated API ``external.metrics.k8s.io/v1beta1``: its documents, its grammar, its guards.

What belongs: what a Kubernetes API server or an HPA would find in the Go implementation as well.
What does not: sockets and routing (``serving.app``, ``serving.server``).
"""

from typing import Final

GROUP: Final = "external.metrics.k8s.io"
VERSION: Final = "v1beta1"
