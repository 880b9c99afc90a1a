"""The calls of KEDA, by a real client, with the vectors and bug reports of the wire contract."""

import asyncio
from dataclasses import replace

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.controller.board import Board, PolicyKey
from adapter.controller.errors import NotServedError
from adapter.fleet.units import Timestamp
from adapter.serving.keda.externalscaler_pb2 import GetMetricsRequest, ScaledObjectRef
from adapter.serving.keda.scaler import ExternalScaler, UnfitReferenceError
from adapter.serving.telemetry import Meters
from tests.build import T0
from tests.fakes import FakeClock
from tests.serving.build import a_board, a_decision, put
from tests.serving.keda.client import METRIC, asked, reference, scaler_and_caller

UNAVAILABLE = grpc.StatusCode.UNAVAILABLE


async def test_the_published_count_is_the_one_value_as_integer_and_as_float():
    """Row 38: what is not filled both ways is read as zero by one version or another."""
    async with scaler_and_caller(a_board(chat=a_decision(7, desired=9))) as keda:
        (value,) = (await keda.get_metrics(asked())).metricValues

    assert (value.metricName, value.metricValue, value.metricValueFloat) == (METRIC, 7, 7.0)


async def test_a_decided_zero_is_zero_both_ways_and_not_active():
    """KEDA falls back to the integer where the float is zero: a leftover one would win."""
    async with scaler_and_caller(a_board(chat=a_decision(0))) as keda:
        (value,) = (await keda.get_metrics(asked())).metricValues
        active = (await keda.is_active(reference())).result

    assert (value.metricValue, value.metricValueFloat, active) == (0, 0.0, False)


async def test_the_specification_is_one_metric_with_target_one_before_the_first_scrape():
    """Row 34: an empty one makes KEDA create an HPA over CPU, which stays (keda#7729)."""
    async with scaler_and_caller(a_board(chat=None)) as keda:
        (spec,) = (await keda.get_metric_spec(reference())).metricSpecs

    assert (spec.metricName, spec.targetSize, spec.targetSizeFloat) == (METRIC, 1, 1.0)


@pytest.mark.parametrize(
    "decision",
    [
        a_decision(7),
        a_decision(7, refusal="no replica answers"),
        a_decision(7, valid_until=Timestamp(T0 - 1)),
    ],
)
async def test_the_specification_never_changes(decision):
    """Row 37: KEDA does not pick up another target while it runs, so there is none."""
    board = a_board(chat=None)
    async with scaler_and_caller(board) as keda:
        before = await keda.get_metric_spec(reference())
        put(board, "chat", decision)
        after = await keda.get_metric_spec(reference())

    assert before == after


@pytest.mark.parametrize(
    ("decision", "cause"),
    [
        (None, "its first tick has not finished"),
        (a_decision(7, refusal="no replica answers"), "no replica answers"),
        (a_decision(7, valid_until=Timestamp(T0 - 1)), "stale: the last decision"),
    ],
)
async def test_no_count_is_an_error_with_its_cause_and_never_a_zero(decision, cause):
    """An error is what fallback needs: a zero on failure would scale the pool in."""
    async with scaler_and_caller(a_board(chat=decision)) as keda:
        metrics = await keda.refusal(keda.get_metrics, asked())
        activity = await keda.refusal(keda.is_active, reference())

    assert metrics == activity
    assert metrics[0] is UNAVAILABLE
    assert cause in metrics[1]


