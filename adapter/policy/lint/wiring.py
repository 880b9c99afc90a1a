"""Rules over what a policy is connected to: signals, target and model."""

import re
from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.lint.rule import Rule
from adapter.policy.load import PlacedPolicy

_LABEL_VALUE: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]")

NO_SIGNALS: Final = Code(
    "LT140",
    Severity.ERROR,
    "every signal is off",
    "Without a signal there is no demand, and the count could only ever be the minimum. To fix "
    "the count on purpose, set replicas.min and replicas.max alike.",
)
NO_TARGET: Final = Code(
    "LT141",
    Severity.ERROR,
    "spec.target is missing",
    "Pods are found through the scale target, and the HPA's object is checked against it. Only a "
    "static source, whose replicas are listed by hand, can do without.",
)
MODEL_NOT_SELECTABLE: Final = Code(
    "LT142",
    Severity.INFO,
    "the model's name cannot stand in a label selector",
    "Label values hold letters, digits, '-', '_' and '.', 63 at the most. An HPA therefore "
    "cannot select by such a model's name; it selects the policy by its own name.",
)


def _no_signals(placed: PlacedPolicy) -> Iterator[Finding]:
    signals = placed.policy.spec.signals
    if signals.queue is None and signals.kv_cache is None and signals.ttft is None:
        yield placed.finding(
            "signals",
            NO_SIGNALS,
            message="every signal is off: there is nothing to scale by",
            fix="queue: {}",
        )


def _no_target(placed: PlacedPolicy) -> Iterator[Finding]:
    spec = placed.policy.spec
    if spec.target is None and spec.source.static is None:
        yield placed.finding(
            "target",
            NO_TARGET,
            message="spec has no target, which only a static source can do without",
            fix=f"target: {{kind: Deployment, name: {placed.policy.metadata.name}}}",
        )


def _model_not_selectable(placed: PlacedPolicy) -> Iterator[Finding]:
    model = placed.policy.spec.model
    if model is not None and not _LABEL_VALUE.fullmatch(model):
        yield placed.finding(
            "model",
            MODEL_NOT_SELECTABLE,
            message="no label selector can carry this model's name",
            note=f"let the HPA select policy: {placed.policy.metadata.name}",
        )


WIRING: Final = (
    Rule(NO_SIGNALS, _no_signals),
    Rule(NO_TARGET, _no_target),
    Rule(MODEL_NOT_SELECTABLE, _model_not_selectable),
)
"""The family, by number."""
