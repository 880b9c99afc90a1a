"""Incidents that people reported, each as the small input that reproduces it."""

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause
from adapter.fleet.snapshot import FleetSnapshot, Phase
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import ConditionType, Decision, HoldReason
from adapter.scaling.evaluate import evaluate
from adapter.scaling.hpa import dead_zone
from adapter.scaling.state import ScalingState
from tests.build import (
    T0,
    a_fleet,
    a_gap,
    a_histogram,
    a_reading,
    a_replica,
    a_spec,
    loading,
    serving,
    silent,
)
from tests.fleet.expositions import a_body, gap_of, reading_of, recorded

SPEC = a_spec(signals={"queue": {"targetInFlight": 8, "headroom": 1}})


def remembering(published: int, *, wanted: int | None = None) -> ScalingState:
    """Return the memory of a fleet that was told ``published`` five seconds ago."""
    at = Timestamp(T0 - 5.0)
    return ScalingState(
        published=published,
        good_at=at,
        recommendations=((at, published if wanted is None else wanted),),
    )


def decide(fleet: FleetSnapshot, state: ScalingState) -> Decision:
    return evaluate(SPEC, fleet, state)[0]


def is_true(decision: Decision, kind: ConditionType) -> bool:
    return next(c.status for c in decision.conditions if c.type is kind)


def play(fleets: list[FleetSnapshot], state: ScalingState) -> list[Decision]:
    decisions = []
    for fleet in fleets:
        decision, state = evaluate(SPEC, fleet, state)
        decisions.append(decision)
    return decisions


# --- 1.1 thrash and flapping


def test_row_1_a_deleted_pod_leaves_no_queue_behind() -> None:
    """WVA#368: the series of a dead pod asked for the second replica again."""
    two = a_fleet(a_replica("a"), a_replica("b", running=28))
    one = [a_fleet(a_replica("a"), at=T0 + t) for t in range(15, 315, 15)]

    decisions = play([two, *one], remembering(1))

    assert decisions[0].published == 4
    assert decisions[-1].published == 1


def test_row_2_a_need_that_flaps_is_a_constant_count() -> None:
    """WVA#1352: 3, 4, 3, 4 every 15 s is 4."""
    fleets = [
        a_fleet(*serving(4, running=6 if tick % 2 else 8), at=T0 + 15.0 * tick)
        for tick in range(40)
    ]

    published = {decision.published for decision in play(fleets, remembering(4))}

    assert published == {4}


def test_row_5_every_hold_says_how_long_it_still_takes() -> None:
    """aibrix#1159: "Delaying scale to 1, staying at 3" for half an hour."""
    decision = decide(a_fleet(*serving(3), load_time=432.0), remembering(3))

    assert decision.holds[0].because.startswith("scale-down delay, 7m7s left")


# --- 1.2 cold start and overshoot


def test_row_9_hot_replicas_are_not_doubled_while_their_help_loads() -> None:
    """aibrix#2670: 2 → 4 → 8 → 16 while the same two stayed hot."""
    fleets = [
        a_fleet(
            *serving(2, running=8, waiting=8),
            *loading(2, since=T0 - 10.0),
            at=T0 + 15.0 * tick,
        )
        for tick in range(12)
    ]

    assert {decision.published for decision in play(fleets, remembering(4))} == {4}


def test_row_15_nothing_is_taken_away_while_it_loads_for_unserved_demand() -> None:
    """sie#293: the pod was deleted seconds after it began to load."""
    fleet = a_fleet(*serving(1, running=16), *loading(4, since=T0 - 200.0))

    decision = decide(fleet, remembering(5, wanted=2))

    assert decision.published == 5
    assert decision.holds[0].reason is HoldReason.LOADING_UNSERVED


