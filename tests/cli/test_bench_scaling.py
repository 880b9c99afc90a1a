"""``leadtime bench scaling``: resumable, honest, and readable by people and by scripts."""

import argparse
import io
import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.cli.benchmarks.cell_text import as_json, as_text
from adapter.cli.benchmarks.cells import DECIDES, code, digest, outcomes_of
from adapter.cli.benchmarks.scaling import add_options, cells_of
from adapter.cli.main import main
from adapter.fleet.units import Seconds
from adapter.simulator.ablations import ABLATIONS
from adapter.simulator.matrix import Cell, Course, Outcome, policies
from adapter.simulator.stretches import QUICK
from adapter.simulator.trials import FAULTS

KEYS = [
    "trace",
    "engine",
    "loadTimeSeconds",
    "fleet",
    "policy",
    "fault",
    "seed",
    "attainment",
    "paidHours",
    "boundHours",
    "ratio",
    "worstTenMinutes",
    "starts",
    "ttftP99Seconds",
    "tunedTo",
]
SMALL = ("bench", "scaling", "--quick", "--trace", "llmd-ramp", "--fleet", "1", "--load-time", "60")
"""Forty minutes with at most 1.5 requests a second: about half a second."""


def bench(*more: str) -> int:
    return main([*SMALL, *more])


def choice(*more: str) -> list[Cell]:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return cells_of(parser.parse_args([*SMALL[2:], *more]))


def cells(text: str) -> list[dict]:
    return json.loads(text)["cells"]


def a_cell(policy: str = "leadtime") -> Cell:
    course = Course(
        trace="llmd-ramp",
        engine="llama-3.1-70b-4xh100",
        load_time=Seconds(60.0),
        fleet=1,
        seed=1,
        hours=QUICK["llmd-ramp"],
    )
    return Cell(course, policy)


def an_outcome(**more: object) -> Outcome:
    given = {
        "attainment": 1.0,
        "paid_hours": 12.0,
        "bound_hours": 10.0,
        "worst_window": 0.95,
        "starts": 3,
        "ttft_p99": Seconds(0.8),
    }
    return Outcome(**{**given, **more})


def kept(directory: Path, **more: object) -> dict:
    """Change the only kept cell of ``directory``, and return what it was."""
    (path,) = directory.iterdir()
    before = json.loads(path.read_text())
    path.write_text(json.dumps({**before, **more}))
    return before


class TestJson:
    def test_it_has_exactly_the_keys_that_others_read(self, capsys):
        code = bench("--policy", "leadtime", "--policy", "static-p100", "-o", "json")

        out, err = capsys.readouterr()
        said = json.loads(out)
        assert code == 0
        assert err == ""
        assert list(said) == ["cells"]
        assert [list(cell) for cell in said["cells"]] == [KEYS, KEYS]
        assert [cell["policy"] for cell in said["cells"]] == ["leadtime", "static-p100"]

    def test_a_cell_says_what_it_was(self, capsys):
        bench("--policy", "static-p100", "-o", "json")

        (cell,) = cells(capsys.readouterr().out)
        assert cell["trace"] == "llmd-ramp"
        assert cell["engine"] == "llama-3.1-70b-4xh100"
        assert (cell["loadTimeSeconds"], cell["fleet"], cell["seed"]) == (60.0, 1, 1)
        assert cell["ratio"] == pytest.approx(cell["paidHours"] / cell["boundHours"])
        assert cell["ratio"] > 1
        assert 0 <= cell["worstTenMinutes"] <= cell["attainment"] <= 1

    def test_two_runs_print_the_same_bytes(self, capsys):
        texts = []
        for _ in range(2):
            bench("--policy", "hpa-in-flight", "-o", "json")
            texts.append(capsys.readouterr().out)

        assert texts[0] == texts[1]

    def test_nobody_served_is_null_and_not_nan(self, tmp_path, capsys):
        """NaN is no JSON: jq and JavaScript refuse it."""
        bench("--policy", "static-p100", "--results", str(tmp_path))
        kept(tmp_path, ttft_p99=None, attainment=0.0)
        capsys.readouterr()

        bench("--policy", "static-p100", "--results", str(tmp_path), "-o", "json")

        (cell,) = cells(capsys.readouterr().out)
        assert cell["ttftP99Seconds"] is None

    def test_seeds_and_load_times_multiply(self, capsys):
        bench("--load-time", "240", "--seeds", "2", "--policy", "static-p100", "-o", "json")

        found = [(c["loadTimeSeconds"], c["seed"]) for c in cells(capsys.readouterr().out)]
        assert found == [(60.0, 1), (60.0, 2), (240.0, 1), (240.0, 2)]


