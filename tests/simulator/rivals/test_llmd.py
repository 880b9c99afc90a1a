"""llm-d's ScaledObjects, by the vectors and defects of peers.md sections 1.1 and 5.7."""

import math

import pytest

from adapter.simulator.rivals.llmd_queue import LlmdQueue
from adapter.simulator.rivals.llmd_queue_guard import LlmdQueueGuard, guarded
from adapter.simulator.rivals.llmd_saturation import LlmdSaturation
from adapter.simulator.rivals.llmd_slo_aware import LlmdSloAware
from adapter.simulator.rivals.llmd_token_aware import LlmdTokenAware
from adapter.simulator.rivals.observation import RouterFacts
from adapter.simulator.rivals.port import Seat
from tests.simulator.rivals.build import (
    Play,
    pods,
    running,
    seen,
    silent,
    synced_once,
    values_once,
)

SLO = LlmdSloAware()


# --- SLO-aware


@pytest.mark.parametrize(
    ("mean", "ordered", "ready", "count"),
    [
        (2.0, 3, 3, 11),
        (0.9, 5, 2, 4),
        (2.0, 24, 4, 15),
        (0.0, 8, 8, 0),
        (1.2, 8, 0, 18),
        (0.5, 8, 3, 8),
        (0.2, 6, 6, 3),
    ],
)
def test_slo_aware_vectors(mean, ordered, ready, count):
    """Up may be *less* than ordered (5→4, 24→15), and with none ready the credit is off (18)."""
    assert SLO.count(mean, ordered=ordered, ready=ready) == count


def test_slo_aware_is_an_hpa_on_ready_pods_with_two_set_points():
    """The credit form n + ceil(n * (s * c / up - 1)) of the guide, for n ≤ 40, all r and s."""
    for n in range(1, 41):
        for r in range(n + 1):
            credit = r / n if 0 < r < n else 1.0
            for k in range(0, 201, 3):
                s = k / 100
                documented = n
                if s > 0.55:
                    documented = n + math.ceil(n * (s * credit / 0.55 - 1) - 1e-9)
                if s < 0.40:
                    documented = n - math.floor(n * (1 - s / 0.40) + 1e-9)
                assert SLO.count(s, ordered=n, ready=r) == documented


@pytest.mark.parametrize(
    ("ttft", "tpot", "sample"),
    [(None, math.nan, 0.0), (90.0, 0.05, 2.0), (1.5, 0.08, 0.8), (None, None, 0.0), (3.0, None, 1)],
)
def test_slo_aware_sample_is_the_worse_share_clamped_and_no_data_is_no_load(ttft, tpot, sample):
    router = RouterFacts(ttft_p90_seconds=ttft, tpot_p90_seconds=tpot)

    assert SLO.sample(router) == pytest.approx(sample)


def test_slo_aware_smooths_over_45_seconds():
    """Samples of 0.3, 0.6 and 0.9 at 15 s mean 0.6; the first then leaves."""
    seat = Seat(SLO, seen(*running(1.0)))
    wishes = [
        seat.wish(seen(*running(1.0), at=at, router=RouterFacts(ttft_p90_seconds=3 * share)))
        for at, share in ((0.0, 0.3), (15.0, 0.6), (30.0, 0.9), (45.0, 1.2))
    ]

    counts = [wish.metrics[0].value for wish in wishes]
    assert counts == [1.0, 1.0, 2.0, 2.0]


def test_slo_aware_walks_to_the_floor_when_data_stops():
    """peers.md 1.1: 8→3 at t = 165, 285, 405, 525, 645 s, one pod per 120 s after 180 s."""

    def world(at, ready, ordered):
        ttft = 1.5 if at < 0 else None
        router = RouterFacts(ttft_p90_seconds=ttft)
        return seen(*running(*[4.0] * ordered), at=at, router=router, low=3, high=8)

    play = Play(SLO, world, first=8, load_time=100)

    assert play.until(-15, begin=-600) == []
    assert play.until(900, begin=0) == [(165, 7), (285, 6), (405, 5), (525, 4), (645, 3)]


@pytest.mark.parametrize(("load_time", "shed"), [(100, 0), (240, 1), (600, 3)])
def test_slo_aware_sheds_loading_pods_when_a_load_outlasts_its_windows(load_time, shed):
    """Three burn for a minute and order what the limits let them, then use 0.6 of the objective.

    The credit form wants four, so its own windows, 180 s and a pod per 120 s, decide how many
    loading pods are dropped: 0, 1 and 3, as in peers.md 1.1.
    """

    def world(at, ready, ordered):
        share = 2.0 if at < 60 else 0.6
        router = RouterFacts(ttft_p90_seconds=3 * share)
        facts = (*running(*[9.0] * ready), *silent(ordered - ready, ready=False))
        return seen(*facts, at=at, router=router, low=3, high=8)

    play = Play(SLO, world, first=3, load_time=load_time)
    play.until(load_time)

    assert play.shed == shed


def test_slo_aware_shrinks_a_stalled_pool_that_finishes_nothing():
    """No first token, no sample of the actual TTFT: a load of 0."""
    assert values_once(SLO, seen(*running(*[200.0] * 8))) == [0.0]


