"""The work that a replica carries: raised near the level, lowered by what comes late below it."""

import math
from dataclasses import replace

import pytest

from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.carried import FALL, FIRST_RISE, LEAST, MOST_FALL, RISE, learned_carried
from adapter.scaling.carrying import SIZES, carried_at, place_of, replicas_for
from adapter.scaling.demand import Demand
from adapter.scaling.offered import TOKENS, Offered
from adapter.scaling.progress import judge
from adapter.scaling.signals.queue import QueueSection
from adapter.scaling.signals.ttft import TtftSection
from adapter.scaling.state import LEVELS, Carried, RatePoint, ScalingState, TtftPoint
from adapter.scaling.view import View, look
from tests.build import T0, a_fleet, serving, silent

PROMISE = TtftSection(objective="2s", quantile=0.95)
BOUNDS = (1.0, 2.0, 4.0)
FAST, SLOW, LATE = (100.0, 100.0, 100.0, 100.0), (0.0, 100.0, 100.0, 100.0), (0.0,) * 3 + (100.0,)
TICK = 5.0
FLAT = (1000.0,) * LEVELS


def known(**more: object) -> Carried:
    """Return a thousand tokens per second for each replica, whatever the size of the pool."""
    facts: dict[str, object] = {
        "unit": TOKENS,
        "version": "v1",
        "levels": FLAT,
        "late": True,
        "proven": 1000.0,
    }
    return Carried(**(facts | more))  # type: ignore[arg-type]


def offered(rate: float, *, seconds: float = 120.0, unit: str = TOKENS) -> Offered:
    return Offered(unit, calm=rate, recent=rate, sudden=rate, each=100.0, seconds=seconds)


def seen(
    each: float | None = 900.0,
    counts: tuple[float, ...] = FAST,
    *,
    pool: int = 4,
    queued: bool = False,
    waiting: int = 0,
    fleet: FleetSnapshot | None = None,
    seconds: float = 120.0,
    at: float = T0,
) -> View:
    """Return a tick in which every one of ``pool`` replicas was offered ``each``."""
    shown = fleet or a_fleet(*serving(pool, running=5, waiting=waiting))
    view = look(judge(shown, {}), ScalingState(), lead=Seconds(240.0), target=10)
    point = RatePoint(Timestamp(at), TICK, 50.0, 50.0, pool, queued=queued)
    return replace(
        view,
        rates=(point,),
        offered=None if each is None else offered(each * pool, seconds=seconds),
        queued_lately=queued,
        first_tokens=(TtftPoint(T0, BOUNDS, counts, 50.0, pool),) if counts else (),
    )


def after(view: View, before: Carried | None = None) -> Carried:
    return learned_carried(known() if before is None else before, view, ttft=PROMISE)


def at_four(carried: Carried) -> float:
    return carried_at(carried, 4)


def count_of(view: View) -> float:
    """Return the tokens that stand for the tick: as many as came, or as usually come."""
    assert view.offered is not None
    return max(100.0, view.offered.requests * TICK)


def test_in_time_near_the_level_raises_it_slowly_and_faster_before_anything_was_late() -> None:
    assert at_four(after(seen())) == pytest.approx(1000 * math.exp(TICK / RISE))
    first = after(seen(), known(late=False))
    assert at_four(first) == pytest.approx(1000 * math.exp(TICK / FIRST_RISE))


def test_a_rate_above_the_level_that_is_in_time_is_carried() -> None:
    moved = TICK / RISE + math.log(1.5) * (1 - math.exp(-TICK / 120))

    assert at_four(after(seen(1500.0))) == pytest.approx(1000 * math.exp(moved))


@pytest.mark.parametrize(
    "view",
    [
        seen(600.0),
        seen(0.0),
        seen(900.0, SLOW),
        seen(900.0, LATE),
        seen(1100.0, LATE, queued=True),
        seen(900.0, (0.0,) * 4),
        seen(900.0, ()),
        seen(fleet=a_fleet(*serving(3, running=5), *silent(1))),
        seen(fleet=a_fleet(*serving(3, running=5), *serving(1, prefix="x", waiting=50))),
    ],
    ids=[
        "far below the level",
        "nothing arrives",
        "in time without a margin",
        "late without a queue: a long prompt",
        "late beyond the level: too small a pool",
        "nobody got a first token in a quiet tick",
        "no first tokens",
        "silent",
        "skewed",
    ],
)
def test_what_moves_no_level(view: View) -> None:
    before = known(levels=FLAT)

    taught = after(view, before).levels

    if view.first_tokens and not view.first_tokens[0].counts[-1]:
        assert taught == pytest.approx(FLAT, rel=TICK / RISE * 1.01)
    else:
        assert taught == FLAT


