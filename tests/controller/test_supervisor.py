import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import NoDecisionYetError, SourceError
from adapter.controller.ports import Sources
from adapter.controller.supervisor import LONGEST_PAUSE, POLL, Supervisor, World, offset_of
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Timestamp
from adapter.policy.document import Policy
from adapter.policy.load import read_files
from tests.build import T0, a_fleet, serving
from tests.controller.policies import policy_text
from tests.fakes import FakeFiles, FakeSource, FakeSources, FakeStore, FakeTelemetry

CHAT, CODE = PolicyKey("inference", "chat"), PolicyKey("inference", "code")
BROKEN = policy_text("chat").replace("min: 1", "min: one")


class SharedClock:
    """A clock on which many tasks sleep; a test moves it and the sleepers follow in order."""

    def __init__(self) -> None:
        self.time = T0
        self.sleepers: list[tuple[float, asyncio.Event]] = []

    def now(self) -> Timestamp:
        return Timestamp(self.time)

    async def sleep_until(self, moment: Timestamp) -> None:
        woken = asyncio.Event()
        self.sleepers.append((moment, woken))
        await woken.wait()

    async def pass_by(self, seconds: float) -> None:
        end = self.time + seconds
        await settle()
        while due := sorted(
            (entry for entry in self.sleepers if entry[0] <= end), key=lambda entry: entry[0]
        ):
            moment, woken = due[0]
            self.sleepers.remove(due[0])
            self.time = Timestamp(max(self.time, moment))
            woken.set()
            await settle()
        self.time = Timestamp(end)


async def settle() -> None:
    """Let everything run that can run without time passing."""
    for _ in range(30):
        await asyncio.sleep(0)


def busy(at: Timestamp) -> FleetSnapshot:
    return a_fleet(*serving(2, at=at, running=16), at=at)


class Supervised:
    def __init__(self, files: FakeFiles, sources: Sources | None = None) -> None:
        self.files, self.clock, self.board = files, SharedClock(), Board()
        self.opening = FakeSources(lambda _: FakeSource(busy))
        self.store, self.telemetry = FakeStore(), FakeTelemetry()
        world = World(
            sources=sources or self.opening,
            store=self.store,
            board=self.board,
            clock=self.clock,
            telemetry=self.telemetry,
        )
        self.supervisor = Supervisor(files, world)

    def served(self) -> dict[str, int | None]:
        """Return what each listed policy publishes."""
        return {
            str(listing.key): listing.decision.published if listing.decision else None
            for listing in self.board.all()
        }


@asynccontextmanager
async def supervised(files: FakeFiles, sources: Sources | None = None) -> AsyncIterator[Supervised]:
    running = Supervised(files, sources)
    await running.supervisor.load()
    task = asyncio.create_task(running.supervisor.run())
    await settle()
    try:
        yield running
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_every_policy_has_a_decision_after_its_first_tick():
    files = FakeFiles(chat=policy_text("chat"), code=policy_text("code", top=3))

    async with supervised(files) as running:
        assert running.served() == {"inference/chat": 4, "inference/code": 3}


async def test_loading_lists_the_policies_and_starts_nothing():
    """Serving can say which policies there are before the first tick has run."""
    running = Supervised(FakeFiles(chat=policy_text("chat"), bad=BROKEN))

    findings = await running.supervisor.load()

    assert running.served() == {"inference/chat": None}
    assert running.opening.opened == []
    assert [finding.file for finding in findings] == ["bad.yaml"]
    assert running.telemetry.reloads == [1]


async def test_a_large_file_holds_up_nobody_else():
    """4 MiB of YAML that is no policy take 13 s to read: ticks and answers go on meanwhile."""
    running = Supervised(FakeFiles(chat=policy_text("chat"), junk="- a\n" * 10_000))

    loading = asyncio.create_task(running.supervisor.load())
    await settle()
    went_on = not loading.done()
    await loading

    assert went_on
    assert running.served() == {"inference/chat": None}


async def test_a_missing_directory_is_the_starters_problem():
    files = FakeFiles()
    files.broken = True

    with pytest.raises(SourceError):
        await Supervised(files).supervisor.load()


async def test_a_new_file_starts_a_loop_within_one_poll():
    files = FakeFiles(chat=policy_text("chat"))
    async with supervised(files) as running:
        files.texts["code.yaml"] = policy_text("code")

        await running.clock.pass_by(POLL)

        assert running.served() == {"inference/chat": 4, "inference/code": 4}
        assert len(running.opening.opened) == 2


async def test_an_unchanged_file_is_left_alone():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        await running.clock.pass_by(20 * POLL)

        assert running.files.reads == 21
        assert len(running.opening.opened) == 1
        assert running.telemetry.reloads == [0]


