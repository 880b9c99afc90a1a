"""Traps of the engine reference, section 5, from an engine's text to the decision.

What reading alone must get right (3, 12 to 18, 21, 24, 25) is under ``tests/fleet``.
"""

from collections.abc import Iterable, Mapping, Sequence

import pytest

from adapter.fleet.assemble import FleetMemory, Roster, Target, assemble
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import Phase
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import ConditionType, Decision
from adapter.scaling.demand import Demand
from adapter.scaling.evaluate import evaluate
from adapter.scaling.state import ScalingState
from tests.build import T0, a_gap, a_spec
from tests.fleet.expositions import a_body, a_vllm_body, recorded

REAL = "vllm-0.32.0-real_cpu"
EVERY = 5.0
LABELS = '{engine="0",model_name="m"}'

Answers = Mapping[str, bytes | Cause]
"""What each replica answered in one tick: its text, or why there is none."""


def decisions(
    ticks: Iterable[Answers],
    *,
    published: int,
    phases: Mapping[str, Phase] | None = None,
    target: float = 8,
    **sections: object,
) -> list[Decision]:
    """Return the decision of every tick, ``EVERY`` seconds apart; ``target`` requests a replica."""
    signals = {"queue": {"targetInFlight": target, "headroom": 1}, "ttft": {"objective": "2s"}}
    spec = a_spec(signals=signals, **sections)
    memory, state = FleetMemory(), ScalingState(published=published, good_at=Timestamp(T0 - EVERY))
    told = []
    for number, answers in enumerate(ticks):
        at = Timestamp(T0 + EVERY * number)
        roster = Roster(tuple(Target(uid, uid, uid, (phases or {}).get(uid)) for uid in answers))
        samples = {uid: _sample(answer, at) for uid, answer in answers.items()}
        fleet, memory = assemble(roster, samples, memory, at=at, stale_after=Seconds(10.0))
        decision, state = evaluate(spec, fleet, state)
        told.append(decision)
    return told


def _sample(answer: bytes | Cause, at: Timestamp) -> Reading | Gap:
    if isinstance(answer, Cause):
        return a_gap(answer, at=at)
    sample = read_exposition(answer, engine="auto", model=None, at=at, target="http://e")
    assert not isinstance(sample, Gap), sample
    return sample


def a_text(
    *,
    running: float = 0,
    waiting: float = 0,
    kv: float = 0.0,
    tokens: float = 9e5,
    finished: float = 900,
    preempted: float = 0,
    refused: float = 0,
) -> bytes:
    """Return what a vLLM of one engine says; counters as they stand."""
    return a_vllm_body(
        f"vllm:generation_tokens_total{LABELS} {tokens}",
        f"vllm:request_success_total{LABELS} {finished}",
        f"vllm:num_preemptions_total{LABELS} {preempted}",
        f'vllm:admission_rejections_total{{model_name="m",reason="max_num_queued_reqs"}} {refused}',
        running=running,
        waiting=waiting,
        kv=str(kv),
    )


def busy(*, ticks: int, per_tick: float = 40, **more: float) -> list[bytes]:
    """Return the texts of an engine that finishes ``per_tick`` requests a tick."""
    return [
        a_text(tokens=9e5 + 100 * per_tick * n, finished=900 + per_tick * n, **more)
        for n in range(ticks)
    ]


def demand_of(decision: Decision, signal: str) -> Demand:
    return next(demand for demand in decision.demands if demand.signal == signal)


def published(told: Sequence[Decision]) -> list[int]:
    return [decision.published for decision in told]


def test_trap_1_preemptions_ask_for_replicas_though_hardly_anything_waits() -> None:
    """KV 0.97, waiting 0, running flat, 10 preemptions a tick: 2 x 0.97 / 0.8 are three."""
    thrash = [a_text(running=8, kv=0.97, tokens=9e5 + n, preempted=10 * n) for n in range(4)]

    told = decisions([{"a": text, "b": text} for text in thrash], published=2, target=100)

    assert published(told) == [2, 3, 3, 3]
    assert demand_of(told[-1], "kvCache").evidence["preempted_requests"] == 20


def test_trap_2_a_queue_at_low_kv_usage_asks_for_replicas() -> None:
    """llm-d-autoscaling#662: 24 wait, 8 run, KV 0.004: four replicas of 8, and not one."""
    told = decisions([{"a": recorded(f"{REAL}-under_load_1")}], published=1)

    assert told[0].published == 4


def test_trap_3_what_no_new_replica_helps_orders_none() -> None:
    """20 wait for remote KV or a grammar, none for room: 8 running are one replica."""
    body = a_text(running=8, waiting=20) + a_body(
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 0',
        'vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 20',
    )

    assert decisions([{"a": body}], published=1)[0].published == 1


@pytest.mark.parametrize(("refused", "replicas"), [(0, 1.0), (20, 1.5), (40, 2.0), (4000, 2.0)])
def test_trap_4_requests_that_a_full_queue_refused_are_load(
    refused: float, replicas: float
) -> None:
    """8 run and 4 wait whatever comes: 40 served and 20 refused a tick are half as much again.

    At most as much again: a client that is refused tries once more at once.
    """
    texts = [
        a_text(
            running=8, waiting=4, tokens=9e5 + 100 * n, finished=900 + 40 * n, refused=refused * n
        )
        for n in range(6)
    ]

    told = decisions([{"a": text} for text in texts], published=1)

    queue = demand_of(told[-1], "queue")
    assert queue.replicas == pytest.approx(replicas, rel=0.01)
    assert ("for requests that were refused" in queue.because) is (refused > 0)


