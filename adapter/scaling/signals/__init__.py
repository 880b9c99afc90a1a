"""One file per signal: its YAML section and its demand. To add one: its file, one line here."""

from adapter.scaling.section import Section
from adapter.scaling.signals.kv_cache import KvCacheSection
from adapter.scaling.signals.queue import QueueSection
from adapter.scaling.signals.ttft import TtftSection


class Signals(Section):
    """``signals:``; a signal is on when its section is there, and all three are by default."""

    queue: QueueSection | None = QueueSection()
    """Work in flight and its arrival; ``null`` turns it off."""

    kv_cache: KvCacheSection | None = KvCacheSection()
    """KV-cache pressure, counted only while requests wait or are preempted; ``null``: off."""

    ttft: TtftSection | None = TtftSection()
    """Time to first token against its objective; ``null`` turns it off."""
