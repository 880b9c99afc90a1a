"""What people see while it plays: a live table on a terminal, a line now and then elsewhere."""

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Final, Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.table import Table

from adapter.cli.demonstration.moment import Moment

_ROWS: Final = 16
"""Rows of the table: ticks that changed something, and below them the latest one."""

_FRAME_SECONDS: Final = 0.25
"""Wall seconds between two drawings of the table; drawing one takes about 10 ms."""

_PULSE_SECONDS: Final = 10.0
"""Wall seconds between two lines where there is no terminal."""


class Screen(Protocol):
    """Shows moments as they come."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the terminal as it was found, with the last picture on it."""
        ...

    def show(self, moment: Moment) -> None:
        """Show ``moment`` if it is time for it; never waits."""
        ...


def screen_for(console: Console, title: str, wall: Callable[[], float]) -> Screen:
    """Return the live table on a terminal, lines elsewhere; ``wall`` is the wall's time."""
    return LiveTable(console, title, wall) if console.is_terminal else Lines(console, wall)


class Lines:
    """One line every ten seconds, so that a log shows that it plays, and no more."""

    def __init__(self, console: Console, wall: Callable[[], float]) -> None:
        self._console, self._wall = console, wall
        self._due = wall()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave nothing behind."""

    def show(self, moment: Moment) -> None:
        """Print ``moment`` if the last line is ten seconds old."""
        if self._wall() < self._due:
            return
        self._due = self._wall() + _PULSE_SECONDS
        pairs = zip(_HEADINGS, cells(moment), strict=True)
        line = "  ".join(f"{heading} {cell}" for heading, cell in pairs)
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class LiveTable:
    """The latest tick in the last row, and above it the ticks that changed something."""

    def __init__(self, console: Console, title: str, wall: Callable[[], float]) -> None:
        self._title, self._wall = title, wall
        self._live = Live(console=console, auto_refresh=False)
        self._changes: deque[Moment] = deque(maxlen=_ROWS)
        self._latest: Moment | None = None
        self._due = wall()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._draw()
        self._live.stop()

    def show(self, moment: Moment) -> None:
        """Keep ``moment`` if it changed something, and draw if the last picture is old enough."""
        if self._latest is None or _outcome(moment) != _outcome(self._latest):
            self._changes.append(moment)
        self._latest = moment
        if self._wall() >= self._due:
            self._due = self._wall() + _FRAME_SECONDS
            self._draw()

    def _draw(self) -> None:
        latest = self._latest
        why = f"why: {latest.why}" if latest else "no decision yet"
        table = Table(
            title=self._title,
            title_justify="left",
            caption=why,
            caption_justify="left",
            box=None,
            pad_edge=False,
        )
        for heading in _HEADINGS[:-1]:
            table.add_column(heading, justify="right", no_wrap=True)
        for moment in self._changes:
            if moment is not latest:
                table.add_row(*cells(moment)[:-1], style="dim")
        if latest is not None:
            table.add_row(*cells(latest)[:-1], style="bold")
        self._live.update(table, refresh=True)


_HEADINGS: Final = (
    "time (min:s)",
    "req/s",
    "in flight",
    "KV",
    "TTFT p95",
    "ready",
    "loading",
    "desired",
    "published",
    "HPA",
    "why",
)


def cells(moment: Moment) -> tuple[str, ...]:
    """Return ``moment`` as text, one cell for each heading."""
    traffic, decision = moment.traffic, moment.decision
    ttft = traffic.ttft_p95
    minutes, seconds = divmod(round(moment.elapsed), 60)
    return (
        f"{minutes:02d}:{seconds:02d}",
        f"{traffic.load:.1f}",
        f"{traffic.in_flight}",
        f"{traffic.kv_usage:.0%}",
        "-" if ttft is None else f"{ttft:.2f}s",
        f"{decision.census.serving}",
        f"{decision.census.loading}",
        f"{decision.desired}",
        "error" if decision.refusal else f"{decision.published}",
        f"{moment.replicas}",
        moment.why,
    )


def _outcome(moment: Moment) -> tuple[object, ...]:
    """Return what makes a moment worth keeping on the screen when it changes."""
    decision = moment.decision
    census = decision.census
    return (
        decision.published,
        moment.replicas,
        census.serving,
        census.loading,
        decision.refusal is None,
    )