async def test_a_comment_changes_the_file_and_not_the_loop():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] += "# reviewed\n"
        await running.clock.pass_by(POLL)

        assert running.telemetry.reloads == [0, 0]
        assert len(running.opening.opened) == 1


async def test_a_changed_policy_runs_on_with_its_memory():
    """The limit drops from 100 to 3: the next decision obeys it, the memory stays."""
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = policy_text("chat", top=3)
        await running.clock.pass_by(POLL)

        (_, first), (policy, second) = running.opening.opened
        assert running.served() == {"inference/chat": 3}
        assert policy.spec.replicas.max == 3
        assert (first.closed, second.closed) == (True, False)
        assert running.store.states["inference/chat"].started_at == T0


async def test_a_decision_stands_while_its_policy_is_exchanged():
    """Between the old loop and the first tick of the new one the HPA still gets its number."""
    files = FakeFiles(chat=policy_text("chat"))
    running = Supervised(files)
    await running.supervisor.load()
    running.board.post(CHAT, await a_decision(), T0)
    files.texts["chat.yaml"] = policy_text("chat", top=3)

    await running.supervisor.load()

    assert running.board.find(CHAT).policy.spec.replicas.max == 3
    assert running.served() == {"inference/chat": 4}


async def a_decision():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        return running.board.decided(CHAT, T0)


async def test_a_broken_file_keeps_its_last_good_policy_and_says_so(
    caplog: pytest.LogCaptureFixture,
):
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = BROKEN
        await running.clock.pass_by(POLL)
        problem = running.board.find(CHAT).problem

        await running.clock.pass_by(30)
        assert running.served() == {"inference/chat": 4}
        assert running.board.find(CHAT).tick_at > T0 + 20
        assert len(running.opening.opened) == 1

    (line,) = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert problem == line
    assert line.startswith("chat.yaml:8:19: LT007 ")
    assert running.telemetry.reloads == [0, 1]


async def test_a_problem_is_told_with_the_reason_that_stands_beside_the_caret():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = policy_text("chat").replace("min: 1", "min: 0")
        await running.clock.pass_by(POLL)

        assert "scale to zero is not supported" in running.board.find(CHAT).problem


async def test_a_broken_file_is_logged_with_its_fix_and_with_what_runs_meanwhile(
    caplog: pytest.LogCaptureFixture,
):
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = policy_text("chat").replace("max: 100", "maxi: 100")
        running.files.texts["new.yaml"] = policy_text("new").replace("max: 100", "maxi: 100")
        await running.clock.pass_by(POLL)

    old, new = [r.getMessage() for r in caplog.records if "LT005" in r.getMessage()]
    assert old.startswith("chat.yaml:")
    assert old.endswith("; fix: max: 100; the previous version stays in force")
    assert new.startswith("new.yaml:")
    assert new.endswith("; fix: max: 100; not served until it is mended")


@pytest.mark.parametrize("nothing", ["", "# to be written\n"])
async def test_an_emptied_file_keeps_its_policy_for_one_further_look_and_says_so(
    caplog: pytest.LogCaptureFixture, nothing: str
):
    """It is more likely half written than meant."""
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = nothing
        await running.clock.pass_by(POLL)
        kept, problem = running.served(), running.board.find(CHAT).problem
        await running.clock.pass_by(POLL)
        gone = running.served()
        await running.clock.pass_by(5 * POLL)

    said = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert (kept, gone) == ({"inference/chat": 4}, {})
    assert "what stood there runs on for one further look" in problem
    assert len([line for line in said if line.startswith("file=chat.yaml emptied")]) == 1
    assert said[-1] == "policy=inference/chat withdrawn note='no file holds it any more'"


async def test_a_file_that_was_empty_for_a_moment_changes_nothing():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = ""
        await running.clock.pass_by(POLL)
        running.files.texts["chat.yaml"] = policy_text("chat")
        await running.clock.pass_by(3 * POLL)

        assert running.served() == {"inference/chat": 4}
        assert running.board.find(CHAT).problem == ""
        assert len(running.opening.opened) == 1


async def test_a_file_that_is_emptied_twice_is_given_its_look_each_time():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        for _ in range(2):
            running.files.texts["chat.yaml"] = ""
            await running.clock.pass_by(POLL)
            assert running.served() == {"inference/chat": 4}
            running.files.texts["chat.yaml"] = policy_text("chat")
            await running.clock.pass_by(POLL)


async def test_a_mended_file_takes_the_problem_back():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = BROKEN
        await running.clock.pass_by(POLL)
        running.files.texts["chat.yaml"] = policy_text("chat", top=3)
        await running.clock.pass_by(POLL)

        assert running.board.find(CHAT).problem == ""
        assert running.served() == {"inference/chat": 3}
        assert running.telemetry.reloads == [0, 1, 0]


