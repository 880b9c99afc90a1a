"""AIBrix' APA and KPA, shipped and repaired, by peers.md sections 1.4 and 5.1."""

import dataclasses

import pytest

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.aibrix import AibrixAutoscaler, Build, Strategy
from adapter.simulator.rivals.port import Ordered, Seat
from adapter.simulator.rivals.window import Window
from tests.simulator.rivals.build import Play, ordered_once, pods, reached, seen, silent

APA = AibrixAutoscaler(Strategy.APA)
KPA = AibrixAutoscaler(Strategy.KPA)
APA_REPAIRED = AibrixAutoscaler(Strategy.APA, Build.REPAIRED)
KPA_REPAIRED = AibrixAutoscaler(Strategy.KPA, Build.REPAIRED)


def alike(usage: float, count: int):
    return pods(*[(usage, 0.0)] * count)


def test_apa_vector():
    """10 pods at KV 0.9 of 0.5 → 18."""
    assert APA.apa(0.9, current=10) == 18
    assert ordered_once(APA, seen(*alike(0.9, 10))) == 18


def test_kpa_halves_under_overload():
    """10 pods at KV 0.9, target 0.5: the mean per pod is read as a total, ⌈0.9/0.5⌉ = 2 → 5."""
    assert KPA.kpa(0.9, 0.9, current=10) == 5
    assert ordered_once(KPA, seen(*alike(0.9, 10))) == 5


def test_repaired_kpa_reads_the_total():
    assert ordered_once(KPA_REPAIRED, seen(*alike(0.9, 10))) == 18
    assert ordered_once(KPA_REPAIRED, seen(*alike(0.52, 10))) == 10


@pytest.mark.parametrize(("usage", "count"), [(0.54, 10), (0.46, 10), (0.44, 9), (0.05, 5)])
def test_apa_steps_within_tolerance_and_rates(usage, count):
    assert APA.apa(usage, current=10) == count


def test_one_overload_doubles_the_count_every_tick_while_pods_load():
    """aibrix#2670: 2 → 4 → 8 → 16 → 32; the same two pods at twice the target."""

    def world(at, ready, ordered):
        return seen(*alike(1.0, ready), *silent(ordered - ready, ready=False), at=at)

    shipped = Play(APA, world, first=2, load_time=240).until(30)
    repaired = Play(APA_REPAIRED, world, first=2, load_time=240).until(230)

    assert [count for _, count in shipped] == [4, 8, 16, 32]
    assert [count for _, count in repaired] == [4]


def test_apa_orders_four_to_twenty_within_30_seconds_and_overshoots():
    """peers.md 4: load for 20 on 4 ready replicas; the repaired one waits for each load."""

    def world(at, ready, ordered):
        usage = min(1.0, 10.0 / ready)
        return seen(*alike(usage, ready), *silent(ordered - ready, ready=False), at=at)

    changes = Play(APA, world, first=4, load_time=240).until(60, begin=10)

    assert reached(changes, 20) <= 30
    assert max(count for _, count in changes) > 20


def replayed(rule: AibrixAutoscaler, current: int) -> list[int]:
    history, out = Window(), []
    for at, wanted in ((0.0, 4), (10.0, 10), (20.0, 10), (30.0, 10), (40.0, 9)):
        history = history.plus(Timestamp(at), float(wanted), keep=rule.cooldown)
        out.append(rule.cooled(history, wanted, current=current, at=Timestamp(at)))
    return out


def test_the_cooldown_as_shipped_takes_the_least_of_300_seconds():
    """Recommendations 4, 10, 10, 10, 9 at 10 replicas → 4, 10, 10, 10, 4."""
    assert replayed(APA, 10) == [4, 10, 10, 10, 4]


def test_the_repaired_cooldown_takes_the_most():
    assert replayed(APA_REPAIRED, 10) == [4, 10, 10, 10, 10]


def test_a_single_dip_is_applied_at_once_as_shipped():
    """10 → 2 without waiting; repaired it waits for the earlier ten to grow old."""
    history = Window().plus(Timestamp(0.0), 10.0, keep=Seconds(300.0))
    history = history.plus(Timestamp(10.0), 2.0, keep=Seconds(300.0))

    assert APA.cooled(history, 2, current=10, at=Timestamp(10.0)) == 2
    assert APA_REPAIRED.cooled(history, 2, current=10, at=Timestamp(10.0)) == 10


def test_a_scrape_outage_takes_ten_replicas_to_one_in_90_seconds():
    """peers.md 1.4: a failed scrape is a load of 0, at t = 20 to 90 s."""

    def world(at, ready, ordered):
        return seen(*(alike(0.5, ordered) if at <= 0 else silent(ordered)), at=at)

    shipped = Play(APA, world, first=10, load_time=0)
    repaired = Play(APA_REPAIRED, world, first=10, load_time=0)

    changes = shipped.until(200, begin=-300)
    assert changes == [(20, 9), (30, 8), (40, 7), (50, 6), (60, 4), (70, 3), (80, 2), (90, 1)]
    assert repaired.until(200, begin=-300) == []


def test_three_of_ten_pods_that_do_not_answer_cost_two():
    """The others at 0.52 of 0.5: the mean becomes 0.364 → 8; repaired, they are left out."""
    facts = (*alike(0.52, 7), *silent(3))

    assert ordered_once(APA, seen(*facts)) == 8
    assert ordered_once(APA_REPAIRED, seen(*facts)) == 10


def test_a_panic_takes_the_larger_of_both_windows():
    """Stable 0.3, panic 0.9 as totals of one: three times is a panic."""
    one = dataclasses.replace(KPA_REPAIRED, target=0.1)

    assert one.kpa(0.3, 0.9, current=6) == 9
    assert one.kpa(0.5, 0.9, current=6) == 5
    assert one.kpa(0.45, 0.9, current=6) == 5
    assert one.kpa(0.0, 0.0, current=6) == 3


def test_kpa_goes_down_to_the_minimum_without_load():
    """aibrix#593: with no load for two windows it reaches 1."""

    def world(at, ready, ordered):
        return seen(*alike(0.0, ordered), at=at)

    changes = Play(KPA, world, first=8, load_time=0).until(360)

    assert changes[-1][1] == 1


def test_what_is_at_zero_is_left_alone():
    assert ordered_once(APA, seen(*alike(0.9, 1), spec=0)) == 0


def test_no_ready_pod_decides_nothing():
    assert ordered_once(APA, seen(*silent(2, ready=False))) == 2


def test_bounds_come_last():
    rule = Seat(APA, seen(*alike(1.0, 8), high=10))

    assert rule.wish(seen(*alike(1.0, 8), high=10)) == Ordered(10)
    assert ordered_once(APA, seen(*alike(0.0, 8), low=6)) == 6


def test_names_say_strategy_and_build():
    names = [rule.name for rule in (APA, APA_REPAIRED, KPA, KPA_REPAIRED)]

    assert names == ["aibrix-apa", "aibrix-apa-repaired", "aibrix-kpa", "aibrix-kpa-repaired"]
