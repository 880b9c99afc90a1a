"""A fleet as a Prometheus remembers it: two questions a tick, however many replicas there are."""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.controller.ports import Clock
from adapter.fleet.assemble import FleetMemory, Roster, Target, assemble
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.sources.live import Read
from adapter.sources.prometheus_api import PrometheusApi, PrometheusError, Series
from adapter.sources.prometheus_preflight import nothing_found
from adapter.sources.prometheus_series import (
    Remembered,
    Scrape,
    remembered,
    selector,
    series_names,
    up_selector,
)

EXPLAIN_EVERY: Final = Seconds(60.0)
"""Why nothing is found takes a few questions more: they are asked so often at the most."""

_EVER: Final = Seconds(float("inf"))


@dataclass(frozen=True, slots=True)
class Question:
    """Which series are the fleet's."""

    engine: str
    interval: Seconds
    labels: Mapping[str, str] = field(default_factory=dict)
    replica_label: str | None = None

    @property
    def window(self) -> Seconds:
        """Return how far back is asked: two scrapes, if they are not rarer than the interval."""
        return Seconds(2 * self.interval)

    @property
    def engines(self) -> str:
        """Return the selector of the engines' series."""
        return selector(series_names(self.engine), self.labels)


class PrometheusFleet:
    """The fleet behind one policy, out of a Prometheus.

    Times are those of the scrapes, so that an old sample grows old here as well. When there is no
    answer, or not all of it, every replica that was known has a gap that says why.
    """

    def __init__(self, api: PrometheusApi, question: Question, read: Read, *, clock: Clock) -> None:
        self._api, self._question, self._read, self._clock = api, question, read, clock
        self._memory = FleetMemory()
        self._samples: dict[str, Reading | Gap] = {}
        self._targets: tuple[Target, ...] = ()
        self._jobs: frozenset[str] = frozenset()
        self._blind = True
        self._explained: tuple[Timestamp, Gap] | None = None

    async def snapshot(self, at: Timestamp) -> FleetSnapshot:
        """Ask, and return what was scraped last of every replica."""
        try:
            found = await self._ask()
        except PrometheusError as error:
            return self._without(Gap(self._clock.now(), error.cause, str(error)), at)
        if not found:
            return self._without(await self._nothing(at), at, known=False)
        self._explained = None
        self._targets = tuple(_target(one) for one in found)
        self._jobs = frozenset(one.job for one in found if one.latest is not None) or self._jobs
        latest, previous = await asyncio.to_thread(self._readings, found)
        if self._blind:
            # the window holds two scrapes: rates need not wait for the second question
            self._assembled(previous, at, stale_after=_EVER)
        self._samples, self._blind = latest, False
        return self._assembled(latest, at, stale_after=self._question.window)

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def _ask(self) -> tuple[Remembered, ...]:
        question = self._question
        ups, found = await _both(
            self._api.query(up_selector(question.labels)),
            self._api.query(f"{question.engines}[{round(question.window * 1000)}ms]"),
        )
        return await asyncio.to_thread(
            remembered, ups, found, replica_label=question.replica_label, jobs=self._jobs
        )

    async def _nothing(self, at: Timestamp) -> Gap:
        """Return why there is nothing; the reason is looked for once a minute."""
        if self._explained is None or at - self._explained[0] >= EXPLAIN_EVERY:
            try:
                why = await nothing_found(
                    self._api, self._question.engine, self._question.labels, at=at
                )
                gap = Gap(at, Cause.NO_ENGINE, f"{self._api.name}: {why}")
            except PrometheusError as error:
                return Gap(at, error.cause, str(error))
            self._explained = (at, gap)
        return self._explained[1]

    def _without(self, gap: Gap, at: Timestamp, *, known: bool = True) -> FleetSnapshot:
        """Return the known fleet, silent; or the Prometheus itself in its place."""
        self._blind = True
        if not known or not self._targets:
            self._targets = (Target(uid=self._api.name, name=self._api.name, url=""),)
        gaps = {target.uid: gap for target in self._targets}
        return self._assembled(gaps, at, stale_after=self._question.window)

    def _readings(
        self, found: tuple[Remembered, ...]
    ) -> tuple[dict[str, Reading | Gap], dict[str, Reading | Gap]]:
        """Return the last sample of every replica, and the one before where that is wanted."""
        latest = {one.uid: self._latest(one) for one in found}
        if not self._blind:
            return latest, {}
        previous = {
            one.uid: latest[one.uid]
            if one.previous is None or isinstance(latest[one.uid], Gap)
            else self._reading(one, one.previous)
            for one in found
        }
        return latest, previous

    def _latest(self, one: Remembered) -> Reading | Gap:
        if one.up is False:
            return Gap(
                self._clock.now(),
                Cause.UNREACHABLE,
                f"{one.name}: up is 0: the Prometheus gets no metrics from it; it is still "
                f"loading, hung or gone",
            )
        if one.latest is None:
            return Gap(
                self._clock.now(),
                Cause.STALE,
                f"{one.name}: up, but without a sample of an engine in the last "
                f"{self._question.window:g} s: it is scraped less often than "
                f"source.prometheus.interval says, or its metrics are off",
            )
        known = self._samples.get(one.uid)
        if isinstance(known, Reading) and known.at == one.latest.at:
            return known
        return self._reading(one, one.latest)

    def _reading(self, one: Remembered, scrape: Scrape) -> Reading | Gap:
        return self._read(scrape.body, at=scrape.at, target=one.name)

    def _assembled(
        self, samples: Mapping[str, Reading | Gap], at: Timestamp, *, stale_after: Seconds
    ) -> FleetSnapshot:
        fleet, self._memory = assemble(
            Roster(self._targets), samples, self._memory, at=at, stale_after=stale_after
        )
        return fleet


async def _both(
    first: Coroutine[None, None, tuple[Series, ...]],
    second: Coroutine[None, None, tuple[Series, ...]],
) -> tuple[tuple[Series, ...], tuple[Series, ...]]:
    """Return what both yield; the failure of one does not leave the other running."""
    tasks = [asyncio.ensure_future(one) for one in (first, second)]
    try:
        one, other = await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
    return one, other


def _target(one: Remembered) -> Target:
    return Target(uid=one.uid, name=one.name, url="")