async def test_a_document_that_breaks_leaves_the_others_of_its_file_current():
    both = f"{policy_text('chat')}---\n{policy_text('code')}"
    async with supervised(FakeFiles(both=both)) as running:
        running.files.texts["both.yaml"] = f"{BROKEN}---\n{policy_text('code', top=3)}"
        await running.clock.pass_by(POLL)

        assert running.served() == {"inference/chat": 4, "inference/code": 3}


async def test_a_deleted_file_takes_its_policy_with_it():
    async with supervised(FakeFiles(chat=policy_text("chat"), code=policy_text("code"))) as running:
        del running.files.texts["chat.yaml"]
        await running.clock.pass_by(POLL)

        assert running.served() == {"inference/code": 4}
        assert [source.closed for _, source in running.opening.opened] == [True, False]
        assert running.telemetry.forgotten == ["inference/chat"]


async def test_a_moved_file_changes_nothing():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["moved.yaml"] = running.files.texts.pop("chat.yaml")
        await running.clock.pass_by(POLL)

        assert running.served() == {"inference/chat": 4}
        assert len(running.opening.opened) == 1


async def test_a_renamed_policy_is_another_policy():
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.texts["chat.yaml"] = policy_text("code")
        await running.clock.pass_by(POLL)

        assert running.served() == {"inference/code": 4}


async def test_of_two_policies_with_one_name_the_first_file_wins_and_the_other_is_named():
    running = Supervised(FakeFiles(a=policy_text("chat", top=3), b=policy_text("chat")))

    (finding,) = await running.supervisor.load()

    assert finding.file == "b.yaml"
    assert "a.yaml" in finding.message
    assert running.board.find(CHAT).policy.spec.replicas.max == 3


async def test_a_directory_that_cannot_be_read_stops_nothing_and_is_said_once(
    caplog: pytest.LogCaptureFixture,
):
    async with supervised(FakeFiles(chat=policy_text("chat"))) as running:
        running.files.broken = True
        await running.clock.pass_by(10 * POLL)
        running.files.broken = False
        running.files.texts["code.yaml"] = policy_text("code")
        await running.clock.pass_by(POLL)

        assert set(running.served()) == {"inference/chat", "inference/code"}

    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert errors[0].startswith("policies=unreadable")


async def test_a_loop_that_crashes_starts_again_and_takes_nobody_along(
    caplog: pytest.LogCaptureFixture,
):
    """It comes back after 1 s, then 2 s, then works; the other one never misses a tick."""
    stories = {"chat": [ZeroDivisionError("a bug"), ZeroDivisionError("a bug"), busy]}

    def make(policy: Policy) -> FakeSource:
        story = stories.get(policy.metadata.name)
        return FakeSource(story.pop(0) if story else busy)

    sources = FakeSources(make)
    files = FakeFiles(chat=policy_text("chat"), code=policy_text("code"))
    async with supervised(files, sources) as running:
        assert running.served() == {"inference/chat": None, "inference/code": 4}
        await running.clock.pass_by(1)
        assert running.served()["inference/chat"] is None
        await running.clock.pass_by(2)

        assert running.served() == {"inference/chat": 4, "inference/code": 4}
        assert running.telemetry.crashes == {"inference/chat": 2}
        assert [s.closed for p, s in sources.opened if p.metadata.name == "chat"] == [
            True,
            True,
            False,
        ]

    crashes = [r for r in caplog.records if "loop=crashed" in r.getMessage()]
    assert [record.exc_info is not None for record in crashes] == [True, True]


async def test_the_pause_after_a_crash_has_an_end_and_is_forgiven():
    sources = FakeSources(lambda _: FakeSource(ZeroDivisionError("a bug")))
    async with supervised(FakeFiles(chat=policy_text("chat")), sources) as running:
        await running.clock.pass_by(1 + 2 + 4 + 8 + 16 + 32 + LONGEST_PAUSE)

        assert running.telemetry.crashes == {"inference/chat": 8}


async def test_a_loop_that_ran_well_for_long_pauses_briefly_when_it_crashes():
    bug = ZeroDivisionError("a bug")
    long_run = [busy] * 8
    stories = iter([[bug], [bug], [*long_run, bug], [busy]])
    sources = FakeSources(lambda _: FakeSource(*next(stories)))
    async with supervised(FakeFiles(chat=policy_text("chat")), sources) as running:
        await running.clock.pass_by(1 + 2 + 80)
        assert running.telemetry.crashes == {"inference/chat": 3}

        await running.clock.pass_by(1)

        assert len(sources.opened) == 4


class Unable:
    """Sources of a build that cannot open any."""

    reason = "policy inference/chat: this release reads source.static only"

    def open(self, policy: Policy) -> FakeSource:
        raise SourceError(self.reason)


