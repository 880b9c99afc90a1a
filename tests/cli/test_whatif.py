"""``leadtime whatif``: supposed numbers, the loop's own decision, and what becomes of it."""

import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.cli.main import main
from adapter.cli.supposing.numbers import Supposed, SupposedError, ratios, shared_out
from adapter.cli.supposing.pool import decide
from adapter.cli.supposing.told import as_text, consumers, winner
from adapter.fleet.units import Seconds
from adapter.policy.document import Policy
from adapter.scaling.decision import HoldReason
from tests.build import T0

SPEC = """\
apiVersion: leadtime.dev/v1alpha1
kind: ScalingPolicy
metadata: {name: chat, namespace: inference}
spec:
  mode: MODE
  source: {static: {urls: ["http://127.0.0.1:1/"], interval: 5s}}
  replicas: {min: 2, max: 40}
  signals:
    queue: {targetInFlight: 10, headroom: 1.0}
    kvCache: {target: 0.8}
    ttft: {objective: 2s, quantile: 0.95, window: 2m}
  scaleDown: {delay: 5m, onlyIdle: false}
"""


@pytest.fixture
def policy(tmp_path) -> str:
    return written(tmp_path, SPEC.replace("MODE", "active"))


def written(folder: Path, text: str) -> str:
    path = folder / "policy.yaml"
    path.write_text(text)
    return str(path)


