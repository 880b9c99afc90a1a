"""Our policy as it stands, and with one part of it taken away or fixed: what each is worth."""

from collections.abc import Mapping
from typing import Any, Final

from adapter.policy.document import Policy

OURS: Final = "leadtime"

ABLATIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    # Nothing is learned from first tokens either, so not what work a replica carries: more is
    # taken away than the demand that a late first token makes.
    "leadtime-no-ttft": {"signals": {"ttft": None}},
    "leadtime-fixed-capacity": {"signals": {"queue": {"targetInFlight": 16}}},
    "leadtime-delay-300s": {"scaleDown": {"delay": "5m"}},
    "leadtime-not-only-idle": {"scaleDown": {"onlyIdle": False}},
}
"""What each says in its ``spec`` beside the bounds. There is none without the trend of first
tokens: no policy can turn it off by itself."""


def policy_named(name: str, *, most: int) -> Policy:
    """Return ours or one of its ablations; what it does not say is the default.

    Raises:
        KeyError: no such policy.
    """
    said = {} if name == OURS else ABLATIONS[name]
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": "bench"},
            "spec": {
                "target": {"kind": "Deployment", "name": "bench"},
                "source": {"pods": {}},
                "replicas": {"min": 1, "max": most},
                **said,
            },
        }
    )
