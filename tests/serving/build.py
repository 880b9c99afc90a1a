"""Builders for what serving reads: a board with decisions on it, and a server around it."""

from dataclasses import replace

from adapter.controller.board import Board, PolicyKey
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.scaling.decision import Census, Decision, Stage, Step
from adapter.scaling.demand import Demand
from tests.build import T0


def a_policy(name: str = "chat", namespace: str = "default", *, interval: str = "5s") -> Policy:
    """Return a whole policy over one static target."""
    return Policy.model_validate(
        {
            "apiVersion": "leadtime.dev/v1alpha1",
            "kind": "ScalingPolicy",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {
                "replicas": {"min": 1, "max": 100},
                "source": {
                    "static": {"urls": ["http://127.0.0.1:1/metrics"], "interval": interval}
                },
            },
        }
    )


def a_decision(published: int = 7, **facts: object) -> Decision:
    """Return a decision of ``T0`` that is fit to serve for two minutes."""
    plain = Decision(
        at=T0,
        desired=published,
        published=published,
        refusal=None,
        valid_until=Timestamp(T0 + 120),
        demands=(Demand("queue", 6.2, "40 in flight / 6.5 per replica"),),
        steps=(Step(Stage.COMBINE, 5, published, "queue asks for 6.2"),),
        holds=(),
        conditions=(),
        census=Census(serving=5, loading=2),
        standby=1,
        lead_time=Seconds(240.0),
        data_at=T0,
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def a_board(**decisions: Decision | None) -> Board:
    """Return a board with one policy of namespace ``default`` per keyword."""
    board = Board()
    for name, decision in decisions.items():
        put(board, name, decision)
    return board


def put(
    board: Board,
    name: str,
    decision: Decision | None,
    *,
    namespace: str = "default",
    labels: dict[str, str] | None = None,
) -> PolicyKey:
    """List a policy and post its decision, if there is one."""
    key = board.list_policy(a_policy(name, namespace), labels or {})
    if decision is not None:
        board.post(key, decision, decision.at)
    return key
