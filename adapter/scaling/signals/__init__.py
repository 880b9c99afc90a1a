"""One file per signal: its YAML section and its demand. To add one: its file, one line here."""

from adapter.scaling.demand import Demand
from adapter.scaling.section import Section
from adapter.scaling.signals.kv_cache import KvCacheSection
from adapter.scaling.signals.queue import QueueSection
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.view import View


class Signals(Section):
    """``signals:``; a signal is on when its section is there, and all three are by default."""

    queue: QueueSection | None = QueueSection()
    """Work in flight and its arrival; ``null`` turns it off."""

    kv_cache: KvCacheSection | None = KvCacheSection()
    """KV-cache pressure, counted only while requests wait or are preempted; ``null``: off."""

    ttft: TtftSection | None = TtftSection()
    """Time to first token against its objective; ``null`` turns it off."""

    def demands(self, view: View) -> tuple[Demand, ...]:
        """Return what each signal that is on asks for."""
        sections = (self.queue, self.kv_cache, self.ttft)
        return tuple(section.demand(view) for section in sections if section is not None)