class TestWhoPlays:
    def test_ablations_play_only_when_asked_for(self, tmp_path):
        asked: list[list[str]] = []
        for more in ((), ("--ablations",), ("--policy", "kthena", "--ablations")):
            chosen = choice(*more)
            asked.append([cell.policy for cell in chosen])

        assert asked[0] == list(policies())
        assert asked[1] == [*policies(), *ABLATIONS]
        assert asked[2] == ["kthena", *ABLATIONS]

    def test_an_ablation_named_twice_plays_once(self):
        chosen = choice("--policy", "leadtime-no-ttft", "--ablations")

        assert sorted(cell.policy for cell in chosen) == sorted(ABLATIONS)

    def test_an_ablation_can_be_named_alone(self, capsys):
        code = bench("--policy", "leadtime-fixed-capacity", "-o", "json")

        (cell,) = cells(capsys.readouterr().out)
        assert code == 0
        assert cell["policy"] == "leadtime-fixed-capacity"
        assert cell["tunedTo"] is None


class TestText:
    def test_losers_are_shown_below_those_that_met_the_objective(self, capsys):
        """KEDA on waiting requests misses the ramp; it has a line, and no rank."""
        chosen = ("keda-waiting", "static-p100", "static-best")
        bench(*(word for name in chosen for word in ("--policy", name)))

        title, header, *rows = capsys.readouterr().out.splitlines()
        assert title.startswith("llmd-ramp, llama-3.1-70b-4xh100, load 60 s, fleet 1, seed 1: ")
        assert "in time" in header
        assert [row.split()[0] for row in rows] == ["1.", "2.", "miss"]
        assert rows[-1].split()[1] == "keda-waiting"

    def test_losers_are_ranked_by_whom_they_served_and_not_by_what_they_saved(
        self, tmp_path, capsys
    ):
        ends = {"leadtime": (0.5, 1.0), "kthena": (0.9, 20.0), "wva-v1": (0.7, 0.5)}
        outcomes_of(
            [a_cell(name) for name in ends],
            lambda cell: an_outcome(
                attainment=ends[cell.policy][0], paid_hours=ends[cell.policy][1]
            ),
            results=tmp_path,
        )

        chosen = (word for name in ends for word in ("--policy", name))
        bench(*chosen, "--results", str(tmp_path))

        rows = capsys.readouterr().out.splitlines()[2:]
        assert [row.split()[1] for row in rows] == ["kthena", "wva-v1", "leadtime"]

    def test_each_course_has_a_table_of_its_own(self, capsys):
        bench("--policy", "static-p100", "--load-time", "240")

        assert len(capsys.readouterr().out.strip().split("\n\n")) == 2

    def test_a_share_just_below_the_objective_does_not_read_as_met(self, tmp_path, capsys):
        """0.98999 is a miss: 98.99 %, not 99.00 %."""
        bench("--policy", "static-p100", "--results", str(tmp_path))
        kept(tmp_path, attainment=0.98999, ttft_p99=None)
        capsys.readouterr()

        bench("--policy", "static-p100", "--results", str(tmp_path))

        row = capsys.readouterr().out.splitlines()[-1]
        assert row.split()[:3] == ["miss", "static-p100", "98.99%"]
        assert row.endswith("-")