def test_lost_replicas_and_a_policy_without_a_promise_teach_nothing() -> None:
    view = seen()
    lost = replace(view, lost=view.serving[:1])

    assert after(lost).levels == FLAT
    assert learned_carried(known(), view, ttft=None).levels == FLAT


def test_late_below_the_level_lowers_it_by_its_share() -> None:
    counts = (95.0, 95.0, 95.0, 100.0)
    view = seen(900.0, counts, queued=True, waiting=1)

    lowered = after(view, known(late=False))

    assert lowered.late
    share = 5 / count_of(view)
    assert at_four(lowered) == pytest.approx(1000 * math.exp(-share * TICK / FALL))


def test_the_share_late_inside_a_bucket_is_linear() -> None:
    promise = TtftSection(objective="3s", quantile=0.95)
    view = seen(900.0, (90.0, 90.0, 100.0, 100.0), queued=True)

    lowered = learned_carried(known(), view, ttft=promise)

    share = 5 / count_of(view)
    assert at_four(lowered) == pytest.approx(1000 * math.exp(-share * TICK / FALL))


def test_the_promise_beyond_the_last_bucket_is_judged_by_what_lies_beyond() -> None:
    promise = TtftSection(objective="9s", quantile=0.95)

    lowered = learned_carried(known(), seen(900.0, LATE, queued=True), ttft=promise)

    assert at_four(lowered) < 1000


def test_one_tick_takes_no_more_than_a_quarter() -> None:
    view = seen(900.0, (0.0, 0.0, 0.0, 50_000.0), queued=True)
    long = replace(view, rates=(replace(view.rates[0], seconds=600.0),))

    assert at_four(after(long)) == pytest.approx(1000 * math.exp(-MOST_FALL))


def test_the_past_of_an_overrun_is_no_lesson_until_the_queue_is_gone() -> None:
    over = after(seen(1100.0, LATE, queued=True, waiting=9))
    draining = after(seen(800.0, LATE, queued=True), over)
    waiting = after(seen(800.0, FAST, queued=True, waiting=1), draining)
    calm = after(seen(600.0, FAST, queued=True), waiting)

    assert over.overrun
    assert draining.overrun
    assert draining.levels == FLAT
    assert waiting.overrun
    assert not calm.overrun
    assert at_four(after(seen(800.0, LATE, queued=True), calm)) < 1000


def test_an_objective_that_cannot_be_met_stops_at_a_quarter_of_what_was_carried() -> None:
    level = known()
    for _ in range(2000):
        view = seen(0.9 * at_four(level), LATE, queued=True)
        level = after(view, level)

    assert at_four(level) == pytest.approx(LEAST * level.proven, rel=0.01)
    assert 850 < level.proven < 1000
    low = known(levels=(1.0,) * LEVELS)
    assert after(seen(0.5, LATE, queued=True), low).levels == low.levels


def test_neighbours_take_a_part_and_no_larger_pool_carries_less() -> None:
    raised = after(seen(1500.0, pool=4)).levels
    lowered = after(seen(900.0, LATE, pool=4, queued=True)).levels

    for levels in (raised, lowered):
        assert list(levels) == sorted(levels)
    here = place_of(4)
    assert 1000 < raised[0] < raised[here - 1] < raised[here] == raised[-1]
    assert lowered[0] == lowered[here] < lowered[here + 1] < lowered[-1] < 1000


def test_the_first_lesson_is_what_is_served_in_time_for_a_minute() -> None:
    taught = after(seen(500.0, pool=2), Carried())

    assert carried_at(taught, 2) == pytest.approx(500)
    assert carried_at(taught, 1) == pytest.approx(500 * 0.7 / 0.9)
    assert carried_at(taught, 100) == pytest.approx(500 / 0.9)
    assert taught.arriving == 1000
    for view in (seen(seconds=30.0), seen(0.0), seen(counts=SLOW), seen(counts=LATE)):
        assert after(view, Carried()).levels == ()