def test_row_16_ready_is_not_warm() -> None:
    """vllm#15313: healthy while it compiles; its slow first token is no load."""
    slow = a_histogram([100.0] * 5)
    before = a_reading(at=T0 - 5, running=1, ttft=a_histogram([]))
    warming = a_replica(
        "w", phase=Phase.WARMING, sample=a_reading(running=1, ttft=slow), previous=before
    )

    decision = decide(a_fleet(*serving(2, running=7), warming), remembering(3))

    assert decision.published == 3
    assert (decision.census.serving, decision.census.loading) == (2, 1)


def test_row_18_zeros_of_a_cold_start_take_nothing_away() -> None:
    """vllm#49538: running and waiting stayed 0 for 18 s with requests in flight."""
    zeros = [
        a_fleet(*(a_replica(u, phase=Phase.WARMING) for u in "abc"), at=T0 + t)
        for t in (0.0, 6.0, 12.0, 18.0)
    ]

    assert {decision.published for decision in play(zeros, remembering(3))} == {3}


# --- 1.3 scale-down that kills streams


def test_row_19_only_as_many_go_as_are_idle() -> None:
    """vllm-fork#1426: running 0, 4, 7 lets one go."""
    fleet = a_fleet(*(a_replica(f"p{n}", running=n) for n in (0, 4, 7)))

    assert decide(fleet, remembering(3, wanted=1)).published == 2


def test_row_26_a_queue_without_clients_is_no_demand_and_loud() -> None:
    """WVA#769: 213 ghosts waited for ever, and scale-down was refused for ever."""
    fleets = [
        a_fleet(
            a_replica("g", at=T0 + t, waiting=213, more={Metric.GENERATION_TOKENS: 7000}),
            *serving(4, at=T0 + t),
            at=T0 + t,
        )
        for t in range(0, 900, 15)
    ]

    decisions = play(fleets, remembering(5))

    by_then = decisions[15]
    assert by_then.published >= 5
    assert is_true(by_then, ConditionType.REPLICAS_STALLED)
    assert decisions[-1].published == 2  # one that works beside the one that does not
    stuck = next(c for c in decisions[-1].conditions if c.type is ConditionType.REPLICAS_STALLED)
    assert stuck.reason == "StuckQueue"


# --- 1.4 missing and NaN metrics


def test_row_27_an_empty_answer_holds_what_was_then_becomes_an_error() -> None:
    """keda#3065: empty was read as 0 and production went to minimum at peak."""
    fleets = [
        a_fleet(*silent(12, cause=Cause.NO_ENGINE), at=T0 + t) for t in (0.0, 60.0, 115.0, 130.0)
    ]

    decisions = play(fleets, remembering(12))

    assert [decision.published for decision in decisions] == [12] * 4
    assert not is_true(decisions[0], ConditionType.METRICS_AVAILABLE)
    assert [decision.refusal is None for decision in decisions] == [True, True, True, False]


def test_row_28_a_gap_of_five_minutes_costs_a_whole_delay_of_good_data() -> None:
    """mimir#7691: averages over the gap came back low."""
    gap = [a_fleet(*silent(6), at=T0 + t) for t in range(0, 300, 15)]
    good = [a_fleet(*serving(6), at=T0 + t) for t in range(300, 600, 15)]

    decisions = play([*gap, *good], remembering(6))

    down = next(decision for decision in decisions if decision.published < 6)
    assert down.at == T0 + 300 + 240


def test_row_29_nan_never_reaches_the_wire() -> None:
    """paasta#3034: a missed scrape became NaN, then 0, then a scale-down."""
    nan = serving(3, waiting=None, missing={Metric.REQUESTS_WAITING: "NaN"})

    decision = decide(a_fleet(*nan), remembering(3, wanted=1))

    available = next(c for c in decision.conditions if c.type is ConditionType.METRICS_AVAILABLE)
    assert decision.published == 3
    assert available.reason == "NaN"


