"""KV cache: confirms a shortage that the queue shows, never drives by itself."""

from pydantic import Field

from adapter.scaling.section import Section


class KvCacheSection(Section):
    """``signals.kvCache:``."""

    target: float = Field(default=0.8, gt=0, le=1)
    """Mean KV-cache usage per replica to stay at, as a ratio 0..1."""
