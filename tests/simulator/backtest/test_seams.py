"""What the backtest asks of the rest of the simulator: decisions, memory, windows, rows."""

from pathlib import Path

import pytest

from adapter.controller.ports import FleetSource
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.decision import Decision
from adapter.scaling.state import ScalingState
from adapter.simulator.agenda import at_once
from adapter.simulator.autoscaler import adapter_of, product
from adapter.simulator.score import WINDOW, Window
from adapter.simulator.traces import TraceError, records
from tests.build import T0, a_fleet, serving
from tests.fakes import FakeClock, FakeSource
from tests.simulator.worlds import a_policy, a_world, after, arrivals


class TestProduct:
    def test_every_decision_is_told_in_order(self):
        told: list[Decision] = []
        world = a_world(arrivals(2.0, 120.0), autoscaler=product(a_policy(), told=told.append))

        world.play(after(world, 60.0))

        assert [decision.at - T0 for decision in told] == [0, 15, 30, 45, 60]

    def test_what_stands_between_sees_what_the_loop_sees(self):
        seen: list[FleetSnapshot] = []

        class Glass:
            def __init__(self, inner: FleetSource) -> None:
                self._inner = inner

            async def snapshot(self, at: Timestamp) -> FleetSnapshot:
                seen.append(await self._inner.snapshot(at))
                return seen[-1]

            async def close(self) -> None:
                await self._inner.close()

        plain, watched = (
            a_world(arrivals(9.0, 600.0), autoscaler=product(a_policy(), through=through))
            for through in (lambda source: source, Glass)
        )
        for world in (plain, watched):
            world.play(after(world, 600.0))

        assert len(seen) == 41
        assert plain.deployment.history == watched.deployment.history


class TestAdapter:
    def test_it_begins_with_the_memory_that_it_is_given(self):
        """Nine were published a moment ago: nothing goes down before the delay is over."""
        fleet = a_fleet(*serving(9), spec_replicas=9)
        memory = ScalingState(
            published=9, started_at=T0, good_at=T0, recommendations=((Timestamp(T0 - 1), 9),)
        )

        fresh, full = (
            at_once(adapter_of(a_policy(), FakeSource(fleet), FakeClock(), state=s)[0].tick(T0))
            for s in (None, memory)
        )

        assert full.desired == 9
        assert [hold.reason for hold in fresh.holds] != [hold.reason for hold in full.holds]

    def test_what_it_publishes_can_be_read_in_milli(self):
        loop, published = adapter_of(a_policy(), FakeSource(a_fleet(*serving(3))), FakeClock())

        decision = at_once(loop.tick(T0))

        assert at_once(published.read()) == (1000 * decision.published,)


class TestWindows:
    def test_a_score_tells_each_ten_minutes_in_order(self):
        world = a_world(arrivals(1.0, 1800.0))
        world.play(after(world, 1800.0))

        score = world.score()

        windows = [w for w in score.windows if w.begin < T0 + 1800]
        assert [w.begin - T0 for w in windows] == [0, WINDOW, 2 * WINDOW]
        assert sum(w.requests for w in score.windows) == score.requests
        assert sum(w.in_time for w in score.windows) == score.in_time
        assert score.worst_window == min(w.in_time / w.requests for w in score.windows)

    def test_those_without_a_request_are_left_out(self):
        world = a_world(iter(()))
        world.play(after(world, 1800.0))

        assert world.score().windows == ()

    def test_they_count_from_when_scoring_began(self):
        world = a_world(arrivals(1.0, 1500.0), scored_after=Seconds(300.0))
        world.play(after(world, 1500.0))

        first, *_ = world.score().windows

        assert first.begin == T0 + 300
        assert isinstance(first, Window)


class TestRows:
    def test_csv_and_json_lines_are_told_by_the_name(self, tmp_path: Path):
        table, lines = tmp_path / "a.csv", tmp_path / "a.jsonl"
        table.write_text("x,y\n1,2\n")
        lines.write_text('{"x": 1}\n\n{"x": 2}\n')

        assert [dict(row.values) for row in records(table)] == [{"x": "1", "y": "2"}]
        assert [(row.line, row.values["x"]) for row in records(lines)] == [(1, 1), (3, 2)]

    def test_a_damaged_line_is_told(self, tmp_path: Path):
        path = tmp_path / "a.jsonl"
        path.write_text('{"x": 1}\nnonsense\n')

        with pytest.raises(TraceError, match=r"a\.jsonl:2: "):
            list(records(path))