@pytest.mark.parametrize(
    "name", [METRIC, METRIC.upper(), f"s0-{METRIC}", f"S12-{METRIC}", "Leadtime-Desired-Replicas"]
)
async def test_the_name_is_found_however_it_comes_back(name: str):
    """Rows 15 and 40: lower-cased by the HPA's path, or with the index that KEDA put there."""
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        (value,) = (await keda.get_metrics(asked(metric=name))).metricValues

    assert (value.metricName, value.metricValue) == (METRIC, 7)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("leadtime-desired-replica", "did you mean 'leadtime-desired-replicas'?"),
        ("s0-s1-leadtime-desired-replicas", "did you mean"),
        ("composite-metric", "the one metric here is 'leadtime-desired-replicas'"),
        ("", "the one metric here is"),
    ],
)
async def test_another_metric_is_not_found_and_the_right_name_is_told(name: str, hint: str):
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        code, details = await keda.refusal(keda.get_metrics, asked(metric=name))

    assert code is grpc.StatusCode.NOT_FOUND
    assert f"no metric {name!r}; " in details
    assert hint in details


@pytest.mark.parametrize("method", ["is_active", "get_metric_spec", "get_metrics"])
async def test_an_unknown_policy_is_not_found_and_the_nearest_is_named(method: str):
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        request = asked("chatt") if method == "get_metrics" else reference("chatt")
        code, details = await keda.refusal(getattr(keda, method), request)

    assert (code, details) == (
        grpc.StatusCode.NOT_FOUND,
        "no policy default/chatt; did you mean 'chat'?",
    )


@pytest.mark.parametrize("method", ["is_active", "get_metric_spec", "get_metrics"])
@pytest.mark.parametrize("policy", [None, "", "  "])
async def test_a_trigger_without_a_policy_is_told_what_to_add(method: str, policy: str | None):
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        request = asked(policy) if method == "get_metrics" else reference(policy)
        code, details = await keda.refusal(getattr(keda, method), request)

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert details == (
        "ScaledObject default/chat-so: the trigger names no policy; "
        "add `policy: NAME` to its metadata, a ScalingPolicy of the same namespace"
    )


async def test_a_misspelt_key_is_pointed_at():
    misspelt = ScaledObjectRef(
        name="so", namespace="default", scalerMetadata={"polcy": "chat", "scalerAddress": "x:1"}
    )
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        _, details = await keda.refusal(keda.is_active, misspelt)

    assert "names no policy (it has 'polcy'); add `policy: NAME`" in details


async def test_a_call_without_a_namespace_finds_nobodys_policy():
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        code, details = await keda.refusal(keda.is_active, reference(namespace=""))

    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "the call says no namespace" in details


async def test_the_namespace_is_part_of_the_question():
    board = a_board(chat=a_decision(7))
    put(board, "chat", a_decision(3), namespace="other")
    async with scaler_and_caller(board) as keda:
        here = await keda.count()
        there = await keda.get_metrics(
            GetMetricsRequest(scaledObjectRef=reference(namespace="other"), metricName=METRIC)
        )

    assert here == 7
    assert there.metricValues[0].metricValue == 3


async def test_a_negative_count_is_a_bug_that_is_never_published(caplog):
    """KEDA would make a zero of it. The caller is told no internals; the log has them."""
    async with scaler_and_caller(a_board(chat=a_decision(-1))) as keda:
        answer = await keda.refusal(keda.get_metrics, asked())

    assert answer == (
        grpc.StatusCode.INTERNAL,
        "internal error; the adapter's log has the details",
    )
    assert "call=failed method=GetMetrics" in caplog.text


async def test_no_wait_is_part_of_an_answer():
    """Row 35: a slow scaler stalls KEDA's reconcile loop. 200 calls, and no time is asked for."""
    clock = FakeClock()
    async with scaler_and_caller(a_board(chat=a_decision(7)), clock=clock) as keda:
        counts = await asyncio.gather(*(keda.count() for _ in range(200)))

    assert set(counts) == {7}
    assert clock.slept == []


