"""Opens the source that a policy asks for; what this build cannot read, it says."""

from functools import partial
from pathlib import Path
from typing import Final

from adapter.controller.errors import SourceError
from adapter.controller.ports import Clock, FleetSource
from adapter.fleet.assemble import Target
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Gap
from adapter.fleet.units import Seconds
from adapter.policy.document import Policy, PrometheusSource, StaticSource
from adapter.sources.directory import RecordedTargets
from adapter.sources.live import PROMPT, LiveFleet
from adapter.sources.prometheus import PrometheusFleet, Question
from adapter.sources.prometheus_api import Access, PrometheusApi
from adapter.sources.prometheus_series import check_labels
from adapter.sources.scrape import Scraper
from adapter.sources.sharing import SharedScrapes
from adapter.sources.static import StaticTargets
from adapter.sources.targets import Fetch, Targets

LONGEST_TIMEOUT: Final = Seconds(10.0)
"""No engine that takes longer is worth waiting for, whatever the interval."""

SHORTEST_STALENESS: Final = Seconds(5.0)
"""A reading may be at least this old: with intervals of a second, one hiccup is no gap."""

NEVER: Final = Seconds(float("inf"))


class LocalSources:
    """Sources that need no cluster: fixed addresses, recorded dumps and a Prometheus."""

    def __init__(self, scraper: Scraper, clock: Clock) -> None:
        self._scrapes, self._clock = SharedScrapes(scraper), clock

    def open(self, policy: Policy) -> FleetSource:
        """Return the source of ``policy``.

        Raises:
            SourceError: it asks for pods, or for labels that are none.
        """
        if policy.spec.source.prometheus is not None:
            return self._asked(policy, policy.spec.source.prometheus)
        static = policy.spec.source.static
        if static is None:
            raise SourceError(
                f"policy {policy.metadata.namespace}/{policy.metadata.name}: this release reads "
                f"source.static and source.prometheus; pods are not read yet"
            )
        if static.directory is not None:
            recorded = RecordedTargets(Path(static.directory), self._clock)
            return self._fleet(policy, recorded, recorded.fetch, stale_after=NEVER)
        return self.scraped(policy, StaticTargets(static.urls), timeout=_timeout(static))

    def scraped(
        self, policy: Policy, targets: Targets, *, timeout: Seconds, prompt: Seconds = PROMPT
    ) -> LiveFleet:
        """Return the fleet that ``targets`` names, scraped over HTTP; see ``LiveFleet``."""
        stale_after = Seconds(max(2 * policy.spec.source.interval, SHORTEST_STALENESS))

        async def fetch(target: Target) -> bytes | Gap:
            return await self._scrapes.fetch(target, timeout)

        return self._fleet(policy, targets, fetch, stale_after=stale_after, prompt=prompt)

    def _asked(self, policy: Policy, source: PrometheusSource) -> PrometheusFleet:
        """Return the fleet that a Prometheus tells of."""
        try:
            check_labels(source)
        except ValueError as error:
            name = f"{policy.metadata.namespace}/{policy.metadata.name}"
            raise SourceError(f"policy {name}: {error}") from error
        spec = policy.spec
        question = Question(
            spec.engine.value, source.interval, dict(source.labels), source.replica_label
        )
        return PrometheusFleet(
            PrometheusApi(Access.of(source)),
            question,
            partial(read_exposition, engine=spec.engine.value, model=spec.model),
            clock=self._clock,
        )

    def _fleet(
        self,
        policy: Policy,
        targets: Targets,
        fetch: Fetch,
        *,
        stale_after: Seconds,
        prompt: Seconds = PROMPT,
    ) -> LiveFleet:
        spec = policy.spec
        return LiveFleet(
            targets,
            fetch,
            partial(read_exposition, engine=spec.engine.value, model=spec.model),
            clock=self._clock,
            interval=spec.source.interval,
            stale_after=stale_after,
            prompt=prompt,
        )


def _timeout(static: StaticSource) -> Seconds:
    return static.timeout or Seconds(min(static.interval, LONGEST_TIMEOUT))