class TestSeveralSeeds:
    def outcomes(self, **shares: tuple[float, ...]) -> dict[Cell, Outcome]:
        course = a_cell().course
        return {
            Cell(replace(course, seed=seed), policy): an_outcome(
                attainment=share, paid_hours=10.0 + seed, bound_hours=9.0 + seed / 100
            )
            for policy, each in shares.items()
            for seed, share in enumerate(each, start=1)
        }

    def test_a_policy_has_one_line_with_means_and_their_intervals(self):
        text = as_text(self.outcomes(ours=(1.0, 0.998, 0.999), other=(1.0, 1.0, 0.9)))

        title, explained, _, first, second = text.splitlines()
        assert title.endswith("seeds 1 to 3: bound 9.01 to 9.03 replica-hours")
        assert "bootstrap" in explained
        assert (
            " ".join(first.split()) == "1. ours 99.90% [99.80%, 100.00%] 1.33 [1.22, 1.44] 3 of 3"
        )
        assert second.split()[:3] == ["miss", "other", "96.66%"]
        assert second.endswith("2 of 3")

    def test_one_miss_is_a_miss_whatever_the_mean(self):
        """99.6 % on average, and late for one seed in five."""
        text = as_text(self.outcomes(ours=(1.0, 1.0, 1.0, 1.0, 0.98)))

        row = text.splitlines()[-1]
        assert row.split()[:3] == ["miss", "ours", "99.60%"]
        assert row.endswith("4 of 5")

    def test_the_cheapest_on_average_is_first(self):
        cheap = self.outcomes(cheap=(1.0, 1.0))
        dear = {
            cell: replace(outcome, paid_hours=20.0)
            for cell, outcome in self.outcomes(dear=(1.0, 1.0)).items()
        }

        rows = as_text({**dear, **cheap}).splitlines()[3:]

        assert [row.split()[:2] for row in rows] == [["1.", "cheap"], ["2.", "dear"]]

    def test_the_json_has_every_seed_by_itself(self):
        found = json.loads(as_json(self.outcomes(ours=(1.0, 0.998))))["cells"]

        assert [(cell["seed"], cell["attainment"]) for cell in found] == [(1, 1.0), (2, 0.998)]


class TestFaults:
    def test_each_fault_is_beside_the_same_run_without_it(self, capsys):
        code = bench("--faults", "--policy", "static-p100", "--policy", "keda-waiting")

        _, _, header, *rows = capsys.readouterr().out.splitlines()
        assert code == 0
        assert header.split()[:2] == ["fault", "policy"]
        assert len(rows) == 2 * len(FAULTS)
        assert [row[5:].split()[:2] for row in rows[:2]] == [
            ["scrape-gap-5m", "static-p100"],
            ["scrape-gap-5m", "keda-waiting"],
        ]

    def test_what_it_changed_is_told_and_a_miss_is_marked(self):
        outcomes = {
            a_cell(): an_outcome(),
            replace(a_cell(), fault="replica-dies"): an_outcome(
                attainment=0.9, paid_hours=13.5, worst_window=0.4
            ),
        }

        (row,) = as_text(outcomes).splitlines()[3:]

        assert row.split() == [
            *("miss", "replica-dies", "leadtime"),
            *("100.00%", "90.00%", "12.00", "13.50", "40.00%"),
        ]

    def test_a_run_with_a_fault_is_another_cell(self, capsys, tmp_path):
        bench("--faults", "--policy", "static-p100", "-o", "json", "--results", str(tmp_path))

        found = cells(capsys.readouterr().out)
        assert [cell["fault"] for cell in found] == [None, *FAULTS]
        assert len(list(tmp_path.iterdir())) == 1 + len(FAULTS)
        died = next(cell for cell in found if cell["fault"] == "replica-dies")
        assert died["worstTenMinutes"] < found[0]["worstTenMinutes"]

    def test_unless_told_otherwise_it_is_three_policies_on_the_quick_office_morning(self):
        parser = argparse.ArgumentParser()
        add_options(parser)

        chosen = cells_of(parser.parse_args(["--faults"]))

        assert {cell.policy for cell in chosen} == {"leadtime", "hpa-in-flight-tuned", "kthena"}
        assert {cell.course.hours for cell in chosen} == {QUICK["office-week"]}
        assert len(chosen) == 3 * (1 + len(FAULTS))


