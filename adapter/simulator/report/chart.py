"""Line and scatter charts as figures: inline SVG whose letters keep their size at any width.

A series:  Series("serving", [(at, 3.0), (at + 60, None)], shape=Shape.STEP)
A figure:  line_chart(series, title="Replicas", x=Axis("time", Kind.TIME), y=Axis("replicas"))
A dot:     Dot(1.31, 99.4, "leadtime", strong=True)
A figure:  scatter_chart(dots, title="Frontier", x=Axis("paid / bound"), y=Axis("in time"))

Each has its title and description for screen readers, a legend, and the figures as a table behind
a summary that the keyboard reaches. Colours are classes of ``style.CSS``; lines differ by dashes
as well. Places are percentages and paths are stretched, so there is no script and no size to know.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import Final

from adapter.simulator.report.page import details, table
from adapter.simulator.report.scale import Axis, Scale

Point = tuple[float, float | None]
"""Place on the x axis, and the value there; None is a gap, not a 0."""

COLOURS: Final = 8
"""How many the styles know; more series begin anew."""

_COLUMNS: Final = 600
"""A line of more points is drawn by the least and the most of each of so many columns."""

_ZONES: Final = 84
"""Columns that tell their values under the mouse; a week of two hours each."""

_ROWS: Final = 48
"""Rows of the table behind a line chart."""

_FULL: Final = 1000.0
"""Width and height that paths are drawn in, before they are stretched to what there is."""


class Shape(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    STEP = "step"
    """A value holds until the next: counts of replicas."""

    AREA = "area"
    """A step, filled down to 0."""


@dataclass(frozen=True, slots=True)
class Series:
    """Values over x, which rises."""

    name: str
    points: Sequence[Point]
    shape: Shape = Shape.LINE
    colour: int | None = None
    """0 up; None: the series' place in the chart."""

    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """One point of a scatter chart."""

    x: float
    y: float
    name: str
    colour: int = 0
    strong: bool = False
    """Drawn larger, and named without being pointed at."""

    note: str = ""
    """What else is told of it when it is pointed at or reached with the keyboard."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line right across: an objective, a bound."""

    value: float
    name: str
    vertical: bool = False


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the x axis that is marked: data that is missing, a deployment."""

    begin: float
    end: float
    name: str


def line_chart(
    series: Sequence[Series],
    *,
    title: str,
    x: Axis,
    y: Axis,
    description: str = "",
    spans: Sequence[Span] = (),
    rules: Sequence[Rule] = (),
) -> str:
    """Return a figure of lines; nothing is drawn where a value is None or not finite."""
    coloured = [_coloured(one, number) for number, one in enumerate(series)]
    across = Scale.of(x, (at for one in series for at, _ in one.points))
    levels = [rule.value for rule in rules if not rule.vertical]
    up = Scale.of(y, (*(v for one in series for _, v in one.points if v is not None), *levels))
    body = "".join(
        (
            *_marks(spans, across),
            _grid(across, up),
            _stretched(_path(one, across, up) for one in coloured),
            *_rules(rules, across, up),
            *_zones(series, across, up),
        )
    )
    inside = _legend(coloured, spans) + _drawing(body, title=title, description=description)
    return _figure(title, description, inside, y, x) + _figures(series, x=x, y=y)


def scatter_chart(
    dots: Sequence[Dot],
    *,
    title: str,
    x: Axis,
    y: Axis,
    description: str = "",
    rules: Sequence[Rule] = (),
    joined: Sequence[Series] = (),
) -> str:
    """Return a figure of dots, and of lines through some: a sweep, a frontier."""
    lines = [_coloured(one, number) for number, one in enumerate(joined)]
    pairs = [(at, v) for one in joined for at, v in one.points if v is not None]
    level = [rule.value for rule in rules if not rule.vertical]
    upright = [rule.value for rule in rules if rule.vertical]
    across = Scale.of(x, (*(dot.x for dot in dots), *(at for at, _ in pairs), *upright))
    up = Scale.of(y, (*(dot.y for dot in dots), *(v for _, v in pairs), *level))
    body = "".join(
        (
            _grid(across, up),
            _stretched(_path(one, across, up) for one in lines),
            *_rules(rules, across, up),
            *(_dot(dot, across, up) for dot in sorted(dots, key=lambda dot: dot.strong)),
        )
    )
    inside = _legend(lines, ()) + _drawing(
        body, title=title, description=description, reachable=True
    )
    rows = [(dot.name, x.text(dot.x), y.text(dot.y), dot.note) for dot in dots]
    figures = details("Figures as a table", table(("", x.label, y.label, ""), rows, caption=title))
    return _figure(title, description, inside, y, x) + figures


def _coloured(series: Series, number: int) -> Series:
    chosen = number if series.colour is None else series.colour
    return replace(series, colour=chosen % COLOURS)


def _figure(title: str, description: str, inside: str, y: Axis, x: Axis) -> str:
    said = f"<p>{escape(description)}</p>" if description else ""
    return (
        f"<figure><figcaption><h3>{escape(title)}</h3>{said}</figcaption>"
        f'<p class="axis">{escape(y.label)}</p>{inside}'
        f'<p class="axis across">{escape(x.label)}</p></figure>'
    )


def _drawing(body: str, *, title: str, description: str, reachable: bool = False) -> str:
    """Return the SVG; what is inside is one picture unless the keyboard reaches its parts."""
    key = sha256(f"{title}{body}".encode()).hexdigest()[:8]
    said = f'<desc id="d{key}">{escape(description)}</desc>' if description else ""
    ids = f"t{key} d{key}" if description else f"t{key}"
    role = "group" if reachable else "img"
    return (
        f'<div class="frame"><svg class="plot" role="{role}" aria-labelledby="{ids}">'
        f'<title id="t{key}">{escape(title)}</title>{said}{body}</svg></div>'
    )


def _legend(series: Sequence[Series], spans: Sequence[Span]) -> str:
    entries = [
        f'<li><svg class="key" aria-hidden="true"><path d="M1 7H25" class="{_class(one)}"/></svg>'
        f"{escape(one.name)}</li>"
        for one in series
    ]
    names = dict.fromkeys(span.name for span in spans)
    entries += [
        '<li><svg class="key" aria-hidden="true"><rect class="span" width="26" height="14"/></svg>'
        f"{escape(name)}</li>"
        for name in names
    ]
    return f'<ul class="legend">{"".join(entries)}</ul>' if entries else ""


def _class(series: Series) -> str:
    return f"{series.shape} c{series.colour}{' dashed' if series.dashed else ''}"


def _grid(across: Scale, up: Scale) -> str:
    levels = "".join(
        f'<line class="grid" x2="100%" y1="{_down(t.place)}" y2="{_down(t.place)}"/>'
        f'<text class="y" x="-8" y="{_down(t.place)}" dy=".35em">{escape(t.text)}</text>'
        for t in up.ticks
    )
    columns = "".join(
        f'<g class="tick{" minor" if t.minor else ""}">'
        f'<line x1="{_percent(t.place)}" x2="{_percent(t.place)}" y1="100%" y2="100%"/>'
        f'<text x="{_percent(t.place)}" y="100%" dy="1.5em">{escape(t.text)}</text></g>'
        for t in across.ticks
    )
    return f"{levels}{columns}"


def _stretched(paths: Iterable[str]) -> str:
    return (
        '<svg width="100%" height="100%" viewBox="0 0 1000 1000" preserveAspectRatio="none">'
        f"{''.join(paths)}</svg>"
    )


def _path(series: Series, across: Scale, up: Scale) -> str:
    steps = series.shape is not Shape.LINE
    points = series.points if steps else _thinned(series.points, across)
    strokes = []
    for known, run in groupby(points, key=lambda point: _known(point[1])):
        if known:
            places = [(_FULL * across.place(at), _FULL * (1 - up.place(v or 0.0))) for at, v in run]
            strokes.append(_stroke(_corners(places) if steps else places, series.shape, up))
    return f'<path class="{_class(series)}" d="{"".join(strokes)}"/>'


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _stroke(places: Iterable[tuple[float, float]], shape: Shape, up: Scale) -> str:
    drawn = list(places)
    text = "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn)
    if shape is not Shape.AREA:
        return f"M{text}"
    ground = f"{_FULL * (1 - up.place(0.0)):.1f}"
    return f"M{drawn[0][0]:.1f} {ground}L{text}L{drawn[-1][0]:.1f} {ground}Z"


def _corners(places: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Yield the corners of a step, without the places at which nothing changes."""
    x, level = places[0]
    yield x, level
    for x, y in places[1:]:
        if y != level:
            yield x, level
            yield x, y
            level = y
    yield x, level


