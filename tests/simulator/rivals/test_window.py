"""Numbers of the recent past: what is as old as the window is out."""

from adapter.fleet.units import Seconds, Timestamp
from adapter.simulator.rivals.window import Window


def a_window(*entries: tuple[float, float], keep: float = 60.0) -> Window:
    window = Window()
    for at, number in entries:
        window = window.plus(Timestamp(at), number, keep=Seconds(keep))
    return window


def test_what_is_as_old_as_the_window_is_dropped():
    assert a_window((0.0, 1.0), (30.0, 2.0), (60.0, 3.0)).entries == ((30.0, 2.0), (60.0, 3.0))


def test_after_leaves_out_its_moment():
    assert a_window((0.0, 1.0), (30.0, 2.0)).after(0.0) == (2.0,)


def test_ten_equal_numbers_have_that_mean():
    """0.9 added ten times is 9.000000000000002, and would buy AIBrix a replica."""
    assert a_window(*[(float(tick), 0.9) for tick in range(10)]).mean(-1.0) == 0.9


def test_no_number_has_no_mean():
    assert Window().mean(0.0) is None