class TestResuming:
    def test_a_finished_cell_is_not_played_again(self, tmp_path, capsys):
        """The kept figure, changed on purpose, comes back instead of the played one."""
        bench("--policy", "static-p100", "--results", str(tmp_path / "new" / "cells"))
        before = kept(tmp_path / "new" / "cells", starts=777)
        capsys.readouterr()

        where = str(tmp_path / "new" / "cells")
        bench("--policy", "static-p100", "--results", where, "-o", "json")

        (cell,) = cells(capsys.readouterr().out)
        assert before["starts"] == 0
        assert cell["starts"] == 777

    def test_what_was_kept_reads_as_it_was_played(self, tmp_path):
        played = an_outcome(attainment=1 / 3, ttft_p99=None)

        outcomes_of([a_cell()], lambda _: played, results=tmp_path)
        again = outcomes_of([a_cell()], _never, results=tmp_path)

        assert again == {a_cell(): played}

    def test_an_interrupted_run_keeps_what_it_finished(self, tmp_path):
        def interrupted(cell: Cell) -> Outcome:
            if cell.policy == "kthena":
                raise KeyboardInterrupt
            return an_outcome()

        with pytest.raises(KeyboardInterrupt):
            outcomes_of([a_cell(), a_cell("kthena")], interrupted, results=tmp_path)

        (only,) = tmp_path.iterdir()
        assert only.name.endswith(f"_leadtime_1_{code()}.json")
        assert set(outcomes_of([a_cell()], _never, results=tmp_path)) == {a_cell()}

    def test_a_cell_of_other_code_is_played_again_and_stays(self, tmp_path):
        """Whoever goes back to the older code finds it there."""
        outcomes_of([a_cell()], lambda _: an_outcome(starts=1), results=tmp_path)
        (path,) = tmp_path.iterdir()
        path.rename(path.with_name(path.name.replace(code(), "0123456789")))

        outcomes = outcomes_of([a_cell()], lambda _: an_outcome(starts=2), results=tmp_path)

        assert outcomes[a_cell()].starts == 2
        assert len(list(tmp_path.iterdir())) == 2

    @pytest.mark.parametrize("text", ["", "[]", '{"attainment": 1.0}', '{"more": 2}'])
    def test_a_damaged_file_is_named_and_ends_the_run(self, tmp_path, capsys, text):
        bench("--policy", "static-p100", "--results", str(tmp_path))
        (path,) = tmp_path.iterdir()
        path.write_text(text)
        capsys.readouterr()

        code = bench("--policy", "static-p100", "--results", str(tmp_path))

        err = capsys.readouterr().err
        assert code == 2
        assert str(path) in err
        assert "delete it" in err

    def test_a_directory_that_cannot_be_made_ends_the_run_in_words(self, tmp_path, capsys):
        (tmp_path / "file").write_text("")

        code = bench("--results", str(tmp_path / "file" / "cells"))

        assert code == 2
        assert "leadtime bench scaling:" in capsys.readouterr().err


class TestDigestOfTheCode:
    @pytest.fixture
    def package(self, tmp_path):
        for room in (*DECIDES, "cli"):
            (tmp_path / room / "deep").mkdir(parents=True)
            (tmp_path / room / "deep" / "rule.py").write_text("A = 1\n")
        return tmp_path

    @pytest.mark.parametrize("room", DECIDES)
    def test_a_change_in_any_room_that_decides_is_another_code(self, package, room):
        before = digest(package)

        (package / room / "deep" / "rule.py").write_text("A = 2\n")

        assert digest(package) != before

    def test_so_is_a_file_moved(self, package):
        before = digest(package)

        (package / "scaling" / "deep" / "rule.py").rename(package / "scaling" / "rule.py")

        assert digest(package) != before

    def test_what_is_compiled_or_only_shown_is_not(self, package):
        before = digest(package)

        (package / "cli" / "deep" / "rule.py").write_text("A = 2\n")
        (package / "scaling" / "__pycache__").mkdir()
        (package / "scaling" / "__pycache__" / "rule.pyc").write_bytes(b"\0")

        assert digest(package) == before

    def test_the_product_s_own_is_found(self):
        """An empty package would have the same digest for ever."""
        assert len(code()) == 10
        assert code() != digest(Path("nowhere"))


