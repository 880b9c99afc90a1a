"""What a reader gets from a chart: by pointing, by keyboard, by eye in a narrow window."""

import re

import pytest

from adapter.simulator.report.chart import (
    COLOURS,
    Dot,
    Rule,
    Series,
    Shape,
    Span,
    line_chart,
    scatter_chart,
)
from adapter.simulator.report.scale import Axis, Kind
from adapter.simulator.report.style import CSS

HOUR = 3600.0
MONDAY = 1_715_558_400.0
TIME = Axis("time, UTC", Kind.TIME)
COUNT = Axis("replicas", least=0)


def a_day(*values: float | None) -> list[tuple[float, float | None]]:
    """Return values an hour apart, from Monday midnight on."""
    return [(MONDAY + HOUR * n, value) for n, value in enumerate(values)]


def zones(figure: str) -> list[list[str]]:
    """Return the lines that each column tells when pointed at."""
    return [text.split("\n") for text in re.findall(r'class="zone"[^>]*><title>([^<]*)', figure)]


class TestPointing:
    def test_a_column_tells_its_time_and_every_series(self):
        figure = line_chart(
            [Series("serving", a_day(2, 3)), Series("desired", a_day(4, 4))],
            title="Replicas",
            x=TIME,
            y=COUNT,
        )

        first, *_, last = zones(figure)
        assert first == ["Mon 13 May 00:00", "serving 2", "desired 4"]
        assert last == ["Mon 13 May 00:59", "serving 2", "desired 4"]

    def test_a_value_holds_until_the_next_one(self):
        figure = line_chart(
            [Series("serving", a_day(1, 2, 3), Shape.STEP)], title="R", x=TIME, y=COUNT
        )

        told = [lines[1] for lines in zones(figure)]
        assert told == ["serving 1"] * 42 + ["serving 2"] * 42

    def test_where_nothing_is_known_there_is_a_dash_and_no_zero(self):
        figure = line_chart([Series("demand", a_day(1, None, None, 1))], title="R", x=TIME, y=COUNT)

        told = {lines[1] for lines in zones(figure)}
        assert told == {"demand 1", "demand -"}

    def test_a_unit_is_told_with_the_number(self):
        figure = line_chart(
            [Series("late", a_day(2.5, 2.5))], title="R", x=TIME, y=Axis("late", unit="%")
        )

        assert zones(figure)[0][1] == "late 2.5%"

    def test_columns_fill_the_width(self):
        figure = line_chart([Series("late", a_day(1, 1))], title="R", x=TIME, y=COUNT)

        places = re.findall(r'class="zone" x="([\d.]+)%" width="([\d.]+)%"', figure)
        assert float(places[0][0]) == 0
        assert float(places[-1][0]) + float(places[-1][1]) == pytest.approx(100, abs=0.05)


class TestLegend:
    def test_each_series_and_each_kind_of_span_has_an_entry(self):
        figure = line_chart(
            [Series("serving", a_day(1, 2)), Series("desired", a_day(2, 2), dashed=True)],
            title="R",
            x=TIME,
            y=COUNT,
            spans=[Span(MONDAY, MONDAY + 60, "no data"), Span(MONDAY + 90, MONDAY + 99, "no data")],
        )

        legend = figure.split('<ul class="legend">')[1].split("</ul>")[0]
        assert re.findall(r"</svg>([^<]*)</li>", legend) == ["serving", "desired", "no data"]
        assert 'class="line c1 dashed"' in legend

    def test_more_series_than_colours_begin_anew(self):
        series = [Series(f"s{n}", a_day(n, n)) for n in range(COLOURS + 2)]

        figure = line_chart(series, title="R", x=TIME, y=COUNT)

        assert figure.count('class="line c0"') == 4, "two lines and their two keys"

    def test_a_scatter_chart_without_lines_has_none(self):
        figure = scatter_chart([Dot(1, 1, "a")], title="F", x=Axis("x"), y=Axis("y"))

        assert "legend" not in figure


class TestKeyboard:
    def test_every_dot_is_reached_and_no_column_is(self):
        """Eighty tab stops to get past a chart would be worse than none."""
        dots = [Dot(n, n, f"policy {n}") for n in range(5)]

        scatter = scatter_chart(dots, title="F", x=Axis("x"), y=Axis("y"))
        lines = line_chart([Series("one", a_day(1, 2))], title="R", x=TIME, y=COUNT)

        assert len(re.findall(r'class="dot [^>]*tabindex="0"', scatter)) == 5
        assert 'tabindex="0"' not in lines.split("<details>")[0]

    def test_a_dot_that_is_reached_shows_its_name(self):
        assert ".dot:focus text" in CSS
        assert ".dot:focus circle" in CSS

    def test_a_group_of_dots_is_not_hidden_as_one_picture(self):
        scatter = scatter_chart([Dot(1, 1, "a")], title="F", x=Axis("x"), y=Axis("y"))
        lines = line_chart([Series("one", a_day(1, 2))], title="R", x=TIME, y=COUNT)

        assert 'class="plot" role="group"' in scatter
        assert 'class="plot" role="img"' in lines

    def test_the_dots_stand_in_a_table_in_the_order_given(self):
        dots = [Dot(2.0, 99.0, "b", note="cheap"), Dot(1.0, 98.0, "a")]

        figure = scatter_chart(dots, title="F", x=Axis("paid"), y=Axis("in time", unit="%"))

        rows = re.findall(
            r'<th scope="row">(\w)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>', figure
        )
        assert rows == [("b", "2", "99%", "cheap"), ("a", "1", "98%", "")]


class TestWidth:
    def test_every_place_is_a_share_and_only_paths_are_stretched(self):
        """A number of pixels would be right at one width and wrong at all others."""
        figure = line_chart(
            [Series("one", a_day(1, 5, 2))], title="R", x=TIME, y=COUNT, rules=[Rule(3, "limit")]
        )

        plot = figure.split('class="plot"')[1].split("</div>")[0]
        for name in ("x1", "x2", "y1", "y2", "cx", "cy"):
            assert all(value.endswith("%") for value in re.findall(rf' {name}="([^"]*)"', plot)), (
                name
            )
        assert plot.count("preserveAspectRatio") == 1
        assert "<text" not in plot.split("<svg")[1].split("</svg>")[0]

    def test_lines_keep_their_width_however_they_are_stretched(self):
        assert "vector-effect:non-scaling-stroke" in CSS

    def test_every_other_time_goes_where_it_is_narrow(self):
        figure = line_chart([Series("one", a_day(*range(25)))], title="R", x=TIME, y=COUNT)

        assert figure.count('class="tick minor"') >= 3
        assert "@media (max-width:40rem){.minor{display:none}" in CSS

    def test_names_on_the_right_are_written_to_the_left(self):
        dots = [Dot(0.0, 1.0, "left"), Dot(10.0, 1.0, "right")]

        figure = scatter_chart(dots, title="F", x=Axis("x"), y=Axis("y"))

        assert re.findall(r'dx="(-?\d+)" dy=".35em">(left|right)<', figure) == [
            ("10", "left"),
            ("-10", "right"),
        ]


def test_equal_figures_are_equal_bytes_and_two_charts_share_no_id():
    def figure(title: str) -> str:
        return line_chart(
            [Series("one", a_day(1, 2))], title=title, x=TIME, y=COUNT, description="d"
        )

    ids = re.findall(r'id="([^"]*)"', figure("A") + figure("B"))

    assert figure("A") == figure("A")
    assert len(ids) == len(set(ids)) == 4
