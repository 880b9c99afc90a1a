"""``leadtime verify``: fresh, stale in each way, two versions; for people and for programs."""

import json

import pytest

from adapter.cli.main import main
from tests.sources.smoke_servers import Reply, engine, vllm


def verified(capsys, *arguments: str) -> tuple[int, dict[str, object]]:
    code = main(["verify", *arguments, "-o", "json"])
    return code, json.loads(capsys.readouterr().out)


def codes(report: dict[str, object]) -> list[str]:
    return [one["code"] for endpoint in report["endpoints"] for one in endpoint["findings"]]


def test_a_fresh_endpoint_is_fresh(capsys):
    with engine(vllm()) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert (code, report["fresh"]) == (0, True)
    assert report["endpoints"][0]["versions"]["/v1/models root"] == ["/weights/7"]
    assert report["endpoints"][0]["answers"] == 4


def test_an_answer_that_ignores_its_input_is_stale(capsys):
    """A response cache that answers for the old weights, whatever is asked."""
    stored = {"id": "cmpl-1", "choices": [{"text": "hello"}]}

    with engine(lambda *_: (200, {}, stored)) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert code == 1
    assert codes(report) == ["ReplayedAnswer", "IdenticalAnswers"]


def test_a_cache_that_owns_up_is_stale(capsys):
    with engine(vllm(headers={"X-Cache-Status": "HIT", "Age": "12"})) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert (code, codes(report)) == (1, ["CachedAnswer", "CachedAnswer"])
    assert report["endpoints"][0]["cacheHeaders"] == {"x-cache-status": "HIT", "age": "12"}


def test_the_endpoint_on_the_old_weights_is_named(capsys):
    with engine(vllm()) as a, engine(vllm()) as b, engine(vllm(root="/weights/6")) as old:
        code = main(["verify", "--url", a, "--url", b, "--url", old, "--model", "m"])

    out = capsys.readouterr().out
    assert code == 1
    assert f"✘ {old}" in out
    assert "VersionSkew: /v1/models root is /weights/6, others say /weights/7" in out
    assert f"✔ {a}" in out
    assert out.endswith("3 endpoints, 1 not fresh\n")


def test_two_versions_behind_one_address_are_found_by_their_header(capsys):
    hashes = iter("abababab")

    def split(path: str, body: dict[str, object]) -> Reply:
        status, _, said = vllm()(path, body)
        if path == "/v1/completions":
            said["id"] = f"cmpl-{body['prompt']}"
            return status, {"X-Model-Hash": next(hashes)}, said
        return status, {}, said

    with engine(split) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert (code, codes(report)) == (1, ["VersionSkew"])


@pytest.mark.parametrize(("expected", "code"), [("/weights/7", 0), ("/weights/8", 1)])
def test_the_expected_version_must_be_told(capsys, expected, code):
    with engine(vllm()) as url:
        said, _ = verified(capsys, "--url", url, "--model", "m", "--expect-version", expected)

    assert said == code


def test_an_engine_that_is_up_and_cannot_generate_is_not_fresh(capsys):
    """A vLLM whose engine core is dead: /v1/models is 200 all the same."""

    def dead(path: str, body: dict[str, object]) -> Reply:
        if path == "/v1/completions":
            return 500, {}, {"error": "EngineDeadError"}
        return vllm()(path, body)

    with engine(dead) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert (code, codes(report)) == (1, ["NoAnswer"])
    assert "answered 500" in report["endpoints"][0]["findings"][0]["message"]


def test_one_input_twice_must_be_answered_alike_where_that_is_asked(capsys):
    count = iter(range(100))

    def moody(path: str, body: dict[str, object]) -> Reply:
        text = f"{next(count)}"
        return 200, {}, {"id": text, "choices": [{"text": text}]}

    with engine(moody) as url:
        code, report = verified(capsys, "--url", url, "--model", "m", "--determinism")

    assert (code, codes(report)) == (1, ["NotDeterministic"])


def test_a_fixed_prompt_must_be_answered_as_this_version_does(capsys):
    with engine(vllm()) as url:
        asked = ["--url", url, "--model", "m", "--prompt", "Paris", "--expect"]
        good, _ = verified(capsys, *asked, "about Paris")
        bad, report = verified(capsys, *asked, "London")

    assert (good, bad, codes(report)) == (0, 1, ["UnexpectedAnswer"])


