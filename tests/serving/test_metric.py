"""The metric path: exactly one item, or an error that says why there is none."""

import math

import pytest

from adapter.controller.board import Board
from adapter.controller.errors import NoDecisionYetError, NotServedError
from adapter.fleet.units import Timestamp
from adapter.scaling.demand import Demand
from adapter.serving.external_metrics.metric import CATALOGUE, DESIRED, metric_value_list
from adapter.serving.external_metrics.quantity import read_milli
from adapter.serving.external_metrics.status import StatusError
from tests.build import T0
from tests.serving.build import a_board, a_decision, put
from tests.serving.contract import hpa_port


def _asked(
    board: Board,
    metric: str = DESIRED,
    *,
    selector: str = "policy=chat",
    namespace: str = "default",
    now: float = T0,
) -> list[dict[str, object]]:
    document = metric_value_list(
        board, namespace=namespace, metric=metric, selector=selector, now=Timestamp(now)
    )
    assert document["kind"] == "ExternalMetricValueList"
    assert document["apiVersion"] == "external.metrics.k8s.io/v1beta1"
    items = document["items"]
    assert isinstance(items, list)
    return items


def test_the_answer_is_exactly_one_item():
    """Row 21: a metricName must be there; whole seconds with Z, as metav1.Time has them."""
    board = a_board(chat=a_decision(7, at=Timestamp(T0 + 0.9)))

    items = _asked(board)

    assert items == [
        {
            "metricName": "leadtime-desired-replicas",
            "metricLabels": {"policy": "chat"},
            "timestamp": "2027-01-15T08:00:00Z",
            "value": "7",
        }
    ]


def test_the_name_is_found_in_any_case():
    """Row 14: client-go lower-cases, people do not."""
    items = _asked(a_board(chat=a_decision(7)), "LeadTime-Desired-Replicas")

    assert items[0]["metricName"] == DESIRED


def test_all_names_are_lower_case_and_one_path_segment():
    """Rows 15 and 16: a capital is never asked for, and / or % would break the HPA."""
    for name in CATALOGUE:
        assert name == name.lower()
        assert not {"/", "%"} & set(name)
        assert name not in {"status", "finalize", ".", ".."}


def test_labels_of_a_policy_are_selected_as_in_kubernetes():
    """Rows 17 and 18: matchExpressions count, and a selector leaves one of two."""
    board = Board()
    put(board, "chat", a_decision(3), labels={"tier": "gold", "model": "llama"})
    put(board, "code", a_decision(9), labels={"tier": "bronze", "model": "llama"})

    items = _asked(board, selector="model=llama,tier in (gold,silver),!yy,policy")

    assert [item["value"] for item in items] == ["3"]
    assert items[0]["metricLabels"] == {"tier": "gold", "model": "llama", "policy": "chat"}


def test_without_a_selector_the_only_policy_of_a_namespace_answers():
    assert _asked(a_board(chat=a_decision(7)), selector="")[0]["value"] == "7"


def test_several_policies_are_an_error_that_names_them():
    """An HPA adds items up: 3 and 9 would be 12."""
    board = a_board(chat=a_decision(3), code=a_decision(9))

    with pytest.raises(StatusError) as refused:
        _asked(board, selector="")

    assert refused.value.status.code == 400
    assert "chat, code" in refused.value.status.message
    assert "policy: NAME" in refused.value.status.message


def test_namespaces_do_not_leak():
    """Row 24, and field row 67: the same name in two namespaces is two policies."""
    board = Board()
    put(board, "chat", a_decision(3), namespace="a")
    put(board, "chat", a_decision(9), namespace="b")

    assert _asked(board, namespace="b")[0]["value"] == "9"
    with pytest.raises(NotServedError, match="that name exists as a/chat, b/chat"):
        _asked(board, namespace="c")


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        ("policy=chta", "did you mean 'chat'?"),
        ("policy=chat,tier=gold", "their labels: policy=chat"),
        ("scaledobject.keda.sh/name=x", "matches selector 'scaledobject.keda.sh/name=x'"),
        ("policy notin (chat)", "their labels: policy=chat"),
    ],
)
def test_what_selects_nothing_is_an_error_and_never_an_empty_list(selector: str, words: str):
    """Rows 3 and 23: an empty list reads "no metrics returned", and nobody knows why."""
    board = a_board(chat=a_decision(7))

    with pytest.raises(NotServedError) as refused:
        _asked(board, selector=selector)

    assert words in str(refused.value)


def test_a_namespace_without_policies_says_so():
    with pytest.raises(NotServedError, match="there is no policy in namespace 'empty'"):
        _asked(a_board(chat=a_decision(7)), namespace="empty", selector="")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("leadtime-desired-replica", "did you mean 'leadtime-desired-replicas'?"),
        ("vllm:num_requests", "metrics here: leadtime-desired-replicas, leadtime-queue-replicas"),
        ("status", "metrics here:"),
    ],
)
def test_an_unknown_metric_is_an_error_with_a_way_out(metric: str, words: str):
    with pytest.raises(NotServedError) as refused:
        _asked(a_board(chat=a_decision(7)), metric)

    assert f"could not find the metric {metric} for namespace default" in str(refused.value)
    assert words in str(refused.value)


