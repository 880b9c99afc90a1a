"""llm-d's Workload-Variant-Autoscaler, by the vectors and defects of peers.md 1.2, 5.3 and 5.4."""

import dataclasses

import pytest

from adapter.simulator.rivals.observation import RouterFacts
from adapter.simulator.rivals.port import DEFAULT_BEHAVIOR, Calibration, Seat
from adapter.simulator.rivals.wva_v1 import Load, WvaV1
from adapter.simulator.rivals.wva_v2 import WvaV2
from tests.simulator.rivals.build import Play, pods, reached, seen, silent, values_once

V1 = WvaV1()
V2 = WvaV2(kv_tokens=100_000)
PROMPTS = RouterFacts(prompt_tokens_mean=1000.0)


def loads(*pairs: tuple[float, float]) -> list[Load]:
    return [Load(kv, queue) for kv, queue in pairs]


# --- V1


def test_v1_calls_ten_safe_to_shrink_while_eight_are_saturated():
    """8 x (.97, 40) and 2 x (.05, 0): only the two idle ones are averaged → 9."""
    mixed = loads(*[(0.97, 40.0)] * 8, *[(0.05, 0.0)] * 2)

    assert V1.target(mixed, current=10, desired=10, pending=0) == 9


def test_v1_grows_by_one_when_all_are_saturated():
    """4 x (.99, 500) → 5."""
    assert V1.target(loads(*[(0.99, 500.0)] * 4), current=4, desired=4, pending=0) == 5


def test_v1_holds_while_one_pod_reports_nothing():
    """3 of 4 report → 4, for ever."""
    assert V1.target(loads(*[(0.99, 500.0)] * 3), current=4, desired=4, pending=0) == 4


def test_v1_adds_none_while_one_is_pending():
    assert V1.target(loads(*[(0.99, 500.0)] * 4), current=4, desired=0, pending=1) == 4


def test_v1_holds_the_desired_count_until_it_is_there():
    assert V1.target(loads(*[(0.1, 0.0)] * 4), current=4, desired=5, pending=0) == 5


@pytest.mark.parametrize(
    ("kv", "queue", "target"),
    [
        (0.60, 0.0, 4),
        (0.45, 0.0, 3),
        (0.53, 0.0, 4),
        (0.20, 1.9, 4),
        (0.20, 1.0, 3),
        (0.71, 0.0, 5),
        (0.20, 2.1, 5),
    ],
)
def test_v1_shrinks_only_when_one_less_would_keep_both_spares(kv, queue, target):
    """Four alike; at 4/3 of the load 0.45 becomes 0.60 and leaves 0.20, 0.53 leaves 0.093."""
    assert V1.target(loads(*[(kv, queue)] * 4), current=4, desired=4, pending=0) == target


def test_v1_never_leaves_the_last_replica():
    assert V1.target(loads((0.0, 0.0)), current=1, desired=1, pending=0) == 1


def test_v1_deadlocks_at_ten_under_the_default_tolerance():
    """It wants 11, the HPA finds 11/10 inside 1.1, and the transition never ends."""
    loose = dataclasses.replace(V1, behavior=DEFAULT_BEHAVIOR)

    def world(at, ready, ordered):
        return seen(*pods(*[(0.97, 40.0)] * ready), spec=ordered, at=at)

    assert Play(loose, world, first=10, load_time=1).until(3600) == []
    assert Play(V1, world, first=10, load_time=1).until(120)[0] == (0, 11)


def test_v1_orders_four_to_twenty_within_72_minutes():
    """One per load time of 240 s, seen by the next loop of 30 s; with tolerance 0."""

    def world(at, ready, ordered):
        waiting = 40.0 if ready < 20 else 0.0
        return seen(*pods(*[(0.7, waiting)] * ready), spec=ordered, at=at)

    changes = Play(V1, world, first=4, load_time=241).until(6000)

    assert (reached(changes, 20) + 241) / 60 == pytest.approx(72, abs=1)


def test_v1_remembers_the_worst_of_a_minute():
    """Calm, two are one too many; a spike on one of them holds both until it is 60 s old."""
    calm, spike = pods((0.2, 0.0), (0.2, 0.0)), pods((0.2, 0.0), (0.9, 9.0))
    seat = Seat(V1, seen(*spike))

    story = [seen(*facts, at=at) for at, facts in ((0.0, spike), (30.0, calm), (60.0, calm))]

    assert [seat.wish(one).metrics[0].value for one in story] == [2.0, 2.0, 1.0]


def test_v1_forgets_a_pod_that_is_gone():
    """WVA#380: its series live on for a minute, so they are joined with the living pods."""
    old, new = pods((0.2, 0.0), (0.9, 9.0)), pods((0.2, 0.0), (0.2, 0.0), (0.2, 0.0))
    seat = Seat(V1, seen(*old))
    seat.wish(seen(*old))

    wish = seat.wish(seen(new[0], new[2], at=30.0))

    assert wish.metrics[0].value == 1.0