def _never(cell: Cell) -> Outcome:
    raise AssertionError(f"{cell} was kept and must not be played")


class TestHonesty:
    def test_to_meet_the_objective_below_the_bound_is_a_bad_verdict(self, tmp_path, capsys):
        bench("--policy", "static-p100", "--results", str(tmp_path))
        before = kept(tmp_path, paid_hours=0.01)
        capsys.readouterr()

        code = bench("--policy", "static-p100", "--results", str(tmp_path))

        out, err = capsys.readouterr()
        assert before["attainment"] >= 0.99
        assert code == 1
        assert "static-p100" in out
        assert "below the bound" in err

    def test_to_miss_it_below_the_bound_is_what_misers_do(self, tmp_path, capsys):
        bench("--policy", "static-p100", "--results", str(tmp_path))
        kept(tmp_path, paid_hours=0.01, attainment=0.98)

        code = bench("--policy", "static-p100", "--results", str(tmp_path))

        assert code == 0
        assert capsys.readouterr().err == ""


class TestTalk:
    def test_the_product_s_log_is_quiet_meanwhile_and_as_before_afterwards(self):
        log = logging.getLogger("leadtime")
        log.setLevel(logging.INFO)
        try:
            bench("--policy", "static-p100")
            level = log.level
        finally:
            log.setLevel(logging.NOTSET)

        assert level == logging.INFO

    def test_no_decision_is_logged(self, caplog):
        """At INFO the loop says every changed decision: thousands in a matrix."""
        caplog.set_level(logging.INFO, logger="leadtime")

        bench("--policy", "leadtime")

        assert not caplog.records

    def test_progress_is_for_terminals(self, monkeypatch):
        class Terminal(io.StringIO):
            def isatty(self) -> bool:
                return True

        screen = Terminal()
        monkeypatch.setattr(sys, "stderr", screen)

        outcomes_of([a_cell(), a_cell("kthena")], lambda _: an_outcome(), results=None)

        assert "2 of 2: llmd-ramp" in screen.getvalue()
        assert screen.getvalue().endswith("\r\x1b[K")


class TestUsage:
    @pytest.mark.parametrize(
        ("option", "value", "said"),
        [
            ("--trace", "dreams", "no trace 'dreams'"),
            ("--trace", "azure-conv", "no trace 'azure-conv'"),
            ("--engine", "abacus", "no engine 'abacus'"),
            ("--policy", "magic", "no policy 'magic'"),
        ],
    )
    def test_unknown_names_are_refused_with_those_that_there_are(self, capsys, option, value, said):
        """Under --quick a recorded trace is unknown too: it must run without files."""
        code = main(["bench", "scaling", "--quick", option, value])

        err = capsys.readouterr().err
        assert code == 2
        assert said in err
        assert "there are" in err

    def test_a_trace_without_its_file_is_told_before_anything_is_played(
        self, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setenv("LEADTIME_TRACES", str(tmp_path / "nowhere"))

        code = main(["bench", "scaling", "--trace", "azure-conv"])

        assert code == 2
        assert "set LEADTIME_TRACES" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("option", "value"),
        [("--seeds", "0"), ("--fleet", "-1"), ("--fleet", "1001"), ("--load-time", "0")],
    )
    def test_numbers_that_are_none_are_usage_errors(self, capsys, option, value):
        with pytest.raises(SystemExit) as left:
            main(["bench", "scaling", option, value])

        assert left.value.code == 2
        assert value in capsys.readouterr().err

    def test_it_is_a_benchmark_by_itself(self, capsys):
        code = main(["bench", "scaling", "parse"])

        assert code == 2
        assert "no other part" in capsys.readouterr().err
