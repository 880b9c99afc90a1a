"""Rules over the pods of a scale target: how they end, and how long they may take to begin."""

import re
from collections.abc import Iterator
from typing import Final

from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.kinds import WORKLOADS
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import (
    KubeObject,
    Landscape,
    containers,
    engine_in,
    engine_of,
    flag,
    in_front,
    pod_of,
    words_of,
)
from adapter.policy.scaler import our_metrics
from adapter.policy.tree import Path
from adapter.scaling.duration import format_duration

_DEFAULT_GRACE: Final = 30.0
_DEFAULT_LOAD_TIME: Final = 240.0
_DRAIN_FLAGS: Final = ("shutdown-timeout", "graceful-timeout", "timeout-graceful-shutdown",
                       "exit-timeout-secs")  # fmt: skip
"""vLLM's, gunicorn's, uvicorn's and Triton's names for how long requests may still run."""

DRAIN_CHAIN: Final = Code(
    "LT301",
    Severity.ERROR,
    "streams are cut when a replica is removed",
    "A replica that goes must finish what it has in hand: terminationGracePeriodSeconds must "
    "be above the preStop wait plus the engine's own drain. vLLM aborts everything at SIGTERM "
    "unless it is started with `--shutdown-timeout`.",
)
PROBE_BUDGET: Final = Code(
    "LT302",
    Severity.WARNING,
    "probes that do not fit the load time",
    "Without a startup probe that lasts as long as a load, a liveness probe kills the engine "
    "while it loads, for ever. Without a readiness probe, traffic arrives before the model "
    "does. A probe timeout of 1 s, the default, fails whenever the engine is busy: SGLang's "
    "health takes a second.",
)


def _engines(landscape: Landscape) -> Iterator[tuple[KubeObject, Path]]:
    """Yield the containers that serve a model, or seem to."""
    for workload in landscape.of_kind(*WORKLOADS):
        ours = any(our_metrics(one) for one in landscape.scalers_of(workload))
        known = ours or landscape.policy_for(workload) is not None
        if not known and not engine_of(workload):
            continue
        paths = list(containers(workload))
        serving = [path for path in paths if engine_in(workload, path)]
        yield from ((workload, path) for path in serving or paths[:1])


def _fronts(landscape: Landscape) -> Iterator[tuple[KubeObject, Path]]:
    """Yield the containers through which streams go on their way."""
    for workload in landscape.of_kind(*WORKLOADS):
        yield from ((workload, path) for path in containers(workload) if in_front(workload, path))


def _drain_chain(landscape: Landscape) -> Iterator[Finding]:
    for workload, path in dict.fromkeys((*_engines(landscape), *_fronts(landscape))):
        where: Path = (*pod_of(workload), "terminationGracePeriodSeconds")
        said = workload.number(*where)
        grace = _DEFAULT_GRACE if said is None else said
        before = _before_stop(workload, path)
        words = words_of(workload, path)
        drains = {name: value for name in _DRAIN_FLAGS if (value := _seconds(flag(words, name)))}
        drain = max(drains.values(), default=0.0)
        absent = " (the default)" if said is None else ""
        if before + drain > 0 and before + drain >= grace:
            yield workload.finding(
                where,
                DRAIN_CHAIN,
                message=f"{workload.shown}: preStop {before:g} s and drain {drain:g} s do not end "
                f"within the grace period of {grace:g} s{absent}",
                note="what still runs is killed",
                fix=f"terminationGracePeriodSeconds: {before + drain + 10:g}",
            )
        elif _is_vllm(workload, path) and flag(words, "shutdown-timeout") is None:
            yield workload.finding(
                path,
                DRAIN_CHAIN,
                message=f"{workload.shown}: vLLM without --shutdown-timeout aborts every request "
                "at SIGTERM",
                fix=f'args: [--shutdown-timeout, "{max(1, int(grace - before - 5))}"]',
            )
        elif _cut_short(drains, grace - before):
            name, value = min(drains.items(), key=lambda pair: pair[1])
            yield workload.finding(
                path,
                DRAIN_CHAIN,
                message=f"{workload.shown}: --{name} {value:g} ends streams long before the grace "
                f"period of {grace:g} s",
                fix=f"--{name} {max(1, int(grace - before - 10))}",
            )


