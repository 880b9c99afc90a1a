import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.controller.board import PolicyKey
from adapter.controller.errors import NoDecisionYetError, SourceError
from adapter.controller.supervisor import LONGEST_PAUSE, POLL, offset_of
from adapter.fleet.units import Timestamp
from adapter.policy.document import Policy
from adapter.policy.load import read_files
from tests.build import T0
from tests.controller.policies import policy_text
from tests.controller.supervised import Supervised, busy, settle, supervised
from tests.fakes import FakeFiles, FakeSource, FakeSources

CHAT = PolicyKey("inference", "chat")
BROKEN = policy_text("chat").replace("min: 1", "min: one")


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
