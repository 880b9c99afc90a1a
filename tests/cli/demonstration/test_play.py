"""Whole plays in this process: everything is real but the engines, the users and the cluster."""

import asyncio
import contextlib
import math

import pytest

from adapter.cli.demonstration import scene
from adapter.cli.demonstration.moment import Moment
from adapter.cli.demonstration.play import Options, meanwhile, play
from adapter.cli.demonstration.report import Report
from adapter.fleet.units import Seconds
from adapter.scaling.decision import Decision


class Spectator(contextlib.nullcontext[None]):
    """A screen that only keeps what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[Moment] = []

    def show(self, moment: Moment) -> None:
        self.shown.append(moment)


def options(length: float, *, patience: float = 60.0, seed: int = 1) -> Options:
    return Options(Seconds(length), speed=math.inf, patience=patience, seed=seed)


async def played(length: float, *, seed: int = 1) -> Report:
    return await play(options(length, seed=seed), Spectator())


async def test_a_minute_is_thirteen_ticks_and_four_reads():
    """Ticks at 0, 5, … 60 s, the HPA at 7, 22, 37 and 52 s; every decision is shown once."""
    spectator = Spectator()

    report = await play(options(60.0), spectator)

    assert [moment.elapsed for moment in report.moments] == [5.0 * n for n in range(13)]
    assert spectator.shown == list(report.moments)
    assert (report.reads, report.failed_reads) == (4, 0)
    assert report.played == 60
    assert report.pod_seconds >= 2 * 60


@pytest.mark.slow
async def test_the_same_seed_gives_the_same_story_to_the_byte():
    once, again, other = [(await played(240.0, seed=seed)).document() for seed in (3, 3, 4)]

    assert once == again
    assert once != other


@pytest.mark.slow
async def test_a_morning_is_served_in_time_up_to_its_peak_and_down_again():
    """Twenty minutes, 24,000 requests: 95 % in time at least, from 2 to some 12 and back to 3."""
    report = await played(1200.0)
    decisions = [moment.decision for moment in report.moments]

    assert report.attainment is not None
    assert report.attainment >= 0.95
    assert report.max_desired is not None
    assert 6 <= report.max_desired <= 14
    assert report.final_desired is not None
    assert report.final_desired < report.max_desired / 2
    assert all(2 <= decision.published <= 16 for decision in decisions)
    assert all(decision.refusal is None for decision in decisions)
    assert report.failed_reads == 0


@pytest.mark.slow
async def test_replicas_that_load_are_never_asked_for_twice():
    """What is wanted never exceeds the largest need of three minutes, the spare one included."""
    report = await played(900.0)

    needs = [_need(moment.decision) for moment in report.moments]
    for tick, moment in enumerate(report.moments):
        assert moment.decision.desired <= max(2, *needs[max(0, tick - 36) : tick + 1])
    assert max(moment.decision.census.loading for moment in report.moments) >= 2


def _need(decision: Decision) -> int:
    asked = (demand.replicas for demand in decision.demands if demand.replicas is not None)
    return math.ceil(max(asked, default=0.0)) + 1


@pytest.mark.slow
async def test_what_the_hpa_sets_is_what_was_published_before():
    """Behind its bounds and with tolerance 0 the HPA only ever follows, within 15 s."""
    report = await played(600.0)

    published = [scene.FIRST_REPLICAS]
    for moment in report.moments:
        assert moment.replicas in [*published[-4:], moment.decision.published]
        published.append(moment.decision.published)


async def test_when_patience_ends_the_report_is_of_what_was_played():
    """A day cannot be played in a tenth of a second: it ends, and says so."""
    report = await play(options(86_400.0, patience=0.1), Spectator())

    assert report.played < report.planned == 86_400
    assert report.wall < 5


async def test_a_job_that_fails_ends_the_play_with_its_own_error():
    async def fails() -> None:
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        async with meanwhile(fails(), asyncio.sleep(60)):
            await asyncio.sleep(60)


async def test_jobs_end_with_the_play():
    ended = []

    async def job() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async with meanwhile(job()):
        await asyncio.sleep(0)

    assert ended == [True]