def test_rows_30_and_31_idle_without_a_ttft_goes_down() -> None:
    """dynamo#3131, ray#64725: 0/0 of an idle fleet held 7P1D for ever and reset the timer."""
    ttft = a_histogram([0.3] * 50)
    fleets = [
        a_fleet(
            *(
                a_replica(
                    f"p{n}",
                    sample=a_reading(at=T0 + t, ttft=ttft),
                    previous=a_reading(at=T0 + t - 15.0, ttft=ttft),
                )
                for n in range(7)
            ),
            at=T0 + t,
        )
        for t in range(0, 300, 15)
    ]

    decisions = play(fleets, remembering(7))

    assert decisions[-1].published == 1
    assert not any(decision.held for decision in decisions)


def test_row_33_a_wrong_model_holds_loudly_and_never_echoes_the_count() -> None:
    """llm-d#2310: desired = current, every check green, and nothing would ever scale."""
    body = a_body('vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-32B"} 40')
    gap = gap_of(body, "Qwen3-32B")
    fleets = [a_fleet(a_replica("a", sample=gap), at=T0 + t) for t in (0.0, 130.0)]

    held, refused = play(fleets, remembering(2))

    available = next(c for c in held.conditions if c.type is ConditionType.METRICS_AVAILABLE)
    assert held.held
    assert (available.status, available.reason) == (False, "Missing")
    assert "did you mean 'Qwen/Qwen3-32B'?" in available.message
    assert refused.refusal is not None
    assert "did you mean 'Qwen/Qwen3-32B'?" in refused.refusal


def test_row_34_a_series_that_nothing_was_served_for_is_normal() -> None:
    """nvcf#1601: no histogram before the first request is no reason to look elsewhere."""
    decision = decide(a_fleet(*serving(2, running=12)), remembering(2))

    assert decision.published == 3
    assert is_true(decision, ConditionType.SIGNAL_SERVED)
    assert is_true(decision, ConditionType.METRICS_AVAILABLE)


def test_row_37_a_wedged_engine_with_a_healthy_endpoint_is_no_capacity() -> None:
    """vllm#37729: /health 200 all the time; tokens flat with work in flight."""
    fleets = [
        a_fleet(
            a_replica("w", at=T0 + t, running=8, more={Metric.ENGINE_STEPS: 90}),
            *serving(1, at=T0 + t, running=8),
            at=T0 + t,
        )
        for t in range(0, 60, 5)
    ]

    decisions = play(fleets, remembering(2))

    assert decisions[0].published == 2
    assert decisions[-1].published == 3
    assert decisions[-1].census.stalled == 1


# --- 1.5 metric names changed with the engine (the aliases themselves: tests/fleet)


@pytest.mark.parametrize(
    ("dump", "published"),
    [
        ("vllm-0.8.5-codegen", 9),
        ("vllm-0.9.2-codegen", 9),
        ("vllm-0.11.2-codegen", 5),
        ("vllm-0.13.0-codegen", 5),
    ],
)
def test_rows_38_and_40_a_renamed_kv_gauge_still_confirms_a_queue(
    dump: str, published: int
) -> None:
    """vllm#24245: usage 0.83, and 0.44 over two ranks, over a target of 0.1, with 5 waiting."""
    spec = a_spec(signals={"queue": {"targetInFlight": 1000}, "kvCache": {"target": 0.1}})
    fleet = a_fleet(a_replica("a", sample=reading_of(recorded(dump))))

    assert evaluate(spec, fleet, remembering(1))[0].published == published


def test_row_41_metrics_without_a_series_we_know_become_an_error() -> None:
    """llm-d#2473: the query named what nothing emits: "it just never scales, quietly"."""
    gap = gap_of(a_body('inference_extension_flow_control_queue_size{model_name="m"} 9'))
    fleets = [a_fleet(a_replica("a", sample=gap), at=T0 + t) for t in (0.0, 130.0)]

    held, refused = play(fleets, remembering(2))

    assert (held.published, held.held) == (2, True)
    assert refused.refusal is not None
    assert "no series of" in refused.refusal


def test_row_45_a_target_above_what_the_engine_runs_at_once_still_scales() -> None:
    """LLMKube#482: a gauge that is capped at 1 under a target of 2; what waits counts as well."""
    fleet = a_fleet(*serving(1, running=1, waiting=9))
    spec = a_spec(signals={"queue": {"targetInFlight": 2, "headroom": 1}})

    assert evaluate(spec, fleet, remembering(1))[0].published == 5