def test_trap_4_a_queue_inside_a_triton_backend_shows_in_its_durations() -> None:
    """Pending is 0 whatever waits in vLLM: 200 request-seconds in 5 s are 40 in flight."""
    line = 'vllm:e2e_request_latency_seconds_{}{{model="llm",version="1"}} {}'
    texts = [
        a_body(
            'nv_inference_pending_request_count{model="llm",version="1"} 0',
            f'nv_inference_request_success{{model="llm",version="1"}} {900 + 10 * n}',
            f'vllm:prompt_tokens_total{{model="llm",version="1"}} {1000 * n}',
            line.format("count", 900 + 10 * n),
            line.format("sum", 9000 + 200 * n),
        )
        for n in range(3)
    ]

    assert decisions([{"a": text} for text in texts], published=1)[-1].published == 5


def test_trap_5_a_frozen_engine_is_lost_capacity_and_not_a_steady_one() -> None:
    """SIGSTOP, measured: 8 run, 16 wait, /metrics answers: a replacement within 35 s."""
    frozen = [recorded(f"{REAL}-stalled_engine_sigstop_{number}") for number in (1, 2, 3)]
    ticks = [*frozen, *[frozen[-1]] * 9]

    told = decisions([{"a": text} for text in ticks], published=3)

    assert {decision.census.stalled for decision in told[:6]} == {0}
    assert told[-1].census.stalled == 1
    assert published(told)[:6] == [3] * 6
    assert told[-1].published == 4


def test_trap_6_a_silent_ttft_is_no_zero_while_requests_wait() -> None:
    """30 wait and nobody gets a first token: no quantile, and the queue asks."""
    ticks = [{"a": a_text(running=8, waiting=30)} for _ in range(3)]

    told = decisions(ticks, published=1)

    ttft = demand_of(told[-1], "ttft")
    assert (ttft.replicas, ttft.evidence) == (None, {})
    assert told[-1].published == 5


def test_trap_8_a_restart_is_no_burst_and_no_lull() -> None:
    """Counters fall from 900 to 1 and the gauges with them; the other replica goes on."""
    steady = busy(ticks=8, running=8)
    restarted = [*busy(ticks=4, running=8), *[a_text(tokens=n, finished=n) for n in range(1, 5)]]

    told = decisions(
        [{"a": one, "b": other} for one, other in zip(steady, restarted, strict=True)], published=2
    )

    assert published(told) == [2] * 8
    rates = [demand_of(decision, "queue").evidence for decision in told]
    assert all(one.get("arriving_requests_per_second", 16.0) <= 16.0 for one in rates)


def test_trap_9_a_dead_engine_and_the_gap_behind_it_are_no_empty_queue() -> None:
    """After kill -9, measured: the last gauges for 3 s, then no answer: held, then refused."""
    dead = {"a": recorded(f"{REAL}-engine_killed9_stale")}
    gone: list[Answers] = [{"a": Cause.UNREACHABLE}] * 40

    told = decisions([dead, *gone], published=3)

    assert published(told) == [3] * 41
    assert told[1].held
    assert [decision.refusal is None for decision in (told[20], told[-1])] == [True, False]


def test_trap_10_a_draining_pod_is_no_capacity_and_its_queue_is_demand() -> None:
    """SIGTERM with a grace: /health 200 and falling gauges, new requests get a 500.

    Measured 5 of vLLM; 6 of Triton, whose metrics port answers to the end.
    """
    ticks = [{"a": a_text(running=8), "b": a_text(running=8, waiting=8)}]

    told = decisions(ticks, published=1, phases={"a": Phase.SERVING, "b": Phase.DRAINING})

    assert (told[0].census.serving, told[0].census.draining) == (1, 1)
    assert told[0].published == 3


def test_trap_11_gauges_that_counters_contradict_are_aged_out() -> None:
    """vllm#29928: all clients gone, 106 running and 15 waiting for ever: no demand in the end."""
    ghost = a_text(running=106, waiting=15, kv=0.904)
    ticks = [{"a": ghost, "b": text} for text in busy(ticks=200, running=4)]

    told = decisions(ticks, published=16)

    assert told[10].published >= 16
    assert told[-1].published == 2
    stalled = next(c for c in told[-1].conditions if c.type is ConditionType.REPLICAS_STALLED)
    assert stalled.reason == "StuckQueue"


def test_trap_19_finished_requests_prove_no_success_and_lower_nothing() -> None:
    """Triton counts errors as success, vLLM ends dead streams with 200: what runs is needed."""
    errors = busy(ticks=8, per_tick=4000, running=24)

    assert published(decisions([{"a": text} for text in errors], published=3)) == [3] * 8


def test_trap_20_a_flat_completion_rate_does_not_hide_tenfold_demand() -> None:
    """In every tick 40 finish and 360 more arrive than that (dynamo PR#8861)."""
    texts = [
        a_text(running=8, waiting=360 * n, tokens=9e5 + 4000 * n, finished=900 + 40 * n)
        for n in range(12)
    ]

    told = decisions([{"a": text} for text in texts], published=1)

    assert told[-1].published >= 10


def test_trap_22_zeros_of_new_replicas_do_not_dilute_the_load() -> None:
    """Two at 8 in flight and two that just began to answer with zeros: nothing goes down."""
    old = busy(ticks=12, running=8, waiting=8)
    new: list[bytes | Cause] = [
        *[Cause.UNREACHABLE] * 2,
        *[a_text(tokens=0, finished=0) for _ in range(10)],
    ]

    told = decisions(
        [{"a": one, "b": one, "c": other, "d": other} for one, other in zip(old, new, strict=True)],
        published=4,
    )

    assert published(told) == [4] * 12
    assert told[-1].census.serving == 2
