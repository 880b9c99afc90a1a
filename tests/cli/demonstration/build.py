"""Builders for what the demo shows."""

from collections.abc import Iterable

from adapter.cli.demonstration.moment import Moment, Traffic
from adapter.cli.demonstration.report import Report
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Census, Decision, Hold, Stage, Step
from adapter.simulator.hpa import Verdict

T0 = Timestamp(1_800_000_000.0)


def a_moment(  # noqa: PLR0913 - a builder has one argument per part of the value
    *,
    elapsed: float = 0.0,
    desired: int = 4,
    published: int | None = None,
    serving: int = 2,
    loading: int = 2,
    replicas: int = 4,
    ttft: float | None = 0.31,
    holds: Iterable[Hold] = (),
    steps: Iterable[Step] = (),
    refusal: str | None = None,
) -> Moment:
    decision = Decision(
        at=Timestamp(T0 + elapsed),
        desired=desired,
        published=desired if published is None else published,
        refusal=refusal,
        valid_until=Timestamp(T0 + elapsed + 15),
        demands=(),
        steps=(Step(Stage.COMBINE, 2, desired, f"queue wants {desired}"), *steps),
        holds=tuple(holds),
        conditions=(),
        census=Census(serving=serving, loading=loading),
        standby=0,
        lead_time=Seconds(75.0),
    )
    traffic = Traffic(load=12.34, in_flight=57, kv_usage=0.416, ttft_p95=ttft and Seconds(ttft))
    return Moment(Seconds(elapsed), decision, traffic, replicas, Verdict(replicas, "", replicas))


def a_report(*moments: Moment, **changes: object) -> Report:
    facts: dict[str, object] = {
        "first_replicas": 2,
        "judged": 1000,
        "good": 987,
        "pod_seconds": 7200.0,
        "started": 5,
        "stopped": 3,
        "reads": 40,
        "failed_reads": 1,
        "played": Seconds(1200.0),
        "planned": Seconds(1200.0),
        "wall": Seconds(20.0),
        **changes,
    }
    return Report(moments=moments or (a_moment(),), **facts)  # type: ignore[arg-type]
