"""``leadtime bench scaling --html``: one page that stands alone, on which a miss is a miss."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from adapter.cli.benchmarks.cell_html import as_html
from adapter.cli.main import main
from adapter.simulator.matrix import Cell, Outcome
from adapter.simulator.trials import FAULTS
from tests.cli.test_bench_scaling import a_cell, an_outcome, bench

Played = dict[Cell, Outcome]


class Rows(HTMLParser):
    """The cells of every table row."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def rows_of(text: str, caption: str) -> list[list[str]]:
    """Return the rows of the first table with that caption, its header first."""
    begin = text.index(f"<caption>{caption}")
    return Rows(text[begin : text.index("</table>", begin)]).rows


def two() -> Played:
    return {
        a_cell("kthena"): an_outcome(attainment=0.98999, paid_hours=10.5),
        a_cell(): an_outcome(attainment=0.9995, paid_hours=15.0),
    }


def dots(text: str) -> list[str]:
    return re.findall(r'<g class="dot ([^"]*)"[^>]*aria-label="([^"]*)"', text)


def test_it_stands_alone():
    text = as_html(two())

    assert text.startswith("<!DOCTYPE html>")
    assert "default-src 'none'" in text
    assert "<script" not in text
    assert not re.search(r"(src|href)=", text)


def test_who_met_the_objective_comes_before_who_paid_less_and_missed():
    _, first, second = rows_of(as_html(two()), "The cheapest")

    assert first == ["leadtime", "1.", "99.95%", "95.00%", "15.00", "1.50", "3"]
    assert second[:3] == ["kthena", "miss", "98.99%"]


def test_a_miss_is_told_at_its_dot_and_has_a_colour_of_its_own():
    """98.999 % is not drawn as 99: it would lie on the objective."""
    (missed, said), (met, ours) = dots(as_html(two()))

    assert said == "kthena: 1.05, 98.99 %; miss"
    assert ours == "leadtime: 1.5, 99.95 %; met"
    assert missed.split()[0] != met.split()[0]
    assert "strong" in met
    assert "strong" not in missed


def test_the_objective_and_the_bound_are_drawn():
    text = as_html(two())

    assert "objective, 99 %" in text
    assert ">bound</text>" in text


def test_every_race_has_its_section():
    other = replace(a_cell(), course=replace(a_cell().course, fleet=9))

    text = as_html({**two(), other: an_outcome()})

    assert text.count("<section>") == 2
    assert "fleet 9, seed 1" in text


def test_several_seeds_are_one_line_with_intervals():
    outcomes = {
        replace(a_cell(), course=replace(a_cell().course, seed=seed)): an_outcome(
            attainment=share, paid_hours=10.0 + seed, worst_window=share - 0.1
        )
        for seed, share in ((1, 1.0), (2, 0.98))
    }

    text = as_html(outcomes)

    _, row = rows_of(text, "The cheapest")
    assert row == [
        *("leadtime", "miss", "99.00%", "98.00% to 100.00%", "88.00%"),
        *("1.15", "1.10 to 1.20", "miss: met on 1 of 2 seeds"),
    ]
    assert dots(text)[0][1].endswith("miss: met on 1 of 2 seeds")


def test_faults_have_a_table_and_dots_with_their_names():
    hurt = replace(a_cell(), fault="replica-dies")
    text = as_html({**two(), hurt: an_outcome(attainment=0.9, paid_hours=16.0)})

    _, row = rows_of(text, "What each fault changed")

    assert row == [
        *("replica-dies", "leadtime", "99.95%", "90.00%", "15.00", "16.00", "95.00%", "miss")
    ]
    assert len(rows_of(text, "The cheapest")) == 3
    assert any(said.startswith("leadtime, replica-dies: ") for _, said in dots(text))


class TestVerb:
    def test_the_page_is_written_beside_what_is_printed(self, tmp_path, capsys):
        path = tmp_path / "scaling.html"

        code = bench("--policy", "static-p100", "--faults", "--html", str(path))

        assert code == 0
        assert "static-p100" in capsys.readouterr().out
        assert len(rows_of(path.read_text(), "What each fault changed")) == 1 + len(FAULTS)

    def test_without_the_option_there_is_no_table_of_faults(self, tmp_path):
        path = tmp_path / "scaling.html"

        bench("--policy", "static-p100", "--html", str(path))

        assert "What each fault changed" not in path.read_text()

    @pytest.mark.parametrize("where", ["nowhere/page.html", "."])
    def test_a_page_without_a_place_is_refused_before_anything_is_played(
        self, tmp_path, capsys, where
    ):
        """The whole matrix, which takes days."""
        code = main(["bench", "scaling", "--html", str(tmp_path / where)])

        assert code == 2
        assert "give a file in a directory that is there" in capsys.readouterr().err
