"""What the kubelet is told."""

from adapter.controller.board import Board
from adapter.fleet.units import Timestamp
from adapter.serving.probes import Probes
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision, a_policy, put


def _probes(board: Board) -> tuple[Probes, FakeClock]:
    clock = FakeClock()
    return Probes(board, clock=clock), clock


def test_a_loop_that_ticks_is_alive():
    """Interval 5 s: 7.5 s may pass between two ticks."""
    probes, clock = _probes(a_board(chat=a_decision()))

    clock.pass_by(7.5)

    assert probes.live().good


def test_a_loop_that_hangs_is_named():
    board = a_board(chat=a_decision(), code=a_decision())
    probes, clock = _probes(board)
    clock.pass_by(8)
    board.post(board.all()[1].key, a_decision(), clock.now())

    health = probes.live()

    assert not health.good
    assert health.text == (
        "policy default/chat: no tick for 8.0 s, limit 7.5 s (interval 5 s); "
        "its loop hangs, see the log"
    )


def test_a_first_tick_may_take_longer():
    """30 s on top of 1.5 intervals, counted from when the policy was first seen."""
    probes, clock = _probes(a_board(chat=None))
    assert probes.live().good

    clock.pass_by(37)
    late = probes.live()
    clock.pass_by(1)
    too_late = probes.live()

    assert late.good
    assert not too_late.good


def test_a_policy_that_came_later_has_its_own_start():
    board = a_board(chat=a_decision())
    probes, clock = _probes(board)
    probes.live()
    clock.pass_by(3600)
    board.post(board.all()[0].key, a_decision(), clock.now())

    put(board, "new", None)

    assert probes.live().good


def test_a_policy_that_returns_starts_anew():
    board = a_board(chat=None)
    probes, clock = _probes(board)
    probes.live()
    board.withdraw(board.all()[0].key)
    probes.live()
    clock.pass_by(3600)
    put(board, "chat", None)

    assert probes.live().good


def test_a_loop_that_hangs_is_found_also_while_its_file_is_broken():
    board = a_board(chat=a_decision())
    board.report(board.all()[0].key, "chat.yaml:8:19: LT007")
    probes, clock = _probes(board)

    clock.pass_by(60)

    assert not probes.live().good


def test_a_policy_whose_loop_cannot_run_does_not_restart_the_others():
    """A source that this build cannot open stays unopened after any number of restarts."""
    board = a_board(chat=a_decision())
    key = board.list_policy(a_policy("prom"), {})
    board.fail(key, "prometheus is not readable yet")
    probes, clock = _probes(board)
    probes.live()
    clock.pass_by(60)
    board.post(board.all()[0].key, a_decision(), clock.now())

    assert probes.live().good


def test_a_clock_set_back_kills_nothing():
    probes, clock = _probes(a_board(chat=a_decision()))

    clock.pass_by(-3600)

    assert probes.live().good


def test_ready_means_having_a_policy():
    """Not that Prometheus or an engine is up: then the count must be held, by us."""
    stale = a_decision(7, at=Timestamp(T0 - 3600), valid_until=Timestamp(T0 - 3500))

    assert _probes(a_board(chat=stale))[0].ready().good
    assert _probes(a_board(chat=None))[0].ready().good


def test_without_a_policy_it_is_not_ready():
    health = _probes(Board())[0].ready()

    assert not health.good
    assert "no policy is loaded" in health.text