async def test_polls_and_reads_of_the_hpa_are_answered_alike_and_counted():
    """Row 42: 1→N goes by the HPA's reads and not by pollingInterval; each is three calls."""
    board = a_board(chat=a_decision(7))
    meters = Meters(board, clock=FakeClock())
    async with scaler_and_caller(board, meters=meters) as keda:
        for _ in range(6):
            await keda.get_metric_spec(reference())
            await keda.count()
            await keda.is_active(reference())
        await keda.refusal(keda.is_active, reference("nobody"))
    shown = meters.render().decode()

    for method in ("GetMetricSpec", "GetMetrics", "IsActive"):
        assert f'leadtime_keda_calls_total{{code="OK",method="{method}"}} 6.0' in shown
        assert f'leadtime_keda_call_duration_seconds_count{{method="{method}"}}' in shown
    assert 'leadtime_keda_calls_total{code="NOT_FOUND",method="IsActive"} 1.0' in shown


@given(policy=st.text(), namespace=st.text(), metric=st.text(), key=st.text())
def test_no_text_of_a_caller_breaks_the_scaler(policy, namespace, metric, key):
    scaler = ExternalScaler(a_board(chat=a_decision(7)), clock=FakeClock())
    asked_for = ScaledObjectRef(
        name=key, namespace=namespace, scalerMetadata={key: policy, "policy": policy}
    )
    request = GetMetricsRequest(scaledObjectRef=asked_for, metricName=metric)

    for call, argument in (
        (scaler.get_metrics, request),
        (scaler.get_metric_spec, asked_for),
        (scaler.is_active, asked_for),
    ):
        with pytest.raises((UnfitReferenceError, NotServedError)) as refusal:
            call(argument)  # type: ignore[operator]  # each with its own request
        assert "policy" in str(refusal.value)


class Following:
    """A stream that is read by hand; what is not there yet is told from what never comes."""

    def __init__(self, call) -> None:
        self._call = call
        self._next: asyncio.Task | None = None

    async def state(self) -> bool:
        """Return the next state."""
        task, self._next = self._next or asyncio.ensure_future(self._call.read()), None
        async with asyncio.timeout(10):
            answer = await task
        assert answer is not grpc.aio.EOF, "the stream ended"
        return bool(answer.result)

    def is_silent(self) -> bool:
        self._next = self._next or asyncio.ensure_future(self._call.read())
        return not self._next.done()

    async def end(self) -> grpc.StatusCode:
        async with asyncio.timeout(10):
            return await self._call.code()


def _stream(keda, policy: str | None = "chat") -> Following:
    return Following(keda.stream_is_active(reference(policy)))


async def test_a_stream_says_the_state_at_once_and_then_only_another_one():
    """Row 43: each repeated `true` makes KEDA evaluate everything again."""
    board = a_board(chat=a_decision(7))
    key = PolicyKey("default", "chat")
    async with scaler_and_caller(board) as keda:
        stream = _stream(keda)
        first = await stream.state()
        for count in (8, 9, 9, 3):
            board.post(key, a_decision(count), T0)
            await keda.count()  # a round trip: had it said something, it would be here
            assert stream.is_silent()
        board.post(key, a_decision(0), T0)
        second = await stream.state()
        board.post(key, a_decision(0), T0)
        board.post(key, a_decision(1), T0)
        third = await stream.state()

    assert (first, second, third) == (True, False, True)


async def test_a_stream_without_a_decision_waits_for_the_first_one():
    board = a_board(chat=None)
    async with scaler_and_caller(board) as keda:
        stream = _stream(keda)
        await keda.get_metric_spec(reference())
        silent = stream.is_silent()
        put(board, "chat", a_decision(2))

        assert silent
        assert await stream.state()


async def test_a_refused_decision_is_no_transition():
    """`false` would be a claim that nothing is wanted, which nobody made."""
    board = a_board(chat=a_decision(7))
    key = PolicyKey("default", "chat")
    async with scaler_and_caller(board) as keda:
        stream = _stream(keda)
        first = await stream.state()
        board.post(key, a_decision(7, refusal="no replica answers"), T0)
        await keda.get_metric_spec(reference())
        silent = stream.is_silent()
        board.post(key, a_decision(0), T0)
        second = await stream.state()

    assert (first, silent, second) == (True, True, False)