def asked(capsys, *arguments: str) -> dict:
    assert main(["whatif", *arguments, "-o", "json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return json.loads(said.out)


def signal(told: dict, name: str) -> dict:
    return next(each for each in told["signals"] if each["signal"] == name)


def test_the_count_is_what_the_largest_signal_asks_for(capsys, policy):
    told = asked(capsys, policy, "--serving", "4", "--running", "60", "--waiting", "40")

    assert signal(told, "queue")["replicas"] == pytest.approx(10)
    assert signal(told, "queue")["evidence"]["waiting_requests"] == 40
    assert (told["publishedBefore"], told["published"]) == (4, 10)
    assert "100 in flight" in told["because"]


def test_numbers_that_nobody_measured_teach_nothing(capsys, tmp_path):
    """However long they stand: what a replica carries is the prior of `targetInFlight: auto`."""
    text = SPEC.replace("MODE", "active").replace("targetInFlight: 10", "targetInFlight: auto")
    pool = (written(tmp_path, text), "--serving", "4", "--running", "60", "--waiting", "40")

    short = asked(capsys, *pool, "--ttft", "3s", "--for", "30s")
    long = asked(capsys, *pool, "--ttft", "3s", "--for", "20m")

    assert signal(short, "queue")["replicas"] == signal(long, "queue")["replicas"]


def test_a_slow_first_token_asks_for_more_and_the_figure_is_the_one_given(capsys, policy):
    pool = (policy, "--serving", "4", "--running", "8", "--waiting", "4")

    slow = signal(asked(capsys, *pool, "--ttft-p95", "3s"), "ttft")
    quick = signal(asked(capsys, *pool, "--ttft-p95", "200ms"), "ttft")

    assert slow["replicas"] > 4
    assert "p95 3.00 s" in slow["because"]
    assert quick["replicas"] is None or quick["replicas"] <= 4


def test_a_full_cache_counts_while_requests_wait(capsys, policy):
    pool = (policy, "--serving", "4", "--running", "8", "--kv", "0.95")

    waits = signal(asked(capsys, *pool, "--waiting", "4"), "kvCache")
    served = signal(asked(capsys, *pool, "--waiting", "0"), "kvCache")

    assert waits["replicas"] > 4
    assert served["replicas"] is None


def test_a_queue_at_one_replica_is_told_from_a_queue_at_all(capsys, policy):
    pool = (policy, "--serving", "4", "--running", "40")

    hot = asked(capsys, *pool, "--waiting", "40,0,0,0")
    even = asked(capsys, *pool, "--waiting", "40")

    assert signal(hot, "queue")["evidence"]["skewed_requests"] > 0
    assert signal(even, "queue")["evidence"]["skewed_requests"] == 0
    assert hot["published"] < even["published"]


def test_a_busy_pool_is_never_taken_for_a_stalled_one(capsys, policy):
    told = asked(
        capsys, policy, "--serving", "4", "--running", "60", "--waiting", "40", "--for", "1h"
    )

    stalled = next(c for c in told["conditions"] if c["type"] == "ReplicasStalled")
    assert not stalled["status"]


def test_on_the_way_down_the_delay_holds_and_says_how_long_it_still_does(capsys, policy):
    pool = (policy, "--serving", "20", "--running", "20", "--waiting", "0", "--kv", "0.1")

    soon = asked(capsys, *pool, "--for", "1m")
    later = asked(capsys, *pool, "--for", "10m")

    (hold,) = soon["holds"]
    assert (hold["reason"], hold["secondsLeft"]) == (HoldReason.SCALE_DOWN_DELAY, 240)
    assert soon["published"] == 20
    assert later["published"] == 2
    assert later["holds"] == []


def test_a_reading_that_is_not_given_is_unknown_and_not_zero(capsys, policy):
    told = asked(capsys, policy, "--serving", "6", "--published", "6")

    assert told["published"] == 6
    assert signal(told, "queue")["replicas"] is None
    assert told["holds"][0]["reason"] == HoldReason.METRICS_GAP


def test_beyond_the_staleness_limit_there_is_no_number(capsys, policy):
    told = asked(capsys, policy, "--serving", "6", "--for", "20m")

    assert told["published"] is None
    assert told["refusal"]
    assert "leaves 6 as it is" in told["consumers"]["HPA"]


def test_advisory_mode_publishes_what_runs(capsys, tmp_path):
    policy = written(tmp_path, SPEC.replace("MODE", "advisory"))

    told = asked(capsys, policy, "--serving", "4", "--running", "60", "--waiting", "40")

    assert (told["published"], told["desired"]) == (4, 10)


def test_what_loads_is_part_of_what_an_hpa_starts_from(capsys, policy):
    told = asked(
        capsys, policy, "--serving", "8", "--loading", "2", "--running", "60", "--waiting", "40"
    )

    assert told["current"] == 10
    assert told["consumers"]["HPA"].startswith("stays at 10")


def test_a_step_inside_the_default_tolerance_is_said_to_be_ignored(capsys, policy):
    told = asked(capsys, policy, "--serving", "20", "--running", "200", "--waiting", "10")

    assert told["published"] == 21
    assert told["consumers"]["HPA"].startswith("20→21")
    assert "ignored: 20→21 is inside" in told["consumers"]["HPA, default tolerance"]


def test_the_text_tells_the_count_every_step_and_the_winner_once(capsys, policy):
    code = main(["whatif", policy, "--serving", "4", "--running", "60", "--waiting", "40"])

    said = capsys.readouterr().out
    assert code == 0
    assert said.startswith("inference/chat: publish 10, 10 desired; before: 4 published")
    assert [line.split()[1] for line in said.splitlines() if line.startswith("  * ")] == ["queue"]
    stages = ("combine", "standby", "replace", "gaps", "stabilize", "limit", "publish")
    assert all(f"\n  {stage} " in said for stage in stages)


def test_the_text_says_how_long_a_hold_lasts_and_why_nothing_is_served(capsys, policy):
    down = ("--serving", "20", "--running", "20", "--waiting", "0", "--for", "1m")
    main(["whatif", policy, *down])
    held = capsys.readouterr().out
    main(["whatif", policy, "--serving", "6", "--for", "20m"])
    refused = capsys.readouterr().out

    assert "ScaleDownDelay for 4m more" in held
    assert "inference/chat: refuse" in refused


def test_the_same_question_has_the_same_answer_and_leaves_no_log(caplog):
    text = SPEC.replace("MODE", "active")
    policy = Policy.model_validate(_plain(text))
    pool = supposed(serving=3, waiting=(9.0, 0.0, 0.0), running=(1.0, 1.0, 1.0))

    with caplog.at_level(logging.INFO, logger="leadtime"):
        first, second = decide(policy, pool, at=T0), decide(policy, pool, at=T0)
        assert logging.getLogger("leadtime").level == logging.INFO

    assert first == second
    assert as_text(policy, pool, first) == as_text(policy, pool, second)
    assert caplog.records == []


def _plain(text: str) -> object:
    import yaml  # noqa: PLC0415 - for this one test

    return yaml.safe_load(text)


def supposed(**numbers) -> Supposed:
    given = {
        "serving": 3,
        "loading": 0,
        "published": 3,
        "running": None,
        "waiting": None,
        "kv": None,
        "ttft": None,
        "stood_for": Seconds(60.0),
    }
    return Supposed(**{**given, **numbers})


def test_no_signal_wins_where_none_can_say():
    policy = Policy.model_validate(_plain(SPEC.replace("MODE", "active")))

    decision = decide(policy, supposed(), at=T0)

    assert winner(decision) == ""
    assert dict(consumers(decision, current=3))["HPA"].startswith("stays at 3")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--serving", "0"], "from 1 to 10000 replicas"),
        (["--serving", "99999"], "from 1 to 10000 replicas"),
        (["--serving", "4", "--waiting", "1,2"], "2 numbers for 4 serving replicas"),
        (["--serving", "4", "--waiting", "many"], "--waiting many: expected a number"),
        (["--serving", "4", "--running", "-3"], "--running -3: expected a number"),
        (["--serving", "4", "--running", "nan"], "--running nan: expected a number"),
        (["--serving", "4", "--running", "1.5"], "requests are whole"),
        (["--serving", "4", "--kv", "80"], "for 80 % write 0.8"),
        (["--serving", "2", "--kv", "0.1,0.2,0.3"], "--kv: 3 numbers for 2"),
        (["--serving", "4", "--ttft", "3"], "--ttft: '3' is not a duration"),
        (["--serving", "4", "--ttft", "0s"], "--ttft 0s: a first token takes longer"),
        (["--serving", "4", "--ttft-p50", "1s"], "the policy watches quantile 0.95"),
        (["--serving", "4", "--ttft", "1s", "--ttft-p95", "1s"], "give one of them"),
        (["--serving", "4", "--for", "48h"], "--for 48h: at most 24h"),
        (["--serving", "4", "--for", "soon"], "--for: 'soon' is not a duration"),
    ],
)
def test_numbers_that_no_pool_has_are_refused_in_one_sentence(capsys, policy, arguments, words):
    flags = [f"{arguments[-2]}={arguments[-1]}"]

    code = main(["whatif", policy, *arguments[:-2], *flags])

    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert words in said.err
    assert said.err.count("\n") == 1


