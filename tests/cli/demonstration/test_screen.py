import io

from rich.console import Console

from adapter.cli.demonstration.screen import Lines, LiveTable, cells, screen_for
from tests.cli.demonstration.build import a_moment


class Wall:
    """A wall clock that a test sets."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_console(*, terminal: bool) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=160)


def test_the_cells_are_the_numbers_of_the_moment():
    moment = a_moment(elapsed=754.6, desired=6, published=5, replicas=5)

    assert cells(moment) == (
        "12:35", "12.3", "57", "42%", "0.31s", "2", "2", "6", "5", "5", "queue wants 6",
    )  # fmt: skip


def test_what_is_unknown_is_a_dash_and_a_refusal_is_an_error():
    moment = a_moment(ttft=None, refusal="no metrics for 120 s")

    assert cells(moment)[4] == "-"
    assert cells(moment)[8] == "error"
    assert cells(moment)[-1] == "no metrics for 120 s"


def test_a_terminal_gets_the_table_and_a_file_gets_lines():
    assert isinstance(screen_for(a_console(terminal=True), "demo", Wall()), LiveTable)
    assert isinstance(screen_for(a_console(terminal=False), "demo", Wall()), Lines)


def test_lines_come_every_ten_seconds():
    """Shown at 0, 5, 10 and 12 s: the first and the third are printed."""
    console, wall = a_console(terminal=False), Wall()
    with Lines(console, wall) as lines:
        for seconds, desired in ((0, 2), (5, 3), (10, 4), (12, 5)):
            wall.now = 100.0 + seconds
            lines.show(a_moment(desired=desired))

    printed = console.file.getvalue().splitlines()
    assert [line.rpartition("wants ")[2] for line in printed] == ["2", "4"]
    assert "ready 2  loading 2  desired 2" in printed[0]


def test_the_table_keeps_changes_and_ends_with_the_latest():
    """Four ticks of which two changed something: two rows and the latest one."""
    console, wall = a_console(terminal=True), Wall()
    with LiveTable(console, "leadtime demo", wall) as table:
        for second, desired in ((0, 2), (5, 2), (10, 7), (15, 7)):
            table.show(a_moment(elapsed=second, desired=desired))

    last = console.file.getvalue().rpartition("leadtime demo")[2]
    assert [time for time in ("00:00", "00:05", "00:10", "00:15") if time in last] == [
        "00:00",
        "00:10",
        "00:15",
    ]
    assert "queue wants 7" in last


def test_the_table_is_drawn_four_times_a_second_at_the_most():
    console, wall = a_console(terminal=True), Wall()
    with LiveTable(console, "leadtime demo", wall) as table:
        for step in range(100):
            wall.now = 100.0 + step / 100
            table.show(a_moment(elapsed=step))
        drawn = console.file.getvalue().count("leadtime demo")

    assert drawn <= 5


def test_a_table_that_never_saw_a_moment_leaves_the_terminal_in_order():
    console = a_console(terminal=True)

    with LiveTable(console, "leadtime demo", Wall()):
        pass

    assert "no decision yet" in console.file.getvalue()