async def test_a_stream_ends_with_its_policy():
    board = a_board(chat=a_decision(7))
    async with scaler_and_caller(board) as keda:
        stream = _stream(keda)
        await stream.state()
        board.withdraw(PolicyKey("default", "chat"))

        assert await stream.end() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize(
    ("policy", "code"),
    [("nobody", grpc.StatusCode.NOT_FOUND), (None, grpc.StatusCode.INVALID_ARGUMENT)],
)
async def test_a_stream_for_nothing_is_refused_as_a_call_is(policy, code):
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        assert await _stream(keda, policy).end() is code


async def test_streams_are_counted_while_they_are_open():
    board = a_board(chat=a_decision(7))
    meters = Meters(board, clock=FakeClock())
    async with scaler_and_caller(board, meters=meters) as keda:
        streams = [_stream(keda) for _ in range(3)]
        for stream in streams:
            await stream.state()
        during = meters.render().decode()
    after = meters.render().decode()

    assert "leadtime_keda_streams 3.0" in during
    assert "leadtime_keda_streams 0.0" in after
    assert 'method="StreamIsActive"} 3.0' in after


async def test_the_same_decision_of_another_board_is_answered_alike():
    """Row 47: two replicas of the adapter must not differ, whichever of them KEDA asks."""
    answers = []
    for labels in ({}, {"team": "a"}):
        board = Board()
        put(board, "chat", replace(a_decision(7), standby=2), labels=labels)
        async with scaler_and_caller(board) as keda:
            answers.append(
                (
                    await keda.get_metric_spec(reference()),
                    await keda.get_metrics(asked()),
                    await keda.is_active(reference()),
                )
            )

    assert answers[0] == answers[1]


async def test_a_stream_for_nobody_leaves_nothing_behind():
    """Anybody who reaches the port may make up names; the board must not collect them."""
    board = Waited()
    put(board, "chat", a_decision(7))
    async with scaler_and_caller(board) as keda:
        for number in range(3):
            assert await _stream(keda, f"nobody-{number}").end() is grpc.StatusCode.NOT_FOUND
        unknown = list(board.waited_for)
        stream = _stream(keda)
        await stream.state()
        board.withdraw(PolicyKey("default", "chat"))
        await stream.end()

    assert unknown == []
    assert set(board.waited_for) == {PolicyKey("default", "chat")}


class Waited(Board):
    """A board that remembers what was waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_for: list[PolicyKey | None] = []

    def change(self, key: PolicyKey | None) -> asyncio.Event:
        self.waited_for.append(key)
        return super().change(key)


@pytest.mark.parametrize("letter", ["a", "é", "模", "😀"])
async def test_a_name_of_any_length_is_refused_as_what_it_is(letter: str):
    """Above 8 KiB of header a client drops the answer now and then, and its code with it."""
    async with scaler_and_caller(a_board(chat=a_decision(7))) as keda:
        asked_for = reference(letter * 3000)
        refusals = {await keda.refusal(keda.is_active, asked_for) for _ in range(50)}

    ((code, details),) = refusals
    assert code is grpc.StatusCode.NOT_FOUND
    assert details.startswith(f"no policy default/{letter}")
    assert len(details.encode()) <= 2000


async def test_a_stream_whose_deadline_passes_is_let_go():
    board = a_board(chat=a_decision(7))
    meters = Meters(board, clock=FakeClock())
    async with scaler_and_caller(board, meters=meters) as keda:
        stream = Following(keda.stream_is_active(reference(), timeout=0.2))
        first, code = await stream.state(), await stream.end()
        async with asyncio.timeout(10):
            while "leadtime_keda_streams 0.0" not in meters.render().decode():
                await keda.count()
        counted = meters.render().decode()

    assert (first, code) == (True, grpc.StatusCode.DEADLINE_EXCEEDED)
    assert 'leadtime_keda_calls_total{code="CANCELLED",method="StreamIsActive"} 1.0' in counted
