"""``leadtime backtest --recording``: the same decisions once more, or what would have differed."""

import csv
import io
import json
import signal
from pathlib import Path

import pytest
import yaml

from adapter.cli.backtesting.replaying import RECORDED
from adapter.cli.main import main
from adapter.controller.ports import FleetSource
from adapter.fleet.units import Seconds, Timestamp
from adapter.policy.document import Policy
from adapter.simulator.autoscaler import product
from adapter.simulator.synthetic import Curve, Play
from adapter.sources.recorder import RecordedSource, Recorder
from tests.cli.adapters import adapter, an_engine, policy_of
from tests.simulator.worlds import CHAT, a_policy, a_world

NAME = "default/chat"


def recorded(place: Path, policy: Policy, curve: Curve, *, length: float) -> Path:
    """Play ``curve`` in a world, record the loop, and return the file."""
    recorder = Recorder(place)
    recorder.begin(NAME)

    def through(source: FleetSource) -> FleetSource:
        return RecordedSource(source, NAME, recorder)

    world = a_world(
        Play(rates=curve, decks=CHAT, length=Seconds(length), seed=1).arrivals(),
        autoscaler=product(policy, told=lambda d: recorder.decided(NAME, d), through=through),
        scrape_interval=policy.spec.source.interval,
    )
    world.play(Timestamp(world.begin + length))
    recorder.close()
    return place / f"{NAME}.jsonl"


def a_file(place: Path, policy: Policy) -> Path:
    path = place / "chat.yaml"
    path.write_text(
        yaml.safe_dump(policy.model_dump(mode="json", by_alias=True, exclude_unset=True))
    )
    return path


@pytest.fixture(scope="module")
def recorded_morning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Record an hour from 1 to 20 requests a second, once for all who read it."""
    curve = Curve(((0.0, 1.0), (1200.0, 1.0), (2400.0, 20.0), (3600.0, 20.0)))
    return recorded(tmp_path_factory.mktemp("morning"), a_policy(), curve, length=3600.0)


@pytest.fixture
def morning(recorded_morning: Path, tmp_path: Path) -> Path:
    """Return a copy of the recording, which the test may change."""
    path = tmp_path / recorded_morning.name
    path.write_bytes(recorded_morning.read_bytes())
    return path


def backtest(policy: Path, recording: Path, *more: object) -> int:
    return main(["backtest", str(policy), "--recording", str(recording), *map(str, more)])


@pytest.mark.slow
def test_a_simulated_day_backtested_gives_the_same_decisions_to_the_byte(tmp_path, capsys):
    """A night, a rise to five times the load, and an evening, decided every 30 s."""
    curve = Curve(((0.0, 0.2), (28_800.0, 0.2), (43_200.0, 1.0), (61_200.0, 1.0), (86_400.0, 0.2)))
    policy = a_policy(interval="30s", signals={"queue": {"targetInFlight": 2}})
    path = recorded(tmp_path, policy, curve, length=86_400.0)

    code = backtest(a_file(tmp_path, policy), path, "-o", "json")

    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["decisions"] == 2881
    assert said["equal"] is True
    assert said["recordedHours"] == said["nowHours"] > 24


class TestTheSamePolicy:
    def test_says_so_and_leaves_with_0(self, morning, tmp_path, capsys):
        code = backtest(a_file(tmp_path, a_policy()), morning)

        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        assert out.startswith("default/chat on chat.jsonl: 241 decisions from ")
        assert "every decision is the recorded one, byte for byte" in out
        assert RECORDED in out


class TestAnotherPolicy:
    @pytest.fixture
    def bolder(self, tmp_path: Path) -> Path:
        return a_file(tmp_path, a_policy(least=3))

    def test_is_told_loudly_with_what_would_have_differed(self, morning, bolder, capsys):
        code = backtest(bolder, morning)

        out, err = capsys.readouterr()
        assert code == 1
        assert "DIFFER" in err
        assert "DIFFER from the recorded ones" in out
        first = out.index("the first, ")
        assert "recorded  2, because " in out[first:]
        assert "now       3, because " in out[first:]
        assert "2 recorded,    3 now: " in out

    def test_is_told_to_scripts(self, morning, bolder, capsys):
        code = backtest(bolder, morning, "-o", "json")

        said = json.loads(capsys.readouterr().out)
        assert code == 1
        assert said["equal"] is False
        assert said["differing"] == len(said["differences"]) > 0
        assert said["nowHours"] > said["recordedHours"]
        assert said["notes"] == [RECORDED]
        assert {d["now"] for d in said["differences"]} >= {3}

    def test_every_decision_is_a_row(self, morning, bolder, capsys):
        backtest(bolder, morning, "-o", "csv")

        rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
        assert len(rows) == 241
        assert rows[0]["note"] == RECORDED
        assert rows[0]["equal"] == "false"
        assert (rows[0]["recorded"], rows[0]["now"]) == ("2", "3")

    def test_is_drawn(self, morning, bolder, tmp_path):
        page = tmp_path / "page.html"

        backtest(bolder, morning, "--html", page)

        text = page.read_text()
        assert "Desired replicas" in text
        assert "Other counts" in text
        assert "DIFFER" in text

    def test_other_words_alone_differ_too(self, morning, tmp_path, capsys):
        """A delay that changes no count changes what the decision says of it."""
        other = a_policy(signals={"queue": {"headroom": 0.90001}})

        code = backtest(a_file(tmp_path, other), morning)

        out = capsys.readouterr().out
        assert code == 1
        assert "0 in the desired count" in out
        assert "other counts" not in out


class TestUnusable:
    def test_a_recording_of_another_policy_is_refused(self, morning, tmp_path, capsys):
        other = a_policy().model_dump(mode="json", by_alias=True, exclude_unset=True)
        other["metadata"]["name"] = "other"
        path = tmp_path / "other.yaml"
        path.write_text(yaml.safe_dump(other))

        assert backtest(path, morning) == 2
        assert "recorded of policy default/chat" in capsys.readouterr().err

    def test_a_recording_without_a_decision_is_refused(self, morning, tmp_path, capsys):
        morning.write_text(morning.read_text().splitlines(keepends=True)[0])

        assert backtest(a_file(tmp_path, a_policy()), morning) == 2
        assert "no decision in it" in capsys.readouterr().err

    def test_one_that_is_not_there_is_told(self, tmp_path, capsys):
        assert backtest(a_file(tmp_path, a_policy()), tmp_path / "none.jsonl") == 2
        assert "none.jsonl: No such file or directory" in capsys.readouterr().err

    def test_it_goes_without_a_trace(self, morning, tmp_path, capsys):
        with pytest.raises(SystemExit) as left:
            backtest(a_file(tmp_path, a_policy()), morning, "--trace", "office-week")

        assert left.value.code == 2
        assert "not allowed with" in capsys.readouterr().err


@pytest.mark.slow
async def test_what_serve_records_is_decided_the_same_again(tmp_path, capsys):
    policies = tmp_path / "policies"
    policies.mkdir()
    async with an_engine(running=40) as engine:
        (policies / "chat.yaml").write_text(policy_of(engine))
        async with adapter(policies, "--record", str(tmp_path / "rec")) as running:
            await running.until_replicas(5)
            assert await running.ends(signal.SIGTERM) == 0

    code = backtest(policies / "chat.yaml", tmp_path / "rec" / "inference" / "chat.jsonl")

    assert code == 0
    assert "byte for byte" in capsys.readouterr().out