def _thinned(points: Sequence[Point], across: Scale) -> Sequence[Point]:
    """Return the least and the most of each column, in order; a column with a gap keeps it."""
    if len(points) <= 2 * _COLUMNS:
        return points
    kept: list[Point] = []
    for _, column in groupby(points, key=lambda point: int(_COLUMNS * across.place(point[0]))):
        group = list(column)
        drawn = [point for point in group if _known(point[1])]
        ends = {min(drawn, key=_value), max(drawn, key=_value)} if drawn else set()
        kept.extend(sorted(ends))
        if len(drawn) < len(group):
            kept.append((group[-1][0], None))
    return kept


def _value(point: Point) -> float:
    return point[1] or 0.0


def _marks(spans: Sequence[Span], across: Scale) -> Iterator[str]:
    for span in spans:
        begin, end = across.place(span.begin), across.place(span.end)
        if end > begin:
            yield (
                f'<rect class="span" x="{_percent(begin)}" width="{_percent(end - begin)}" '
                f'height="100%"><title>{escape(span.name)}</title></rect>'
            )


def _rules(rules: Sequence[Rule], across: Scale, up: Scale) -> Iterator[str]:
    for rule in rules:
        if rule.vertical:
            at = _percent(across.place(rule.value))
            ends, text = f'x1="{at}" x2="{at}" y2="100%"', f'x="{at}" dx="4" y="0" dy="1em"'
        else:
            at = _down(up.place(rule.value))
            ends, text = f'x2="100%" y1="{at}" y2="{at}"', f'x="100%" y="{at}" dy="-.4em"'
        side = "upright" if rule.vertical else "level"
        yield (
            f'<line class="rule" {ends}/>'
            f'<text class="rule {side}" {text}>{escape(rule.name)}</text>'
        )


