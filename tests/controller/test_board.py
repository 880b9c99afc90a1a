from dataclasses import replace

import pytest

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import NoDecisionYetError, NotServedError
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Census, Decision
from tests.build import T0
from tests.controller.policies import a_policy

CHAT = PolicyKey("inference", "chat")
DECISION = Decision(
    at=T0,
    desired=4,
    published=4,
    refusal=None,
    valid_until=Timestamp(T0 + 120),
    demands=(),
    steps=(),
    holds=(),
    conditions=(),
    census=Census(serving=4),
    standby=0,
    lead_time=Seconds(240),
)


def a_board(*names: str, namespace: str = "inference") -> Board:
    board = Board()
    for name in names:
        board.list_policy(a_policy(name, namespace=namespace), {"model": "m"})
    return board


def why_not(board: Board, key: PolicyKey, now: float = T0) -> str:
    with pytest.raises(NoDecisionYetError) as refused:
        board.decided(key, Timestamp(now))
    return str(refused.value)


def test_a_posted_decision_is_what_is_read():
    board = a_board("chat")

    board.post(CHAT, DECISION, Timestamp(T0 + 0.2))

    assert board.decided(CHAT, T0) is DECISION
    assert board.find(CHAT).tick_at == T0 + 0.2
    assert board.find(CHAT).labels == {"model": "m", "policy": "chat"}


def test_listings_come_by_namespace_and_name():
    board = a_board("code", "chat")
    board.list_policy(a_policy("aaa", namespace="other"), {})

    assert [str(each.key) for each in board.all()] == [
        "inference/chat",
        "inference/code",
        "other/aaa",
    ]
    assert [each.key.name for each in board.in_namespace("inference")] == ["chat", "code"]


def test_before_the_first_tick_the_answer_says_how_long_to_wait():
    assert why_not(a_board("chat"), CHAT) == (
        "policy inference/chat has no decision yet: its first tick has not finished; "
        "wait one interval (10 s) after start"
    )


def test_a_known_problem_is_the_reason_for_no_decision():
    board = a_board("chat")
    board.report(CHAT, "pods are not read yet")

    assert why_not(board, CHAT).endswith("has no decision yet: pods are not read yet")


def test_a_loop_that_failed_is_told_as_what_it_is_and_not_as_one_that_has_not_begun():
    board = a_board("chat")
    board.fail(CHAT, "policy inference/chat: this release reads source.static only")

    assert why_not(board, CHAT) == (
        "policy inference/chat has no decision: this release reads source.static only"
    )


def test_a_count_outlives_the_failure_of_its_loop_as_long_as_it_is_good():
    """Held until ``staleAfter``; from then on the answer says what happened to the loop."""
    board = a_board("chat")
    board.post(CHAT, DECISION, T0)
    board.fail(CHAT, "its loop failed at 08:00:05Z (KeyError)")

    assert board.decided(CHAT, Timestamp(T0 + 120)) is DECISION
    assert why_not(board, CHAT, T0 + 121) == (
        "policy inference/chat: stale: the last decision is 121 s old, spec.staleAfter is 2m; "
        "its loop failed at 08:00:05Z (KeyError)"
    )


def test_a_refusal_is_not_repeated_for_a_loop_that_failed_since():
    board = a_board("chat")
    board.post(CHAT, replace(DECISION, refusal="no metrics for 2m"), T0)
    board.fail(CHAT, "its loop failed")

    assert why_not(board, CHAT) == "policy inference/chat has no decision: its loop failed"


def test_the_next_decision_ends_a_failure():
    board = a_board("chat")
    board.fail(CHAT, "its loop failed")

    board.post(CHAT, DECISION, T0)

    assert board.find(CHAT).failure == ""


def test_a_refusal_is_an_error_in_its_own_words():
    board = a_board("chat")
    board.post(CHAT, replace(DECISION, refusal="no metrics for 2m"), T0)

    assert why_not(board, CHAT) == "policy inference/chat: no metrics for 2m"


def test_a_decision_past_its_time_is_refused_as_stale():
    """A loop that hangs must not be served from for ever."""
    board = a_board("chat")
    board.post(CHAT, DECISION, T0)

    assert board.decided(CHAT, Timestamp(T0 + 120)) is DECISION
    assert why_not(board, CHAT, T0 + 121) == (
        "policy inference/chat: stale: the last decision is 121 s old, spec.staleAfter is 2m; "
        "its loop does not tick, see the adapter's log"
    )


def test_a_new_version_of_a_policy_keeps_the_decision_of_the_old_one():
    board = a_board("chat")
    board.post(CHAT, DECISION, T0)
    board.report(CHAT, "broken")

    board.list_policy(a_policy("chat", top=9), {})

    listing = board.find(CHAT)
    assert (listing.policy.spec.replicas.max, listing.decision) == (9, DECISION)
    assert (listing.problem, listing.tick_at) == ("", T0)


def test_a_withdrawn_policy_takes_no_late_post_and_no_report():
    board = a_board("chat")
    board.withdraw(CHAT)

    board.post(CHAT, DECISION, T0)
    board.report(CHAT, "late")
    board.fail(CHAT, "late")

    assert board.all() == ()


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        (PolicyKey("inference", "chad"), "no policy inference/chad; did you mean 'chat'?"),
        (PolicyKey("other", "chat"), "that name exists as inference/chat"),
        (PolicyKey("inference", "x"), "policies in namespace 'inference': chat, code"),
        (PolicyKey("empty", "x"), "policies in namespace 'empty': none"),
    ],
)
def test_an_unknown_policy_is_answered_with_the_nearest_known(key: PolicyKey, sentence: str):
    with pytest.raises(NotServedError) as unknown:
        a_board("chat", "code").find(key)

    assert sentence in str(unknown.value)
    assert not isinstance(unknown.value, NoDecisionYetError)


def test_every_change_of_a_policy_is_told_to_those_who_wait_for_it():
    board = a_board("chat", "code")
    changes = [
        lambda: board.post(CHAT, DECISION, T0),
        lambda: board.list_policy(a_policy("chat", namespace="inference"), {}),
        lambda: board.withdraw(CHAT),
    ]

    for change in changes:
        own, anything = board.change(CHAT), board.change(None)
        other = board.change(PolicyKey("inference", "code"))
        change()
        assert own.is_set()
        assert anything.is_set()
        assert not other.is_set()
        assert not board.change(CHAT).is_set()


def test_those_who_wait_for_one_change_share_it():
    board = a_board("chat")

    assert board.change(CHAT) is board.change(CHAT)
