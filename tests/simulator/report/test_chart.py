"""Charts: what is drawn, what is told without eyes, and that a gap is no zero."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.simulator.report.chart import (
    Dot,
    Rule,
    Series,
    Shape,
    Span,
    line_chart,
    scatter_chart,
)
from adapter.simulator.report.scale import Axis, Kind

X = Axis("time", Kind.TIME)
Y = Axis("replicas", least=0)


def a_line(*series: Series, **more: object) -> str:
    return line_chart(series, title="Replicas", x=X, y=Y, **more)  # type: ignore[arg-type]


def points(*values: float | None) -> list[tuple[float, float | None]]:
    return [(60.0 * n, value) for n, value in enumerate(values)]


def tree(figure: str) -> ElementTree.Element:
    """Parse it: what is no XML would be repaired differently by each browser."""
    return ElementTree.fromstring(f"<div>{figure}</div>")  # noqa: S314 - our own text


def strokes(figure: str) -> list[str]:
    return [path.get("d", "") for path in tree(figure).iter("path") if path.get("d") != "M1 7H25"]


class TestLines:
    def test_a_line_runs_from_corner_to_corner(self):
        (path,) = strokes(a_line(Series("one", points(0, 10))))

        assert path == "M0.0 1000.0L1000.0 0.0"

    def test_a_step_holds_until_the_next_value(self):
        (path,) = strokes(a_line(Series("one", points(0, 10, 10), Shape.STEP)))

        assert path == "M0.0 1000.0L500.0 1000.0L500.0 0.0L1000.0 0.0"

    def test_an_area_goes_down_to_the_ground(self):
        (path,) = strokes(a_line(Series("one", points(10, 10), Shape.AREA)))

        assert path == "M0.0 1000.0L0.0 0.0L1000.0 0.0L1000.0 1000.0Z"

    @pytest.mark.parametrize("missing", [None, math.nan, math.inf])
    def test_a_gap_parts_the_line_and_is_no_zero(self, missing):
        (path,) = strokes(a_line(Series("one", points(10, 10, missing, 10, 10))))

        assert path.count("M") == 2
        assert "1000.0L" not in path.replace("L1000.0 0.0", "")
        assert " 1000.0" not in path

    def test_many_points_are_thinned_and_keep_their_extremes(self):
        values = [float(n % 7) for n in range(20_000)]
        values[777] = 90.0

        (path,) = strokes(a_line(Series("one", points(*values))))

        assert len(path) < 20_000
        assert " 0.0L" in path, "the peak of 90 on an axis to 90"

    def test_a_gap_survives_thinning(self):
        values: list[float | None] = [5.0] * 10_000
        values[4000:6000] = [None] * 2000

        (path,) = strokes(a_line(Series("one", points(*values))))

        assert path.count("M") == 2

    def test_nothing_to_draw_is_still_a_figure(self):
        assert tree(a_line(Series("one", []))).find(".//svg") is not None
        assert tree(a_line()).find(".//svg") is not None

    def test_a_span_is_marked_where_it_lies_and_stands_in_the_legend(self):
        figure = a_line(Series("one", points(1, 2, 3)), spans=[Span(30.0, 60.0, "no data")])

        (rect,) = [r for r in tree(figure).iter("rect") if r.get("class") == "span" and r.get("x")]
        assert (rect.get("x"), rect.get("width")) == ("25.00%", "25.00%")
        assert figure.count("no data") == 2

    def test_a_span_outside_the_chart_is_not_drawn(self):
        figure = a_line(Series("one", points(1, 2)), spans=[Span(600.0, 900.0, "later")])

        assert figure.count('class="span"') == 1, "in the legend alone"

    def test_a_rule_is_on_the_axis_even_above_every_value(self):
        figure = a_line(Series("one", points(1, 2)), rules=[Rule(8.0, "limit")])

        (rule,) = [line for line in tree(figure).iter("line") if line.get("class") == "rule"]
        assert rule.get("y1") == "0.00%"


class TestWithoutEyes:
    def test_title_and_description_are_tied_to_the_picture(self):
        root = tree(a_line(Series("one", points(1, 2)), description="what was wanted"))

        svg = next(each for each in root.iter("svg") if each.get("class") == "plot")
        ids = (svg.get("aria-labelledby") or "").split()
        assert [root.find(f".//*[@id='{key}']").text for key in ids] == [  # type: ignore[union-attr]
            "Replicas",
            "what was wanted",
        ]

    def test_the_figures_stand_in_a_table_behind_a_summary(self):
        root = tree(a_line(Series("serving", points(*range(1, 100)))))

        rows = root.findall(".//details//tbody/tr")
        assert [cell.text for cell in root.findall(".//details//thead/tr/th")] == [
            "time",
            "serving",
        ]
        assert len(rows) == 48
        assert rows[0][1].text == "2", "the value known then"

    def test_a_gap_is_a_dash_in_the_table(self):
        root = tree(a_line(Series("serving", points(*[None] * 30, *[4.0] * 30))))

        cells = [row[1].text for row in root.findall(".//details//tbody/tr")]
        assert cells[0] == "-"
        assert cells[-1] == "4"

    def test_series_are_told_apart_without_colour(self):
        figure = a_line(
            Series("one", points(1, 2)), Series("two", points(2, 1), dashed=True, colour=9)
        )

        assert 'class="line c0"' in figure
        assert 'class="line c1 dashed"' in figure

    def test_dots_are_reached_by_keyboard_and_told(self):
        figure = scatter_chart(
            [Dot(1.3, 99.4, "leadtime", strong=True, note="70B")],
            title="Frontier",
            x=Axis("paid / bound"),
            y=Axis("in time", unit="%"),
        )

        (dot,) = [g for g in tree(figure).iter("g") if "dot" in (g.get("class") or "")]
        assert dot.get("tabindex") == "0"
        assert dot.get("aria-label") == "leadtime: 1.3, 99.4%; 70B"
        assert "strong" in (dot.get("class") or "")


class TestScatter:
    def test_strong_dots_are_drawn_last_and_names_stay_inside(self):
        dots = [Dot(4.0, 1.0, "ours", strong=True), Dot(1.0, 2.0, "theirs", colour=1)]

        figure = scatter_chart(dots, title="Frontier", x=Axis("x"), y=Axis("y"))

        assert re.findall(r'class="(dot [^"]*)"', figure) == ["dot c1 right", "dot c0 strong left"]

    def test_lines_through_dots_and_upright_rules_count_for_the_ends(self):
        figure = scatter_chart(
            [Dot(2.0, 2.0, "one")],
            title="Frontier",
            x=Axis("x", least=0),
            y=Axis("y", least=0),
            joined=[Series("sweep", [(1.0, 1.0), (4.0, 4.0)])],
            rules=[Rule(8.0, "bound", vertical=True), Rule(8.0, "objective")],
        )

        assert strokes(figure) == ["M125.0 875.0L500.0 500.0"]
        assert 'x1="100.00%" x2="100.00%"' in figure


@given(name=st.text(), title=st.text(min_size=1), note=st.text())
def test_no_name_breaks_out_of_the_picture(name, title, note):
    """A policy's name, a scheduler's words: whatever they hold is text."""
    figure = scatter_chart(
        [Dot(1.0, 1.0, name, note=note)], title=title, x=Axis(name), y=Axis(title)
    ) + line_chart(
        [Series(name, [(0.0, 1.0), (1.0, 2.0)])],
        title=title,
        x=Axis(name),
        y=Axis(title),
        description=note,
        spans=[Span(0.0, 0.5, name)],
        rules=[Rule(1.0, note)],
    )

    tags = set(re.findall(r"<([a-z0-9]+)", figure))
    assert tags <= {
        *("figure", "figcaption", "h3", "p", "div", "svg", "title", "desc", "g", "line", "text"),
        *("path", "rect", "circle", "ul", "li", "details", "summary", "table", "caption", "thead"),
        *("tbody", "tr", "th", "td"),
    }