def test_a_first_token_needs_a_signal_that_reads_it(capsys, tmp_path):
    lines = [line for line in SPEC.replace("MODE", "active").splitlines() if "ttft:" not in line]
    policy = written(tmp_path, "\n".join(lines).replace("kvCache:", "ttft: null\n    kvCache:"))

    code = main(["whatif", policy, "--serving", "4", "--ttft", "3s"])

    assert code == 2
    assert "no signals.ttft" in capsys.readouterr().err


def test_a_policy_that_is_not_there_is_named(capsys, tmp_path):
    code = main(["whatif", str(tmp_path / "none.yaml"), "--serving", "4"])

    assert code == 2
    assert "none.yaml" in capsys.readouterr().err


@given(total=st.integers(0, 10**6), replicas=st.integers(1, 300))
def test_a_total_is_dealt_out_whole_and_evenly(total, replicas):
    dealt = shared_out(str(total), replicas, option="--waiting")

    assert sum(dealt) == total
    assert len(dealt) == replicas
    assert max(dealt) - min(dealt) <= 1


@given(st.lists(st.integers(0, 10**6), min_size=2, max_size=50))
def test_a_list_is_taken_as_it_is(numbers):
    text = ",".join(map(str, numbers))

    assert shared_out(text, len(numbers), option="--running") == tuple(map(float, numbers))


@given(st.text(max_size=20), st.integers(0, 5))
def test_any_text_gives_numbers_or_a_sentence(text, replicas):
    for read, most in ((shared_out, float("inf")), (ratios, 1.0)):
        try:
            numbers = read(text, replicas, option="--x")
        except SupposedError as error:
            said, numbers = str(error), None
        else:
            said = "--x"

        assert "--x" in said
        assert numbers is None or len(numbers) == replicas
        assert all(0 <= number <= most for number in numbers or ())
