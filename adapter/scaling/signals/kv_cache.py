"""KV cache: confirms a shortage that the queue shows, never drives by itself."""

from typing import Final

from pydantic import Field

from adapter.fleet.metrics import Metric
from adapter.scaling.demand import Demand
from adapter.scaling.section import Section
from adapter.scaling.view import View

MOST: Final = 0.5
"""What waits counts for half of what runs at the most: a full cache in front of a long queue asks
for more as long as the queue lasts, and the queue signal knows how long that should be."""


class KvCacheSection(Section):
    """``signals.kvCache:``."""

    target: float = Field(default=0.8, gt=0, le=1)
    """Mean KV-cache usage per replica to stay at, as a ratio 0..1."""

    def demand(self, view: View) -> Demand:
        """Return the replicas that the KV cache in use, and soon in use, needs.

        Counts only while requests wait or are preempted: with offload, or with a prefix cache
        kept warm, the cache is full on purpose and says nothing about load. What waits will take
        its share of a full batch's usage, at most half as much again as is in use. (Its share of
        the running batch would say the same, but fall when more runs.)
        """
        metric = Metric.KV_CACHE_USAGE
        usages = [u for replica in view.serving if (u := replica.value(metric)) is not None]
        if not usages:
            never = view.unserved(metric)
            because = "the engine exports no KV-cache usage" if never else "no usage is known"
            return Demand("kvCache", None, because, unserved=never)
        mean = sum(usages) / len(usages)
        preempted = _preempted(view)
        if view.waiting <= 0 and preempted <= 0:
            return Demand(
                "kvCache", None, f"usage {mean:.2f}, but nothing waits and nothing is preempted"
            )
        waiting_share = min(MOST, view.waiting / (len(usages) * view.target))
        replicas = len(view.serving) * mean * (1.0 + waiting_share) / self.target
        return Demand(
            "kvCache",
            replicas,
            f"{len(view.serving)} x usage {mean:.2f} x {1.0 + waiting_share:.2f} for what waits"
            f" / {self.target:g}",
            evidence={
                "kv_cache_usage_ratio": mean,
                "waiting_requests": view.waiting,
                "preempted_requests": preempted,
            },
        )


def _preempted(view: View) -> float:
    """Return the preemptions between the last two readings, over the replicas that tell."""
    told = (view.passed.get(replica.uid) for replica in view.serving)
    return sum(one.increase(Metric.PREEMPTIONS) or 0.0 for one in told if one is not None)
