"""``leadtime demo`` as people run it: a process of its own, the real wire, real signals."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import pytest

LEADTIME = (sys.executable, "-m", "adapter", "demo")


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a demo that ends with the test at the latest.

    Ctrl-C must work in it even where the tests run in a shell's background, which ignores it.
    """
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        (*LEADTIME, *arguments),
        preexec_fn=heard,  # noqa: PLW1509 - pytest runs no threads
        **pipes,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        (*LEADTIME, *arguments), capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.slow
def test_the_json_of_eight_seconds_has_the_promised_keys_and_shows_the_rise():
    """Without a terminal: exit 0, JSON alone on stdout, desired above the 2 it began with."""
    done = demo("-o", "json", "--seconds", "8")
    document = json.loads(done.stdout)
    decisions = document["decisions"]

    assert done.returncode == 0
    assert list(document) == ["ticks", "maxDesired", "finalDesired", "sloAttainment", "decisions"]
    assert document["ticks"] == len(decisions) > 20
    assert document["maxDesired"] > 2
    assert document["maxDesired"] == max(decision["desired"] for decision in decisions)
    assert document["finalDesired"] == decisions[-1]["desired"]
    assert 0.9 <= document["sloAttainment"] <= 1
    assert all(2 <= decision["published"] <= 16 for decision in decisions)
    assert all(decision["because"] for decision in decisions)
    assert max(decision["replicas"] for decision in decisions) > 2
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") <= 3


@pytest.mark.slow
def test_without_a_terminal_the_summary_is_on_stdout_and_no_escape_anywhere():
    done = demo("--seconds", "3")

    assert done.returncode == 0
    assert "served in time" in done.stdout
    assert "HPA reads over TLS" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
def test_ctrl_c_ends_it_early_and_without_a_traceback():
    """130 long before the 30 s that were to be played."""
    with started("--seconds", "30") as running:
        first = running.stderr.readline()

        running.send_signal(signal.SIGINT)
        _, talk = running.communicate(timeout=20)

    assert first.startswith("time (min:s) 00:")
    assert running.returncode == 130
    assert "Traceback" not in talk


@pytest.mark.slow
@pytest.mark.parametrize("output", ["table", "json"])
def test_a_play_that_serves_nothing_is_a_failure(output):
    """A second of fleet time ends before the HPA's first sync: exit 1, one sentence on stderr."""
    done = demo("--seconds", "0.5", "--speed", "2", "-o", output)

    assert done.returncode == 1
    assert "leadtime demo: the HPA never read a count in" in done.stderr
    assert "Traceback" not in done.stderr
    if output == "json":
        assert json.loads(done.stdout)["ticks"] == 1


@pytest.mark.slow
def test_a_port_that_is_taken_is_said_in_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = demo("--port", str(taken.getsockname()[1]))

    assert done.returncode == 2
    assert done.stderr.startswith("leadtime demo: cannot listen on 127.0.0.1 port")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--seconds", "0", "'0' is not a number above 0"),
        ("--seconds", "soon", "'soon' is not a number above 0"),
        ("--speed", "nan", "'nan' is not a number above 0"),
        ("--port", "70000", "'70000' is not a port: give a number from 0 to 65535"),
    ],
)
def test_wrong_options_are_refused_with_the_reason(option, value, words):
    done = demo(option, value)

    assert done.returncode == 2
    assert words in done.stderr
