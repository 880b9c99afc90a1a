"""Recordings: what is written comes back to the last bit, and damage is told by its line."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.controller.loop import Loop
from adapter.fleet.metrics import Metric
from adapter.fleet.reading import Cause, Rank, Reading
from adapter.fleet.snapshot import FleetSnapshot, Phase, Replica
from adapter.fleet.units import Timestamp
from adapter.scaling.decision import Decision
from adapter.scaling.state import ScalingState
from adapter.simulator.agenda import at_once
from adapter.simulator.autoscaler import adapter_of
from adapter.sources.recording import (
    RecordingError,
    Session,
    Tick,
    Writer,
    dump_decision,
    load_decision,
    read_recording,
)
from tests.build import T0, a_fleet, a_gap, a_histogram, a_reading, a_replica, later, serving
from tests.fakes import FakeClock, FakeSource
from tests.simulator.worlds import a_policy

SESSION = Session("default/chat", ScalingState(published=3, recommendations=((T0, 3),)))


def decided(*fleets: FleetSnapshot) -> list[tuple[FleetSnapshot, Decision]]:
    """Return what a policy decides on each, one after the other."""
    clock = FakeClock()
    loop, _ = adapter_of(a_policy(), FakeSource(*fleets), clock)
    assert isinstance(loop, Loop)
    return [(fleet, at_once(loop.tick(fleet.at))) for fleet in fleets]


def written(place: Path, *fleets: FleetSnapshot, name: str = "chat.jsonl") -> Path:
    writer, path = Writer(), place / name
    lines = [writer.session(SESSION), *(writer.tick(*pair) for pair in decided(*fleets))]
    path.write_text("".join(lines))
    return path


def ticks(path: Path) -> list[Tick]:
    return [found for found in read_recording(path) if isinstance(found, Tick)]


def rich(at: float = T0) -> Reading:
    """Return a reading with two ranks, a TTFT, and everything that may be missing."""
    ttft = a_histogram([0.1, 0.7, 20.0])
    reading = a_reading(at=at, running=3, waiting=0.1 + 0.2, ttft=ttft, missing={"x": "NaN"})
    half = Rank({Metric.REQUESTS_RUNNING: 1.0}, a_histogram([0.1], bounds=(0.25, 5)))
    return replace(
        reading,
        ranks={"0": half, "1": Rank(reading.values, None), "": Rank(reading.values, ttft)},
        matched={"requests_running": "vllm:num_requests_running"},
        unserved=frozenset({"b", "a"}),
        warnings=("deprecated: ünïcode",),
    )


class TestRoundTrip:
    def test_snapshots_come_back_equal_and_decisions_to_the_byte(self, tmp_path):
        one = a_fleet(
            a_replica("a", sample=rich()),
            a_replica("b", sample=a_gap(detail="no answer"), since=None),
            a_replica("c", phase=Phase.LOADING, sample=a_gap(Cause.UNREACHABLE)),
            spec_replicas=3,
            rollout=True,
            load_time=240.5,
            unscheduled="0/4 nodes",
        )
        fleets = [one, later(one, 15.0), later(later(one, 15.0), 15.0)]

        found = list(read_recording(written(tmp_path, *fleets)))

        assert found[0] == SESSION
        assert [tick.fleet for tick in found[1:]] == fleets
        assert [tick.decision for tick in found[1:]] == [
            dump_decision(decision) for _, decision in decided(*fleets)
        ]

    def test_a_previous_reading_of_nobodys_tick_is_written_out(self, tmp_path):
        fleet = a_fleet(a_replica("a", sample=rich(), previous=rich(T0 - 7)))

        (tick,) = ticks(written(tmp_path, fleet))

        assert tick.fleet == fleet

    def test_what_is_the_same_is_written_once(self, tmp_path):
        fleet = a_fleet(*serving(3, running=4, ttft=a_histogram([0.1])))
        fleets = [fleet]
        for _ in range(30):
            fleets.append(later(fleets[-1], 15.0))

        lines = written(tmp_path, *fleets).read_text().splitlines()

        assert sum('"shape":' in line and '"of":' in line for line in lines) == 1
        sizes = [len(json.dumps(json.loads(line)["fleet"])) for line in lines[2:]]
        assert max(sizes[1:]) < 1700, "three replicas, their readings before told as such"

    def test_a_session_begins_anew(self, tmp_path):
        fleet = a_fleet(*serving(1))
        writer = Writer()
        pairs = decided(fleet, later(fleet, 15.0))
        path = tmp_path / "chat.jsonl"
        path.write_text(
            "".join(
                line for pair in pairs for line in (writer.session(SESSION), writer.tick(*pair))
            )
        )

        found = list(read_recording(path))

        assert [type(each) for each in found] == [Session, Tick, Session, Tick]
        assert found[3].fleet == later(fleet, 15.0)

    def test_a_packed_one_is_read_as_well(self, tmp_path):
        fleet = a_fleet(*serving(2))
        plain = written(tmp_path, fleet)
        packed = tmp_path / "chat.jsonl.gz"
        packed.write_bytes(gzip.compress(plain.read_bytes()))

        assert ticks(packed) == ticks(plain)

    def test_a_line_that_was_not_finished_is_left_out(self, tmp_path):
        fleet = a_fleet(*serving(2))
        path = written(tmp_path, fleet, later(fleet, 15.0))
        path.write_text(path.read_text()[:-40])

        assert [tick.fleet for tick in ticks(path)] == [fleet]

    def test_a_decision_comes_back(self):
        ((_, decision),) = decided(a_fleet(*serving(2)))

        assert load_decision(dump_decision(decision)) == decision

    @settings(max_examples=50)
    @given(
        values=st.lists(
            st.floats(min_value=0, max_value=2**53, allow_subnormal=True), min_size=3, max_size=3
        ),
        observed=st.lists(st.floats(0, 100), max_size=5),
        seconds=st.floats(0.001, 1e5),
        name=st.text(max_size=20),
    )
    def test_no_number_and_no_name_loses_anything(
        self, tmp_path_factory, values, observed, seconds, name
    ):
        running, waiting, kv = values
        reading = a_reading(
            running=running, waiting=waiting, kv=kv, ttft=a_histogram(observed), model=name
        )
        one = a_fleet(replace(a_replica("a", sample=reading), name=name))

        fleets = [one, later(one, seconds)]

        path = written(tmp_path_factory.mktemp("r"), *fleets)
        assert [tick.fleet for tick in ticks(path)] == fleets


class TestDamage:
    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ('"recording":1', '"recording":9', "1: recording of version 9"),
            ('"published":3', '"published":-3', "1: "),
            ('"shape":0,"of"', '"shape":7,"of"', "3: "),
            ('"metrics":["requests_running"', '"metrics":["abacus"', "2: "),
            ('"metrics":["requests_running",', '"metrics":[', "3: "),
            ('"bounds":[0.5,', '"bounds":[', "3: "),
            ('"fleet":', '"flight":', "3: "),
            (',"decision":', ',"decided":', "3: "),
            ('"phase":"serving"', '"phase":"resting"', "3: "),
            ("{", "", "1: "),
        ],
    )
    def test_each_is_told_in_one_sentence_by_its_line(self, tmp_path, old, new, said):
        fleet = a_fleet(*serving(1, ttft=a_histogram([0.1])))
        path = written(tmp_path, fleet)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))

        with pytest.raises(RecordingError, match=rf"chat\.jsonl:{said}") as error:
            list(read_recording(path))

        assert "\n" not in str(error.value)
        assert "leadtime serve --record" in str(error.value)

    def test_a_tick_without_a_session_is_none(self, tmp_path):
        path = written(tmp_path, a_fleet(*serving(1)))
        path.write_text("".join(path.read_text().splitlines(keepends=True)[1:]))

        with pytest.raises(RecordingError, match="before the line of its session"):
            list(read_recording(path))

    @pytest.mark.parametrize("content", [None, b"", b"\xff\n", b"\x1f\x8b cut"])
    def test_what_is_no_recording_is_told(self, tmp_path, content):
        path = tmp_path / ("chat.jsonl.gz" if content and content[0] == 0x1F else "chat.jsonl")
        if content is not None:
            path.write_bytes(content)

        with pytest.raises(RecordingError, match="expected what"):
            list(read_recording(path))


def test_the_bounds_end_with_infinity_again(tmp_path):
    fleet = a_fleet(a_replica("a", sample=rich()))

    (tick,) = ticks(written(tmp_path, fleet))

    reading = tick.fleet.replicas[0].reading
    assert reading is not None
    assert reading.ttft is not None
    assert math.isinf(reading.ttft.bounds[-1])
    assert isinstance(tick.fleet.replicas[0], Replica)
    assert tick.fleet.at == Timestamp(T0)


class TestRanks:
    """Engines with data parallelism tell each rank by itself; most say what the whole says."""

    WHOLE = a_reading(running=3, waiting=1, ttft=a_histogram([0.1, 3.0]))

    @pytest.mark.parametrize(
        "ranks",
        [
            {},
            {"": Rank(WHOLE.values, WHOLE.ttft)},
            {"": Rank({}, None)},
            {"0": Rank({Metric.REQUESTS_RUNNING: 3.0}, None)},
            {"0": Rank({Metric.REQUESTS_RUNNING: 1.0}, WHOLE.ttft), "1": Rank({}, WHOLE.ttft)},
            {"0": Rank(WHOLE.values, a_histogram([9.0])), "1": Rank(WHOLE.values, None)},
            {"0": Rank({Metric.PREEMPTIONS: 2.0}, a_histogram([0.1], bounds=(0.25, 5)))},
        ],
    )
    def test_each_comes_back_as_it_was(self, tmp_path, ranks):
        reading = replace(self.WHOLE, ranks=ranks)
        fleet = a_fleet(a_replica("a", sample=reading))

        (tick,) = ticks(written(tmp_path, fleet))

        assert tick.fleet == fleet

    def test_what_the_whole_says_is_not_said_twice(self, tmp_path):
        reading = replace(self.WHOLE, ranks={"0": Rank(self.WHOLE.values, self.WHOLE.ttft)})

        text = written(tmp_path, a_fleet(a_replica("a", sample=reading))).read_text()

        assert '"ranks":[[null,true]]' in text

    def test_without_a_ttft_none_comes_back(self, tmp_path):
        reading = a_reading(ttft=None)
        fleet = a_fleet(a_replica("a", sample=reading))

        (tick,) = ticks(written(tmp_path, fleet))

        assert tick.fleet == fleet

    def test_another_layout_of_buckets_is_another_shape(self, tmp_path):
        one = a_fleet(a_replica("a", sample=self.WHOLE))
        wider = a_reading(at=T0 + 15, ttft=a_histogram([0.1], bounds=(0.1, 1, 10)))
        two = replace(
            a_fleet(a_replica("a", sample=wider, previous=self.WHOLE)), at=Timestamp(T0 + 15)
        )

        path = written(tmp_path, one, two)

        assert [tick.fleet for tick in ticks(path)] == [one, two]
        assert path.read_text().count('"of":') == 2


class TestFleets:
    @pytest.mark.parametrize("phase", list(Phase))
    def test_every_phase_comes_back(self, tmp_path, phase):
        fleet = a_fleet(a_replica("a", phase=phase), a_replica("b"))

        assert ticks(written(tmp_path, fleet))[0].fleet == fleet

    @pytest.mark.parametrize("cause", list(Cause))
    def test_every_cause_comes_back(self, tmp_path, cause):
        fleet = a_fleet(a_replica("a", sample=a_gap(cause, detail='quo"ted\n')), a_replica("b"))

        assert ticks(written(tmp_path, fleet))[0].fleet == fleet

    def test_an_empty_fleet_is_one(self, tmp_path):
        fleet = a_fleet(spec_replicas=0, status_replicas=0)

        assert ticks(written(tmp_path, fleet))[0].fleet == fleet

    def test_a_replica_that_goes_and_comes_back_is_not_mistaken_for_before(self, tmp_path):
        with_it = a_fleet(*serving(2, running=1))
        without = replace(a_fleet(*serving(1, running=1)), at=Timestamp(T0 + 15))
        again = later(later(with_it, 15.0), 15.0)

        fleets = [with_it, without, again]

        assert [tick.fleet for tick in ticks(written(tmp_path, *fleets))] == fleets
