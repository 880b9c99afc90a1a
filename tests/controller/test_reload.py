"""Policy files that come, change, break, are emptied and go while their loops run."""

import logging

import pytest

from adapter.controller.board import PolicyKey
from adapter.controller.supervisor import POLL
from tests.build import T0
from tests.controller.policies import policy_text
from tests.controller.supervised import Supervised, supervised
from tests.fakes import FakeFiles

CHAT, CODE = PolicyKey("inference", "chat"), PolicyKey("inference", "code")
BROKEN = policy_text("chat").replace("min: 1", "min: one")


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