def _cut_short(drains: dict[str, float], left: float) -> bool:
    """Return whether a server's own timeout makes the grace period pointless: under a tenth."""
    return bool(drains) and 10 * min(drains.values()) < left


def _is_vllm(workload: KubeObject, path: Path) -> bool:
    words = words_of(workload, path)
    if in_front(workload, path):
        return False
    serves = "serve" in words or any("vllm.entrypoints" in word for word in words)
    return "vllm" in workload.text(*path, "image").lower() or (serves and "vllm" in words)


def _before_stop(workload: KubeObject, path: Path) -> float:
    hook = (*path, "lifecycle", "preStop")
    slept = workload.number(*hook, "sleep", "seconds")
    if slept is not None:
        return slept
    command = workload.value(*hook, "exec", "command")
    text = " ".join(map(str, command)) if isinstance(command, list) else ""
    found = re.search(r"\bsleep ([0-9]+(?:\.[0-9]+)?)([sm])?\b", text)
    return 0.0 if found is None else float(found[1]) * (60 if found[2] == "m" else 1)


def _seconds(text: str | None) -> float:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)s?", text or "")
    return 0.0 if found is None else float(found[1])


def _probe_budget(landscape: Landscape) -> Iterator[Finding]:
    for workload, path in _engines(landscape):
        placed = landscape.policy_for(workload)
        load = _DEFAULT_LOAD_TIME if placed is None else placed.policy.spec.load_time.default
        yield from _startup(workload, path, load)
        if workload.node(*path, "readinessProbe") is None:
            yield workload.finding(
                path,
                PROBE_BUDGET,
                message=f"{workload.shown}: no readinessProbe: traffic comes before the model",
                fix="readinessProbe: a real generation, as leadtime probe does",
            )
        for kind in ("startupProbe", "livenessProbe", "readinessProbe"):
            if workload.node(*path, kind) is not None and _hasty(workload, (*path, kind)):
                yield workload.finding(
                    (*path, kind, "timeoutSeconds"),
                    PROBE_BUDGET,
                    message=f"{workload.shown}: {kind} times out after 1 s, and a busy engine "
                    "answers later",
                    fix="timeoutSeconds: 5",
                )


def _hasty(workload: KubeObject, path: Path) -> bool:
    said = workload.number(*path, "timeoutSeconds")
    asks = workload.node(*path, "httpGet") is not None or workload.node(*path, "exec") is not None
    return asks and (1.0 if said is None else said) <= 1


def _startup(workload: KubeObject, path: Path, load: float) -> Iterator[Finding]:
    kind = "startupProbe" if workload.node(*path, "startupProbe") is not None else "livenessProbe"
    if workload.node(*path, kind) is None:
        return
    budget = _budget(workload, (*path, kind))
    if budget >= load:
        return
    failures = -(-load * 1.5 // _field(workload, (*path, kind), "periodSeconds", 10))
    restart = "kills it while it loads" if kind == "livenessProbe" else "gives it up while it loads"
    fix = f"startupProbe: {{periodSeconds: 10, failureThreshold: {-(-load * 1.5 // 10):g}}}"
    yield workload.finding(
        (*path, kind, "failureThreshold"),
        PROBE_BUDGET,
        message=f"{workload.shown}: {kind} allows {format_duration(budget)} and a replica takes "
        f"{format_duration(load)} to load: it {restart}",
        fix=fix if kind == "livenessProbe" else f"failureThreshold: {failures:g}",
    )


def _budget(workload: KubeObject, path: Path) -> float:
    initial = _field(workload, path, "initialDelaySeconds", 0)
    period = _field(workload, path, "periodSeconds", 10)
    return initial + period * _field(workload, path, "failureThreshold", 3)


def _field(workload: KubeObject, path: Path, key: str, default: float) -> float:
    said = workload.number(*path, key)
    return said or default


PODS: Final = (
    AroundRule(DRAIN_CHAIN, _drain_chain),
    AroundRule(PROBE_BUDGET, _probe_budget),
)
"""The family, by number."""