def test_slo_aware_bursts_to_its_cap():
    """3 ready at the clamp ask for 11, whatever they need."""
    burning = seen(*running(9.0, 9.0, 9.0), router=RouterFacts(ttft_p90_seconds=90.0), high=8)

    assert values_once(SLO, burning) == [11.0]


def test_slo_aware_holds_when_the_store_fails():
    assert values_once(SLO, seen(spec=8, error="401 from Thanos")) == [None]


# --- queue, and its guard


def test_queue_asks_for_the_larger_of_queue_and_running():
    observation = seen(*running(20.0, 20.0), router=RouterFacts(queued_requests=9.0))

    assert values_once(LlmdQueue(), observation) == [9.0, 40.0]
    assert synced_once(LlmdQueue(), observation) == 9


def test_queue_orders_nothing_for_five_minutes():
    """Its window on the way up is 300 s."""

    def world(at, ready, ordered):
        load = 160.0 / ready
        return seen(*running(*[load] * ready), *silent(ordered - ready, ready=False), at=at)

    changes = Play(LlmdQueue(), world, first=4, load_time=60).until(600)

    assert changes[0] == (300, 8)


@pytest.mark.parametrize(
    ("queued", "run", "replicas", "unavailable", "value"),
    [(0, 160, 8, 4, 8), (40, 48, 3, 0, 40), (0, 48, 3, 2, 3), (0, 160, 8, 0, 10)],
)
def test_queue_guard_vectors(queued, run, replicas, unavailable, value):
    """8 ordered, 4 of them loading, 160 running: it stays at 8, though 10 are needed."""
    need = max(queued / 1, run / 16)

    assert guarded(need, replicas, unavailable) == value


def test_queue_guard_counts_pending_pods_against_the_need():
    observation = seen(*running(40.0, 40.0, 40.0, 40.0), spec=8)

    assert values_once(LlmdQueueGuard(), observation) == [8.0]


def test_queue_guard_falls_back_to_one_replica_after_three_failures():
    """``fallback.replicas`` 1 is static: eight busy replicas become one."""
    broken = seen(*silent(8), error="401 from Thanos")
    seat = Seat(LlmdQueueGuard(), broken)

    values = [seat.wish(broken).metrics[0].value for _ in range(5)]

    assert values == [None, None, None, 1.0, 1.0]


def test_queue_guard_reads_absent_series_as_no_load():
    assert values_once(LlmdQueueGuard(), seen(*silent(8))) == [0.0]


def test_queue_guard_forgets_failures_when_the_store_answers():
    broken, fine = seen(*silent(2), error="timeout"), seen(*running(1.0, 1.0))
    seat = Seat(LlmdQueueGuard(), fine)
    story = [broken, broken, fine, broken, broken, broken]

    assert [seat.wish(one).metrics[0].value for one in story][3:] == [None, None, None]


# --- token-aware


@pytest.mark.parametrize(("usage", "wanted"), [(0.88, 10), (0.89, 12)])
def test_token_aware_loses_ten_percent_to_the_tolerance(usage, wanted):
    """Ten pods at KV 0.88 against 0.8 are exactly 1.10: nothing; 0.89 jumps to 12."""
    assert synced_once(LlmdTokenAware(), seen(*pods(*[(usage, 0.0)] * 10))) == wanted


def test_token_aware_asks_for_seconds_of_prefill_over_its_target():
    """47,784 tokens at 15,928 a second are 3 s: two replicas at 1.5 s each."""
    router = RouterFacts(uncached_tokens_in_flight=47_784.0)

    assert values_once(LlmdTokenAware(), seen(*pods((0.1, 0.0)), router=router))[0] == 3.0
    assert synced_once(LlmdTokenAware(), seen(*pods((0.1, 0.0)), router=router)) == 2


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
def test_token_aware_wants_the_same_under_a_closed_loop_whatever_runs(replicas):
    """64 x 8192 tokens in flight with 1 to 8 replicas: always 22."""
    router = RouterFacts(uncached_tokens_in_flight=64 * 8192.0)
    observation = seen(*pods(*[(0.1, 0.0)] * replicas), router=router)

    assert synced_once(LlmdTokenAware(), observation) == 22


# --- saturation


def test_saturation_reads_a_ratio_of_the_pool_as_a_total():
    """Four replicas at saturation 1 with 40 running: max(2, 3) = 3, it shrinks."""
    full = tuple(
        one.__class__(name=one.name, ready=True, waiting=5.0, running=10.0, kv_usage_ratio=0.5)
        for one in running(*[10.0] * 4)
    )

    assert values_once(LlmdSaturation(), seen(*full)) == [1.0, 40.0]
    assert synced_once(LlmdSaturation(), seen(*full)) == 3


def test_saturation_of_nobody_is_zero_and_of_a_broken_store_unknown():
    assert values_once(LlmdSaturation(), seen(*silent(3))) == [0.0, 0.0]
    assert values_once(LlmdSaturation(), seen(*silent(3), error="401")) == [None, None]