# --- 1.7 KV usage as a signal


def test_row_57_a_cache_that_is_kept_full_is_no_load() -> None:
    """WVA#927: KV 0.97 flat with an empty queue, for ever."""
    fleets = [a_fleet(*serving(3, running=7, kv=0.97), at=T0 + 15.0 * n) for n in range(40)]

    assert {decision.published for decision in play(fleets, remembering(3))} == {3}


def test_row_58_an_empty_cache_is_no_reason_to_go_down() -> None:
    """vllm#5176: warm prefix blocks are not counted; what runs decides."""
    decision = decide(a_fleet(*serving(3, running=8, kv=0.0)), remembering(3, wanted=1))

    assert decision.published == 3


@pytest.mark.parametrize(("target", "published"), [(0.8, 3), (0.5, 4)])
def test_row_59_the_kv_target_is_the_policys(target: float, published: int) -> None:
    """Blocks are counted: 17-token prompts show 0.667 with 0.365 in use (vllm PR#57336)."""
    spec = a_spec(signals={"queue": {"targetInFlight": 99}, "kvCache": {"target": target}})
    fleet = a_fleet(*serving(3, running=8, waiting=1, kv=0.66))

    assert evaluate(spec, fleet, remembering(3))[0].published == published


# --- 1.8 queue spread or stuck


@pytest.mark.parametrize(
    ("queues", "published", "skewed"), [((40, 0, 0, 0), 4, True), ((10, 10, 10, 10), 7, False)]
)
def test_row_63_a_queue_at_one_replica_is_a_routing_fault(
    queues: tuple[int, ...], published: int, *, skewed: bool
) -> None:
    """vllm#36748: both wait with 40; more replicas help only one of them."""
    replicas = [a_replica(f"p{n}", running=4, waiting=queue) for n, queue in enumerate(queues)]

    decision = decide(a_fleet(*replicas), remembering(4))

    assert decision.published == published
    assert is_true(decision, ConditionType.QUEUE_SKEW) is skewed


# --- 1.9 tolerance and target arithmetic


@pytest.mark.parametrize(("current", "wanted"), [(10, 11), (22, 24)])
def test_rows_69_and_70_a_step_inside_the_tolerance_is_named(current: int, wanted: int) -> None:
    """k/k#116984, crane#836: 10 → 11 and 22 → 24 never happened, and nobody was told."""
    assert f"{current}→{wanted} is inside" in dead_zone(current).ignores(wanted)


@pytest.mark.parametrize(("current", "wanted", "followed"), [(20, 21, 23), (10, 11, 12)])
def test_row_71_the_least_count_that_is_followed_is_known(
    current: int, wanted: int, followed: int
) -> None:
    """kube-metrics-adapter#371: 21 wanted at 20 has to be published as 23."""
    zone = dead_zone(current)

    assert zone.ignores(wanted)
    assert current + zone.step_up == followed
    assert not zone.ignores(followed)


# --- 1.12 shortage


def test_row_85_an_unschedulable_replica_freezes_up_and_leaves_down_free() -> None:
    """dynamo#14251: a pod without a GPU for an hour blocked the way down as well."""
    pending = loading(1, since=T0 - 900.0, phase=Phase.PENDING)
    busy = a_fleet(*serving(3, running=30), *pending)
    idle = a_fleet(*serving(3), *pending)

    assert decide(busy, remembering(4)).published == 4
    assert decide(idle, remembering(4, wanted=1)).published == 1


def test_row_90_a_replica_on_a_broken_gpu_is_replaced() -> None:
    """device-plugin#519: an XID marks the device, and the pod runs on untouched."""
    fleet = a_fleet(*serving(2, running=8), a_replica("x", phase=Phase.ISOLATED, sample=a_gap()))

    assert decide(fleet, remembering(2)).published == 3