def test_v1_keeps_the_last_wish_when_nobody_reports():
    seat = Seat(V1, seen(*pods((0.99, 500.0))))
    seat.wish(seen(*pods((0.99, 500.0))))

    wish = seat.wish(seen(*silent(1), at=300.0))

    assert wish.metrics[0].value == 2.0
    assert values_once(V1, seen(*silent(3))) == [3.0]


def test_v1_reads_the_missing_half_of_a_pod_as_zero():
    """Saturated by its queue, or unknown: without it the pod has all of it to spare."""
    assert values_once(V1, seen(*pods((0.1, None), (0.1, None)))) == [1.0]


# --- V2


def full(queue: float, count: int = 10):
    return pods(*[(0.162, queue)] * count)


def test_v2_doubles_a_queueing_pool_at_once():
    """10 pods with 16,200 tokens in use and 12 waiting of 1000 tokens each → 21."""
    assert values_once(V2, seen(*full(12.0), router=PROMPTS)) == [21.0]


def test_v2_drains_a_prefill_bound_pool_in_one_step():
    """KV 16 %, four waiting each and no history: the stock looks empty, 10 → 4."""
    assert values_once(V2, seen(*full(4.0), router=PROMPTS)) == [4.0]


def test_v2_remembers_what_a_full_pod_held():
    """After the queue of 12, a queue of 4 is still measured by 16,200 and not by 80,000."""
    seat = Seat(V2, seen(*full(12.0), router=PROMPTS))
    seat.wish(seen(*full(12.0), router=PROMPTS))

    wish = seat.wish(seen(*full(4.0), at=30.0, router=PROMPTS))

    assert wish.metrics[0].value == 15.0


def test_v2_remembers_the_latest_ten():
    """Ten pods full at 40,000 tokens, then ten at 16,200: the latter count."""
    seat = Seat(V2, seen(*full(12.0), router=PROMPTS))
    seat.wish(seen(*pods(*[(0.4, 12.0)] * 10), router=PROMPTS))
    seat.wish(seen(*full(12.0), at=30.0, router=PROMPTS))

    wish = seat.wish(seen(*full(4.0), at=60.0, router=PROMPTS))

    assert wish.metrics[0].value == 15.0


def test_v2_keeps_a_memory_for_each_length_of_output():
    """Short outputs teach nothing about long ones."""
    short = RouterFacts(prompt_tokens_mean=1000.0, output_tokens_mean=50.0)
    long = RouterFacts(prompt_tokens_mean=1000.0, output_tokens_mean=800.0)
    seat = Seat(V2, seen(*full(12.0), router=short))
    seat.wish(seen(*full(12.0), router=short))

    wish = seat.wish(seen(*full(4.0), at=30.0, router=long))

    assert wish.metrics[0].value == 4.0


def test_v2_counts_pending_replicas_as_supply_for_ever():
    """4 ready with 20 waiting each, 20 stuck: required is 0 after an hour as after a minute."""
    facts = (*full(20.0, 4), *silent(20, ready=False))
    seat = Seat(V2, seen(*facts, router=PROMPTS))

    wishes = [seat.wish(seen(*facts, at=at, router=PROMPTS)) for at in (0.0, 60.0, 3600.0)]

    assert [wish.metrics[0].value for wish in wishes] == [24.0, 24.0, 24.0]


def test_v2_takes_the_engines_arguments_before_the_first_queue():
    """B=8192, I=1000, O=1000: 4096 in a batch, at most 16 sequences of 1500 tokens: 24,000."""
    lengths = RouterFacts(prompt_tokens_mean=1000.0, output_tokens_mean=1000.0)
    rule = dataclasses.replace(V2, batched_tokens=8192, sequences=16)

    assert values_once(rule, seen(*pods(*[(0.5, 0.0)] * 4), router=lengths)) == [10.0]


def test_v2_counts_the_schedulers_queue():
    """10 requests of 1000 tokens, half of them cached, and 200 tokens of output: 7,000 more."""
    router = RouterFacts(
        prompt_tokens_mean=1000.0,
        output_tokens_mean=200.0,
        queued_requests=10.0,
        cached_share=0.5,
    )
    base = pods((0.68, 0.0))

    assert values_once(V2, seen(*base, router=PROMPTS)) == [1.0]
    assert values_once(V2, seen(*base, router=router)) == [2.0]


def test_v2_keeps_one_replica():
    assert values_once(V2, seen(*pods((0.0, 0.0), (0.0, 0.0)), router=PROMPTS)) == [1.0]


def test_v2_keeps_the_last_wish_when_nobody_reports():
    assert values_once(V2, seen(*silent(3))) == [3.0]


def test_v2_without_capacity_changes_nothing():
    """A cache of 1 token: 80 % of it is none."""
    assert values_once(WvaV2(kv_tokens=1), seen(*pods((0.5, 9.0), (0.5, 9.0)))) == [2.0]


def test_v2_is_set_up_from_a_calibration():
    calibration = Calibration(
        kv_tokens=7,
        prefill_tokens_per_second=1.0,
        requests_per_second=1.0,
        batched_tokens=8,
        sequences=9,
    )

    assert WvaV2.of(calibration) == WvaV2(kv_tokens=7, batched_tokens=8, sequences=9)
