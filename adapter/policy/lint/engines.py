"""Rules over engines: metric names that an upgrade takes away, caches that outlive weights."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from adapter.fleet.dialect import Dialect, Name, Source
from adapter.fleet.engines import ENGINES
from adapter.policy.finding import Code, Finding, Severity
from adapter.policy.kinds import WORKLOADS
from adapter.policy.lint.rule import AroundRule
from adapter.policy.objects import KubeObject, Landscape, containers, flag, words_of
from adapter.policy.tree import Items, Keys, Node, Path

OLD_NAME: Final = Code(
    "LT501",
    Severity.WARNING,
    "a metric name that engines no longer have",
    "A query for a name that nothing exports is empty, and an empty query scales to nothing, "
    "or never. Engines rename: vLLM hides a name one minor release after deprecating it and "
    "removes it the release after. `leadtime doctor --engine-metrics` shows what an engine "
    "exports.",
)
STALE_CACHE: Final = Code(
    "LT502",
    Severity.WARNING,
    "a response cache that does not know the weights",
    "Triton's response cache is keyed by model name, version and inputs. New weights under "
    "the same version number are answered from the old ones; in redis even after a restart, "
    "and for every Triton that shares it. Raise the version with the weights, flush the "
    "cache, or turn it off.",
)

_RENAMED: Final[Mapping[str, tuple[str, str]]] = {
    "vllm:time_per_output_token_seconds": ("vllm:inter_token_latency_seconds", "0.15"),
    "vllm:num_requests_swapped": ("vllm:num_preemptions_total", "0.11"),
    "vllm:cpu_cache_usage_perc": ("vllm:kv_cache_usage_perc", "0.11"),
    "vllm:gpu_prefix_cache_hit_rate": ("vllm:prefix_cache_hits_total", "0.11"),
    "vllm:gpu_prefix_cache_queries_total": ("vllm:prefix_cache_queries_total", "0.12"),
}
"""Names that people query and the adapter itself does not need; the rest is in the dialects."""


def _old_names() -> Mapping[str, tuple[str, str]]:
    """Return the names that a release removed, with what replaced them and that release."""
    found = dict(_RENAMED)
    for dialect in ENGINES:
        for source in _sources(dialect):
            now = [name for name in source.names if not name.until]
            found |= {
                old.series: (_plain(now[0]) if now else "", old.until)
                for old in source.names
                if old.until
            }
    return found


def _sources(dialect: Dialect) -> Iterator[Source]:
    yield from dialect.sources.values()
    if dialect.ttft is not None:
        yield dialect.ttft


def _plain(name: Name) -> str:
    return name.series


OLD_NAMES: Final = _old_names()
_ANY: Final = re.compile(
    r"(?<![\w:])("
    + "|".join(sorted(map(re.escape, OLD_NAMES), key=len, reverse=True))
    + r")(?=(?:_bucket|_sum|_count)?(?!\w))"
)


def _old_name(landscape: Landscape) -> Iterator[Finding]:
    for one in landscape.objects:
        for path, text in _texts(one.node() or one.root, ()):
            for old in dict.fromkeys(_ANY.findall(text)):
                new, release = OLD_NAMES[old]
                if new and new in text:
                    continue  # `new or old` reads either
                instead = f"use {new}" if new else "leave it out"
                yield one.finding(
                    path,
                    OLD_NAME,
                    message=f"{one.shown} asks for {old}, which is gone as of {release}",
                    fix=instead,
                )


def _texts(node: Node, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield every text below ``node`` with its path."""
    if isinstance(node, Keys):
        for entry in node.entries:
            yield from _texts(entry.value, (*path, entry.key.text))
    elif isinstance(node, Items):
        for number, item in enumerate(node.items):
            yield from _texts(item, (*path, number))
    else:
        yield path, node.text


def _stale_cache(landscape: Landscape) -> Iterator[Finding]:
    for workload in landscape.of_kind(*WORKLOADS, "Pod"):
        for path in containers(workload):
            words = words_of(workload, path)
            if any("tritonserver" in word for word in words) or _image(workload, path):
                yield from _cache_of(workload, path, words)


def _image(workload: KubeObject, path: Path) -> bool:
    return "tritonserver" in workload.text(*path, "image")


def _cache_of(workload: KubeObject, path: Path, words: tuple[str, ...]) -> Iterator[Finding]:
    caches = [word for word in words if word.startswith("--cache-config=")]
    split = flag(words, "cache-config") or ""
    said = " ".join((*caches, split))
    reloads = flag(words, "model-control-mode") in {"poll", "explicit"}
    local = "local" in said or flag(words, "response-cache-byte-size") not in {None, "0"}
    if "redis" in said:
        yield workload.finding(
            path,
            STALE_CACHE,
            message=f"{workload.shown}: a redis response cache outlives the weights and is shared",
            note="same version, new weights: old answers",
            fix="raise the model version with every weight change, or drop --cache-config",
        )
    elif local and reloads:
        yield workload.finding(
            path,
            STALE_CACHE,
            message=f"{workload.shown}: a response cache beside models that are reloaded in place",
            note="same version, new weights: old answers",
            fix="raise the model version with every weight change, or drop the cache",
        )


ABOUT_ENGINES: Final = (
    AroundRule(OLD_NAME, _old_name),
    AroundRule(STALE_CACHE, _stale_cache),
)
"""The family, by number."""