def test_a_selector_that_is_none_is_a_bad_request():
    with pytest.raises(StatusError) as refused:
        _asked(a_board(chat=a_decision(7)), selector="policy=meta-llama/Llama-3")

    assert refused.value.status.code == 400
    assert "meta-llama/Llama-3" in refused.value.status.message


def test_before_the_first_tick_there_is_no_number():
    with pytest.raises(NoDecisionYetError, match="its first tick has not finished"):
        _asked(a_board(chat=None))


def test_a_refused_decision_answers_its_reason():
    """Row 29: a source outage reported as 0 scaled in."""
    board = a_board(chat=a_decision(7, refusal="no replica answered for 312 s, limit 120 s"))

    with pytest.raises(NoDecisionYetError, match="no replica answered for 312 s, limit 120 s"):
        _asked(board)


def test_a_stale_decision_is_an_error_and_not_the_last_value():
    """Rows 25 and 28: 121 s old with a limit of 120 s."""
    board = a_board(chat=a_decision(7))

    assert _asked(board, now=T0 + 120)
    with pytest.raises(NoDecisionYetError, match=r"121 s old, spec\.staleAfter is 2m"):
        _asked(board, now=T0 + 121)


def test_a_withdrawn_policy_is_gone():
    """Row 25: zalando kept serving a metric whose source was deleted."""
    board = a_board(chat=a_decision(7), code=a_decision(2))
    board.withdraw(board.all()[0].key)

    with pytest.raises(NotServedError, match="no policy default/chat"):
        _asked(board)


@pytest.mark.parametrize("published", [0, -1])
def test_a_count_below_one_is_never_published(published: int):
    """Advisory mode publishes what is, and that may be 0: an HPA would keep it there."""
    with pytest.raises(StatusError, match=r"policy default/chat: .* must be 1 at least") as refused:
        _asked(a_board(chat=a_decision(published)))

    assert refused.value.status.code == 500


@pytest.mark.parametrize("replicas", [math.nan, math.inf, -1.0])
def test_an_impossible_demand_is_an_error_and_never_a_number(replicas: float):
    """Rows 11 and 12: NaN became the smallest integer, +Inf became 0."""
    board = a_board(chat=a_decision(7, demands=(Demand("queue", replicas, "?"),)))

    with pytest.raises(StatusError, match="is no number of replicas") as refused:
        _asked(board, "leadtime-queue-replicas")

    assert refused.value.status.code == 500


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        ("leadtime-queue-replicas", "6200m"),
        ("leadtime-kv-replicas", "0"),
        ("leadtime-ttft-replicas", "5001m"),
        ("leadtime-standby-replicas", "1"),
    ],
)
def test_components_are_shown_to_people_in_fractions(metric: str, value: str):
    demands = (
        Demand("queue", 6.2, "q"),
        Demand("kvCache", 0.0, "k"),
        Demand("ttft", 5.00001, "t"),
    )
    board = a_board(chat=a_decision(7, demands=demands))

    assert _asked(board, metric)[0]["value"] == value


def test_a_signal_that_asks_for_nothing_says_why():
    demands = (Demand("ttft", None, "no first token in 2m"),)

    with pytest.raises(NotServedError, match="no first token in 2m"):
        _asked(a_board(chat=a_decision(7, demands=demands)), "leadtime-ttft-replicas")


def test_a_signal_that_the_policy_does_not_use_says_so():
    with pytest.raises(NotServedError, match="signal kvCache is not part of this policy"):
        _asked(a_board(chat=a_decision(7)), "leadtime-kv-replicas")


@pytest.mark.parametrize("wanted", [*range(1, 60), 1000, 20_000])
def test_an_hpa_without_tolerance_lands_on_the_published_count(wanted: int):
    """Vector 9: tolerance 0 is exact from any number of replicas."""
    port = hpa_port()
    items = _asked(a_board(chat=a_decision(wanted)))
    milli = [read_milli(str(item["value"])) for item in items]

    landed = {port.average_value(milli, 1000, start, 0, 0) for start in (1, 9, 20, 400)}

    assert landed == {wanted}


@pytest.mark.parametrize(("published", "landed"), [(21, 20), (22, 20), (19, 20), (23, 23)])
def test_an_hpa_with_the_default_tolerance_ignores_small_steps(published: int, landed: int):
    """Vector 9, row 27: from 20, neither 19, 21 nor 22 can be reached by any value."""
    items = _asked(a_board(chat=a_decision(published)))

    milli = [read_milli(str(item["value"])) for item in items]

    assert hpa_port().average_value(milli, 1000, 20) == landed
