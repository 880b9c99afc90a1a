"""``leadtime probe``: ready after a real generation, never two at a time, no dead memory."""

import fcntl
import mmap
from pathlib import Path

import pytest

from adapter.cli import probing
from adapter.cli.main import main
from tests.sources.smoke_servers import Reply, engine, vllm


@pytest.fixture(autouse=True)
def _locks_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(probing.tempfile, "gettempdir", lambda: str(tmp_path))


def test_a_replica_that_generates_is_ready_and_nothing_is_said(capsys):
    with engine(vllm()) as url:
        assert main(["probe", "--url", url, "--model", "m"]) == 0

    assert capsys.readouterr() == ("", "")


def test_a_replica_that_still_loads_is_not_ready_and_says_why(capsys):
    with engine(lambda *_: (503, {}, b"loading")) as url:
        assert main(["probe", "--url", url, "--model", "m"]) == 1

    assert capsys.readouterr().out == "NoAnswer: answered 503: loading\n"


def test_an_answer_from_a_cache_is_no_proof(capsys):
    with engine(vllm(headers={"X-Cache": "HIT"})) as url:
        assert main(["probe", "--url", url, "--model", "m"]) == 1

    assert "CachedAnswer" in capsys.readouterr().out


@pytest.mark.parametrize(("expected", "code"), [("about 2+2", 0), ("four", 1)])
def test_a_fixed_prompt_must_be_answered_as_expected(expected, code):
    with engine(vllm()) as url:
        given = ["--url", url, "--model", "m", "--prompt", "2+2=", "--expect", expected]

        assert main(["probe", *given]) == code


def test_a_probe_that_still_waits_makes_the_next_one_fail_at_once(capsys, tmp_path):
    """Seen in sglang PR#35896: probes that pile up in a stalled scheduler crash it."""
    lock = tmp_path / "lock"
    with engine(vllm()) as url, lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)

        code = main(["probe", "--url", url, "--model", "m", "--lock", str(lock)])

    assert code == 1
    assert "the probe before is still waiting" in capsys.readouterr().out


def busy(*, step: int) -> tuple[list[str], object]:
    """Return the paths asked for, and an engine with requests running and moving tokens."""
    asked: list[str] = []
    tokens = iter(range(100, 100_000, step)) if step else iter([100] * 100)

    def behave(path: str, body: dict[str, object]) -> Reply:
        asked.append(path)
        if path != "/metrics":
            return vllm()(path, body)
        text = (
            "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running 3\n"
            "# TYPE vllm:generation_tokens counter\n"
            f"vllm:generation_tokens_total {next(tokens)}\n"
        )
        return 200, {}, text.encode()

    return asked, behave


def test_a_busy_replica_that_gets_on_is_not_asked_for_more(monkeypatch):
    monkeypatch.setattr(probing, "GLANCE_SECONDS", 0.0)
    asked, behave = busy(step=7)
    with engine(behave) as url:
        given = ["--url", url, "--model", "m", "--busy-metrics", "/metrics"]

        assert main(["probe", *given]) == 0

    assert asked == ["/metrics", "/metrics"]


@pytest.mark.parametrize("metrics", ["stalled", "idle", "absent"])
def test_any_other_replica_is_asked(monkeypatch, metrics):
    monkeypatch.setattr(probing, "GLANCE_SECONDS", 0.0)
    asked, behave = busy(step=0)

    def other(path: str, body: dict[str, object]) -> Reply:
        status, headers, said = behave(path, body)
        if path == "/metrics" and metrics == "idle":
            return status, headers, said.replace(b"running 3", b"running 0")
        if path == "/metrics" and metrics == "absent":
            return 404, {}, b""
        return status, headers, said

    with engine(other) as url:
        given = ["--url", url, "--model", "m", "--busy-metrics", "/metrics"]

        assert main(["probe", *given]) == 0

    assert asked[-1] == "/v1/completions"


def test_metrics_that_do_not_answer_do_not_excuse_the_replica():
    with engine(lambda path, _: (200, {"Content-Length": "9"}, b"")) as url:
        given = ["--url", url, "--model", "m", "--busy-metrics", "/metrics", "--timeout", "0.3"]

        assert main(["probe", *given]) == 1


def test_segments_of_a_dead_triton_are_found_and_those_in_use_are_not(capsys, tmp_path):
    (tmp_path / "triton_python_backend_shm_region_1").write_bytes(b"x" * 4096)
    used = tmp_path / "triton_python_backend_shm_region_2"
    used.write_bytes(b"x" * 4096)
    opened = tmp_path / "triton_python_backend_shm_region_3"
    opened.write_bytes(b"x")
    (tmp_path / "other").write_bytes(b"x")

    with used.open("r+b") as file, opened.open("rb"):
        mapping = mmap.mmap(file.fileno(), 4096)
        code = main(["probe", "--shm", "--shm-dir", str(tmp_path)])
        mapping.close()

    out = capsys.readouterr().out
    assert code == 1
    assert "region_1 is mapped by no process" in out
    assert out.count("\n") == 1


def test_no_segments_are_no_finding(tmp_path):
    assert main(["probe", "--shm", "--shm-dir", str(tmp_path)]) == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([], "give --url, --shm or both"),
        (["--url", "nonsense", "--model", "m"], "no host"),
        (["--url", "http://127.0.0.1:1"], "needs --model"),
        (["--shm", "--shm-dir", "/no/such"], "no such folder"),
        (["--url", "http://127.0.0.1:1", "--model", "m", "--lock", "/no/such/lock"], "--lock"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(capsys, arguments, why):
    assert main(["probe", *arguments]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


def test_a_process_that_is_gone_or_not_ours_is_passed_over(tmp_path: Path):
    assert list(probing._used(tmp_path / "123")) == []