def triton(path: str, body: dict[str, object]) -> Reply:
    if path == "/v2/models/ranker":
        inputs = [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
        return 200, {}, {"versions": ["3"], "inputs": inputs}
    if path == "/v2/repository/index":
        return 200, {}, [{"name": "ranker", "version": "3", "state": "READY"}]
    total = sum(body["inputs"][0]["data"])
    return 200, {}, {"model_version": "3", "outputs": [{"name": "y", "data": [total]}]}


def test_a_triton_model_is_asked_with_the_tensors_that_it_names(capsys):
    asked = ["--protocol", "triton", "--model", "ranker"]
    with engine(triton) as url:
        code, report = verified(capsys, "--url", url, *asked)

    assert (code, report["fresh"]) == (0, True)
    assert report["endpoints"][0]["versions"] == {
        "/v2/repository/index ready": ["3"],
        "/v2/models/ranker versions": ["3"],
        "answer model_version": ["3"],
    }


def test_inputs_of_the_user_are_sent_as_they_are_but_for_the_nonce(capsys, tmp_path):
    seen: list[dict[str, object]] = []

    def watch(path: str, body: dict[str, object]) -> Reply:
        if path.endswith("/infer"):
            seen.append(body)
        return triton(path, body)

    for name, number in (("a", 1), ("b", 2)):
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 1], "data": [number]}
        text = json.dumps({"id": "{{nonce}}", "inputs": [tensor]})
        (tmp_path / name).write_text(text)
    asked = ["--protocol", "triton", "--model", "ranker", "--tries", "1"]
    given = ["--input", str(tmp_path / "a"), "--input", str(tmp_path / "b")]
    with engine(watch) as url:
        code, _ = verified(capsys, "--url", url, *asked, *given)

    assert code == 0
    assert [body["inputs"][0]["data"] for body in seen] == [[1], [2]]
    assert len({body["id"] for body in seen} - {"{{nonce}}"}) == 2


def test_a_triton_that_answers_two_inputs_alike_is_stale(capsys):
    def stale(path: str, body: dict[str, object]) -> Reply:
        if path.endswith("/infer"):
            return 200, {}, {"outputs": [{"name": "y", "data": [1]}]}
        return triton(path, body)

    with engine(stale) as url:
        asked = ["--protocol", "triton", "--model", "ranker"]
        code, report = verified(capsys, "--url", url, *asked)

    assert (code, codes(report)) == (1, ["IdenticalAnswers"])


def test_sglang_is_asked_for_its_weights_version(capsys):
    def sglang(path: str, body: dict[str, object]) -> Reply:
        if path == "/generate":
            return 200, {}, {"text": f"re {body['text']}", "meta_info": {"id": body["text"]}}
        if path == "/model_info":
            return 200, {}, {"weight_version": "2026-11-30"}
        return 404, {}, b""

    with engine(sglang) as url:
        asked = ["--protocol", "sglang", "--expect-version", "2026-11-30"]
        code, report = verified(capsys, "--url", url, *asked)

    assert code == 0
    assert report["endpoints"][0]["versions"] == {"/model_info weight_version": ["2026-11-30"]}


def test_credentials_come_from_a_file(capsys, tmp_path):
    (tmp_path / "headers").write_text("Authorization: Bearer x\n\nX-Team: y\n")
    with engine(vllm()) as url:
        asked = ["--url", url, "--model", "m", "--header-file", str(tmp_path / "headers")]
        code, _ = verified(capsys, *asked)

    assert code == 0


def test_two_versions_behind_one_address_are_found_by_what_they_serve(capsys):
    turn = iter(range(1000))

    def behave(path: str, body: dict[str, object]) -> Reply:
        if path == "/v1/models":
            return 200, {}, {"data": [{"id": "m", "root": f"/weights/{next(turn) % 2}"}]}
        return vllm_like(path, body)

    vllm_like = vllm()
    with engine(behave) as url:
        code, report = verified(capsys, "--url", url, "--model", "m")

    assert (code, codes(report)) == (1, ["VersionSkew"])


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b"\x1b[2J\x07", b'{"id": ' + b"9" * 5000 + b"}"], ids=len
)
def test_what_is_no_json_is_told_without_obeying_it(capsys, body):
    with engine(lambda *_: (200, {}, body)) as url:
        assert main(["verify", "--url", url, "--model", "m"]) == 1

    out = capsys.readouterr().out
    assert "not JSON" in out
    assert all(c.isprintable() or c == "\n" for c in out)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--url", "http://no-such-host.invalid", "--model", "m"], "no such host"),
        (["--url", "host", "--model", "m"], "give an address like http://host:8000"),
        (["--url", "http://127.0.0.1:1"], "needs --model"),
        (["--url", "http://127.0.0.1:1", "--model", "m", "--prompt", "p"], "go together"),
        (["--url", "http://127.0.0.1:1", "--model", "m", "--input", "no.json"], "no.json"),
        (["--url", "http://127.0.0.1:1", "--model", "m", "--header-file", "no.txt"], "no.txt"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(capsys, arguments, why):
    assert main(["verify", *arguments]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert why in err


@pytest.mark.parametrize(
    ("texts", "why"),
    [(["{}"], "1 file"), (["{}", "{}"], "1 distinct"), (["{}", "{"], "not JSON")],
)
def test_inputs_that_cannot_be_compared_are_refused(capsys, tmp_path, texts, why):
    given = ["--url", "http://127.0.0.1:1", "--model", "m"]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_text(text)
        given += ["--input", str(tmp_path / str(number))]

    assert main(["verify", *given]) == 2
    assert why in capsys.readouterr().err


def test_a_header_file_that_is_none_is_refused_with_its_line(capsys, tmp_path):
    (tmp_path / "h").write_text("A: b\nnonsense\n")
    given = ["--url", "http://127.0.0.1:1", "--model", "m", "--header-file", str(tmp_path / "h")]

    assert main(["verify", *given]) == 2
    assert "h:2: not a header" in capsys.readouterr().err


def test_no_tries_are_a_usage_error(capsys):
    with pytest.raises(SystemExit) as left:
        main(["verify", "--url", "http://x", "--tries", "0"])

    assert left.value.code == 2