def test_work_in_another_unit_begins_anew_and_an_old_tick_teaches_nothing() -> None:
    view = replace(seen(), offered=offered(40.0, seconds=30.0, unit="requests"))

    assert after(view) == Carried(unit="requests", arriving=40.0, proven=10.0, version="v1")
    for idle in (seen(None), seen(at=T0 - 5), replace(seen(), rates=())):
        assert after(idle) == known()


@pytest.mark.parametrize(
    ("rate", "replicas"), [(0, 0), (250, 0.5), (500, 1), (1100, 1.5), (1700, 2), (3000, 3)]
)
def test_replicas_for_a_rate_follow_the_size_of_the_pool(rate: float, replicas: float) -> None:
    """At half of 1000, 1700 and 2000 a pool of 1, 2 and 3 carries 500, 1700 and 3000."""
    levels = (1000.0, 1700.0, *(2000.0 for _ in SIZES[2:]))

    assert replicas_for(known(levels=levels), rate, headroom=0.5) == pytest.approx(replicas)


def test_more_work_never_needs_fewer_replicas() -> None:
    levels = tuple(1000.0 * (1.1**place) for place in range(LEVELS))
    asked = [replicas_for(known(levels=levels), 100.0 * n, headroom=0.9) for n in range(4000)]

    assert asked == sorted(asked)
    assert (place_of(0), place_of(5), place_of(10_000)) == (0, 3, LEVELS - 1)


def demanded(section: QueueSection, carried: Carried, **more: object) -> Demand:
    view = seen(**more)  # type: ignore[arg-type]
    return section.demand(replace(view, carried=carried, elsewhere=30.0))


def test_the_demand_is_work_over_what_is_carried_and_says_so() -> None:
    demand = demanded(QueueSection(headroom=0.5), known())

    assert demand.replicas == pytest.approx(3600 / 500)
    assert demand.because == ("3600 tokens/s arrive / (1000 x 0.5) per replica of 4, learned")
    assert demand.evidence["arriving_work_per_second"] == 3600
    assert demand.evidence["replica_work_per_second"] == 1000


def test_a_backlog_is_worked_off_over_four_load_times() -> None:
    demand = demanded(QueueSection(headroom=0.5), known(), waiting=24)

    assert demand.replicas == pytest.approx((3600 + 96 * 100 / 960) / 500)
    assert " and 10/s drain 96 waiting / " in demand.because


def test_before_a_limit_was_met_work_only_talks_down() -> None:
    """20 in flight over 10 x 0.5 are 4, and 30 elsewhere 6 more; 1200 tokens/s need 2.4."""
    young = known(late=False)

    assert demanded(QueueSection(headroom=0.5), young).replicas == pytest.approx(4 + 6)
    light = demanded(QueueSection(headroom=0.5), young, each=300.0)
    assert light.replicas == pytest.approx(2.4 + 6)
    assert "more was never tried" in light.because


def test_a_configured_target_overrides_what_was_learned() -> None:
    demand = demanded(QueueSection(target_in_flight=10, headroom=0.5), known())

    assert demand.replicas == pytest.approx(4 + 6)


def test_unknown_work_is_sized_by_what_is_in_flight() -> None:
    assert demanded(QueueSection(headroom=0.5), known(), each=None).replicas == pytest.approx(10)


def test_another_version_begins_anew() -> None:
    """What the old release carried says nothing of the new one."""
    new = seen(fleet=a_fleet(*serving(4, running=5, version="v2")))

    lesson = after(new, known(late=True))

    assert (lesson.version, lesson.late) == ("v2", False)
    assert lesson.levels != FLAT


def test_two_versions_together_teach_nothing() -> None:
    mixed = a_fleet(*serving(2, running=5), *serving(2, prefix="t", running=5, version="v2"))

    assert after(seen(fleet=mixed)) == known()


def test_a_trace_of_a_late_token_is_none() -> None:
    """A fluid's amounts are never quite 0; a thousandth of a request is nobody."""
    assert at_four(after(seen(counts=(99.999, 99.999, 100.0, 100.0)))) == at_four(after(seen()))
