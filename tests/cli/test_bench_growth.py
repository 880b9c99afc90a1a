"""``leadtime bench growth``: forecasts on the public traces, each from its own past only."""

import json
import math
import os
from pathlib import Path

import pytest

from adapter.cli.benchmarks import growth
from adapter.cli.benchmarks.growth import Tally, Trial, played, series_of
from adapter.cli.main import main
from adapter.fleet.units import Seconds
from adapter.scaling.growth import Series

HERE = Path(__file__).parents[2]
TRACES = Path(os.environ.get("LEADTIME_TRACES", HERE.parent / "shared" / "traces"))
needs_traces = pytest.mark.skipif(
    not TRACES.is_dir(), reason="needs the public traces (LEADTIME_TRACES)"
)

HALF_HOUR = Seconds(1800.0)


def test_a_load_that_never_changes_costs_nothing_and_is_always_covered() -> None:
    told = played(Series(0, HALF_HOUR, [5.0] * 240), lead=HALF_HOUR)

    assert told["gated"].cost == 1.0
    assert told["gated"].coverage == 1.0
    assert told["gated"].steps == 240 - 96 - 1


def test_the_future_changes_nothing_that_was_said_before_it() -> None:
    past = [100.0 + n % 7 for n in range(200)]

    calm = played(Series(0, HALF_HOUR, [*past, 100.0, 100.0]), lead=HALF_HOUR)
    wild = played(Series(0, HALF_HOUR, [*past, 9000.0, 100.0]), lead=HALF_HOUR)

    assert calm["gated"].steps == wild["gated"].steps
    assert wild["gated"].covered == calm["gated"].covered - 1
    assert wild["gated"].said == calm["gated"].said


def test_nothing_counted_is_not_a_number() -> None:
    assert math.isnan(Tally().cost)
    assert math.isnan(Tally().coverage)


def test_without_the_traces_it_says_what_is_missing(monkeypatch, capsys, tmp_path: Path) -> None:
    monkeypatch.setenv("LEADTIME_TRACES", str(tmp_path / "nowhere"))

    assert main(["bench", "growth"]) == 2
    assert "set LEADTIME_TRACES" in capsys.readouterr().err


@needs_traces
@pytest.mark.slow
def test_the_promises_are_kept_on_the_two_week_curve(monkeypatch, capsys) -> None:
    monkeypatch.setenv("LEADTIME_TRACES", str(TRACES))
    trial = Trial(
        "mSmall10Min", "servegen-m-small", Seconds(600.0), Seconds(600.0), 9, at_most=1.19
    )
    monkeypatch.setattr(growth, "TRIALS", (trial,))

    code = main(["bench", "growth", "-o", "json"])

    told = json.loads(capsys.readouterr().out)["results"]["growth"]
    assert code == 0
    assert len(series_of(trial).values) == 9 * 144
    assert told["mSmall10Min.timeOfDayCostRatio"] < told["mSmall10Min.anyTimeCostRatio"]