async def test_a_source_that_this_build_cannot_read_is_said_where_people_ask():
    async with supervised(FakeFiles(chat=policy_text("chat")), Unable()) as running:
        with pytest.raises(NoDecisionYetError, match=r"has no decision: this release reads"):
            running.board.decided(CHAT, T0)

        assert running.telemetry.crashes == {}


async def test_a_source_that_cannot_be_read_is_logged_once(caplog: pytest.LogCaptureFixture):
    """It is tried again every minute; the log says so once, and again where the reason changes."""
    sources = Unable()
    async with supervised(FakeFiles(chat=policy_text("chat")), sources) as running:
        await running.clock.pass_by(600)
        sources.reason = "prometheus http://p: no such host"
        await running.clock.pass_by(600)

    told = [r.getMessage() for r in caplog.records if "source=unusable" in r.getMessage()]
    assert ["source.static only" in line for line in told] == [True, False]
    assert "answered 503 with this reason" in told[0]


async def test_a_changed_file_does_not_hide_that_the_source_cannot_be_read():
    async with supervised(FakeFiles(chat=policy_text("chat")), Unable()) as running:
        running.files.texts["chat.yaml"] += "# reviewed\n"
        await running.clock.pass_by(POLL)

        with pytest.raises(NoDecisionYetError, match=r"reads source\.static only"):
            running.board.decided(CHAT, T0)


async def test_a_loop_that_crashed_is_told_on_the_wire_with_its_moment():
    stories = [FakeSource(busy, KeyError("secret")), FakeSource(KeyError("secret"))]
    sources = FakeSources(lambda _: stories.pop(0) if len(stories) > 1 else stories[0])
    async with supervised(FakeFiles(chat=policy_text("chat")), sources) as running:
        await running.clock.pass_by(6)
        failure = running.board.find(CHAT).failure
        held = running.board.decided(CHAT, Timestamp(T0 + 120)).published
        with pytest.raises(NoDecisionYetError, match=r"2m; its loop failed at 08:0"):
            running.board.decided(CHAT, Timestamp(T0 + 121))

    assert held == 4
    assert failure == (
        "its loop failed at 08:00:05Z (KeyError) and starts again in 1 s; "
        "the adapter's log has the traceback"
    )


async def test_policies_over_other_engines_tick_at_other_moments_and_over_the_same_together():
    """A decision must not wait for a thousand scrapes that are due at one moment."""
    texts = {name: policy_text(name) for name in ("a", "b", "c")}
    texts["c"] = texts["c"].replace("127.0.0.1:1/", "127.0.0.1:2/")
    files = FakeFiles(**texts)
    async with supervised(files) as running:
        await running.clock.pass_by(60)
        asked = {p.metadata.name: source.asked for p, source in running.opening.opened}

    assert asked["a"] == asked["b"]
    assert {at % 10 for at in asked["a"][1:]}.isdisjoint(at % 10 for at in asked["c"][1:])


@given(st.integers(1, 65_535), st.sampled_from(["1s", "5s", "15s", "1m"]))
def test_an_offset_lies_within_the_interval_and_does_not_depend_on_the_name(
    port: int, interval: str
):
    text = policy_text("a").replace("127.0.0.1:1/", f"127.0.0.1:{port}/")
    text = text.replace("interval: 10s", f"interval: {interval}")

    one, other = (policy_of(text.replace("name: a,", f"name: {name},")) for name in ("a", "b"))

    assert 0 <= offset_of(one) < one.spec.source.interval
    assert offset_of(one) == offset_of(other)


def test_targets_are_looked_at_by_namespace():
    """Pods are the same engines only where target and namespace are the same."""
    pods = policy_text("a").replace(
        "    static: {urls: [http://127.0.0.1:1/metrics], interval: 10s}", "    pods: {}"
    )
    text = pods.replace("spec:\n", "spec:\n  target: {kind: Deployment, name: llama}\n")
    renamed = text.replace("name: a,", "name: b,")
    elsewhere = text.replace("namespace: inference", "namespace: other")
    another = text.replace("name: llama", "name: qwen")

    offsets = [offset_of(policy_of(each)) for each in (text, renamed, elsewhere, another)]

    assert offsets[0] == offsets[1]
    assert len(set(offsets)) == 3


def policy_of(text: str) -> Policy:
    (placed,), _ = read_files({"a.yaml": text.encode()})
    return placed.policy


async def test_stopping_ends_every_loop_and_closes_every_source():
    files = FakeFiles(chat=policy_text("chat"), code=policy_text("code"))

    async with supervised(files) as running:
        pass

    assert [source.closed for _, source in running.opening.opened] == [True, True]
    assert set(running.store.states) == {"inference/chat", "inference/code"}