def _zones(series: Sequence[Series], across: Scale, up: Scale) -> Iterator[str]:
    """Yield columns without a colour that tell the values there to whoever points at them."""
    moments = _moments(across, _ZONES)
    values = [_sampled(one, moments) for one in series]
    width = _percent(1 / _ZONES)
    for number, at in enumerate(moments):
        told = [
            f"{one.name} {'-' if (v := found[number]) is None else up.axis.text(v)}"
            for one, found in zip(series, values, strict=True)
        ]
        text = escape("\n".join((across.axis.text(at), *told)))
        yield (
            f'<rect class="zone" x="{_percent(number / _ZONES)}" width="{width}" height="100%">'
            f"<title>{text}</title></rect>"
        )


def _figures(series: Sequence[Series], *, x: Axis, y: Axis) -> str:
    across = Scale.of(x, (at for one in series for at, _ in one.points))
    moments = _moments(across, _ROWS)
    columns = [_sampled(one, moments) for one in series]
    rows = [
        (x.text(at), *("-" if (v := column[row]) is None else y.text(v) for column in columns))
        for row, at in enumerate(moments)
    ]
    header = (x.label, *(one.name for one in series))
    return details("Figures as a table", table(header, rows, caption=y.label))


def _moments(across: Scale, count: int) -> list[float]:
    """Return the middles of ``count`` equal parts of the axis."""
    width = (across.most - across.least) / count
    return [across.least + width * (n + 0.5) for n in range(count)]


def _sampled(series: Series, moments: Sequence[float]) -> list[float | None]:
    """Return the latest value known at each moment; None before the first and in a gap."""
    values: list[float | None] = []
    points, place = series.points, -1
    for moment in moments:
        while place + 1 < len(points) and points[place + 1][0] <= moment:
            place += 1
        value = points[place][1] if place >= 0 else None
        values.append(value if _known(value) else None)
    return values


def _dot(dot: Dot, across: Scale, up: Scale) -> str:
    x, y = across.place(dot.x), up.place(dot.y)
    told = f"{dot.name}: {across.axis.text(dot.x)}, {up.axis.text(dot.y)}"
    told = escape(f"{told}; {dot.note}" if dot.note else told)
    side = "left" if x > 0.6 else "right"  # noqa: PLR2004 - names stay within the frame
    return (
        f'<g class="dot c{dot.colour % COLOURS}{" strong" if dot.strong else ""} {side}" '
        f'tabindex="0" role="img" aria-label="{told}">'
        f'<circle cx="{_percent(x)}" cy="{_down(y)}" r="{6 if dot.strong else 4}"/>'
        f'<text x="{_percent(x)}" y="{_down(y)}" dx="{-10 if side == "left" else 10}" dy=".35em">'
        f"{escape(dot.name)}</text><title>{told}</title></g>"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f}%"


def _down(share: float) -> str:
    return _percent(1 - share)
