"""Answers of a Prometheus as they are and as they should not be, word for word."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.read import read_exposition
from adapter.fleet.reading import Cause, Gap, Reading
from adapter.fleet.snapshot import FleetSnapshot
from adapter.fleet.units import Seconds, Timestamp
from adapter.sources.prometheus import PrometheusFleet, Question
from adapter.sources.prometheus_api import Access, PrometheusApi
from tests.build import T0
from tests.fakes import FakeClock
from tests.sources.prometheus_answers import (
    Store,
    a_series,
    an_engine,
    an_up,
    labels_of,
)
from tests.sources.servers import Answer, hanging, saying, serving


@asynccontextmanager
async def a_fleet(
    answer: Answer,
    *,
    replica_label: str | None = None,
    labels: dict[str, str] | None = None,
    access: dict[str, Any] | None = None,
    body_limit: int = 1_000_000,
) -> AsyncIterator[PrometheusFleet]:
    async with serving(answer) as url:
        given = Access(url.removesuffix("/metrics"), **(access or {"timeout": Seconds(5.0)}))
        fleet = PrometheusFleet(
            PrometheusApi(given, body_limit=body_limit),
            Question("vllm", Seconds(15.0), labels or {}, replica_label),
            partial(read_exposition, engine="vllm", model=None),
            clock=FakeClock(),
        )
        try:
            yield fleet
        finally:
            await fleet.close()


def samples(fleet: FleetSnapshot) -> dict[str, Reading | Gap]:
    return {one.name: one.sample for one in fleet.replicas}


def running(fleet: FleetSnapshot) -> dict[str, float | None]:
    return {one.uid: one.value(Metric.REQUESTS_RUNNING) for one in fleet.replicas}


async def the_gap(answer: Answer, **options: Any) -> Gap:
    """Return the gap that stands for the whole fleet."""
    async with a_fleet(answer, **options) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas
    assert isinstance(replica.sample, Gap)
    assert replica.name.startswith("prometheus http://127.0.0.1:")
    return replica.sample


async def test_a_scrape_is_read_with_its_own_time_and_the_one_before():
    store = Store([an_up("a")], an_engine("a"))

    async with a_fleet(store.answer) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas

    assert replica.uid == "inference/a"
    assert isinstance(replica.sample, Reading)
    assert replica.sample.at == T0 - 3
    assert replica.sample.values[Metric.GENERATION_TOKENS] == 250
    assert replica.previous is not None
    assert (replica.previous.at, replica.previous.values[Metric.GENERATION_TOKENS]) == (
        T0 - 18,
        100,
    )


async def test_the_questions_name_the_series_the_labels_and_two_intervals():
    store = Store([an_up("a")], an_engine("a"))

    async with a_fleet(store.answer, labels={"app": 'a"b\\c'}) as fleet:
        await fleet.snapshot(T0)

    asked = sorted(form["query"][0] for form in store.forms)
    assert 'up{app="a\\"b\\\\c"}' in asked
    (engines,) = [query for query in asked if not query.startswith("up{")]
    assert engines.endswith(',app="a\\"b\\\\c"}[30000ms]')
    assert "vllm:num_requests_waiting|" in engines
    assert "sglang" not in engines
    assert [form["partial_response"] for form in store.forms] == [["false"], ["false"]]


async def test_a_pair_that_scrapes_the_same_fleet_is_never_added_up():
    """Labels of the pair are on up as well; the member with the newest sample counts."""
    store = Store(
        [an_up("a", prometheus_replica="p-0"), an_up("a", "0", prometheus_replica="p-1")],
        [
            *an_engine("a", ago=9, running="4", prometheus_replica="p-0"),
            *an_engine("a", ago=3, running="6", prometheus_replica="p-1"),
        ],
    )

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert running(found) == {"inference/a": 6}


@pytest.mark.parametrize("label", ["replica", "prometheus", "prometheus_replica"])
async def test_a_pair_without_up_is_never_added_up_either(label: str):
    store = Store(
        [], [*an_engine("a", **{label: "one"}), *an_engine("a", running="5", **{label: "two"})]
    )

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert running(found) in ({"inference/a": 4}, {"inference/a": 5})


async def test_the_replicas_of_ray_behind_one_address_are_added_up():
    """There ``replica`` is the engine's own label, and no Prometheus's."""
    series = [
        a_series(
            "a", "num_requests_running", [(18, "1"), (3, "4")], replica=worker, WorkerId=worker
        )
        for worker in ("w1", "w2")
    ]
    for ups in ([an_up("a")], []):
        async with a_fleet(Store(ups, series).answer) as fleet:
            found = await fleet.snapshot(T0)

        assert running(found) == {"inference/a": 8}


async def test_a_label_that_the_scrape_renamed_gets_its_name_back():
    """A target label ``engine`` makes the engine's own ``exported_engine``: its ranks."""
    series = [
        a_series("a", "num_requests_running", [(3, "4")], engine="vllm", exported_engine=rank)
        for rank in ("0", "1")
    ]

    async with a_fleet(Store([an_up("a", engine="vllm")], series).answer) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas

    assert isinstance(replica.sample, Reading)
    assert set(replica.sample.ranks) == {"0", "1"}


async def test_pods_of_one_name_in_two_namespaces_are_two_replicas():
    """StatefulSets number their pods alike."""
    other = {"namespace": "other"}
    store = Store(
        [an_up("a"), an_up("a", **other)], [*an_engine("a"), *an_engine("a", running="9", **other)]
    )

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert running(found) == {"inference/a": 4, "other/a": 9}


async def test_the_replica_label_of_the_policy_is_used_and_what_lacks_it_left_out():
    store = Store(
        [an_up("a", group="g"), an_up("b")], [*an_engine("a", group="g"), *an_engine("b")]
    )

    async with a_fleet(store.answer, replica_label="group") as fleet:
        found = await fleet.snapshot(T0)

    assert list(running(found)) == ["inference/g"]


async def test_an_old_sample_is_a_gap_and_not_a_flat_line():
    """No newer scrape comes: after two intervals the reading is stale by its own time."""
    store = Store([an_up("a")], an_engine("a"))

    async with a_fleet(store.answer) as fleet:
        await fleet.snapshot(T0)
        same = await fleet.snapshot(Timestamp(T0 + 15))
        late = await fleet.snapshot(Timestamp(T0 + 30))

    assert same.replicas[0].previous is not None
    (sample,) = samples(late).values()
    assert isinstance(sample, Gap)
    assert sample.cause is Cause.STALE


async def test_a_target_that_is_up_without_a_sample_in_the_window_is_a_gap():
    store = Store([an_up("a"), an_up("b")], an_engine("a"))

    async with a_fleet(store.answer) as fleet:
        found = samples(await fleet.snapshot(T0))

    assert isinstance(found["b"], Gap)
    assert found["b"].cause is Cause.STALE
    assert "in the last 30 s: it is scraped less often" in found["b"].detail


async def test_other_jobs_of_the_same_labels_are_no_replicas():
    """A GPU exporter beside the engines, up or down."""
    gpus = {"job": "dcgm"}
    store = Store([an_up("a"), an_up("x", "0", **gpus), an_up("y", **gpus)], an_engine("a"))

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert list(running(found)) == ["inference/a"]


async def test_a_fleet_that_falls_silent_as_a_whole_keeps_its_count():
    """The job is known from before; at first sight, whatever is down counts."""
    store = Store([an_up("a"), an_up("b")], [*an_engine("a"), *an_engine("b")])

    async with a_fleet(store.answer) as fleet:
        await fleet.snapshot(T0)
        store.ups, store.engines = [an_up("a", "0"), an_up("b", "0"), an_up("x", "0", job="d")], []
        await fleet.snapshot(T0)
        later = samples(await fleet.snapshot(T0))
    async with a_fleet(store.answer) as fleet:
        at_first = samples(await fleet.snapshot(T0))

    assert sorted(later) == ["a", "b"]
    assert sorted(at_first) == ["a", "b", "x"]
    for sample in (*later.values(), *at_first.values()):
        assert isinstance(sample, Gap)
        assert sample.cause is Cause.UNREACHABLE


async def test_what_left_the_target_list_leaves_though_its_samples_are_young():
    store = Store([an_up("a")], [*an_engine("a"), *an_engine("b")])

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert list(running(found)) == ["inference/a"]


@pytest.mark.parametrize("value", ["NaN", "+Inf", "-Inf", "-1"])
async def test_what_is_no_number_is_missing_with_its_reason(value: str):
    store = Store([an_up("a")], an_engine("a", running=value))

    async with a_fleet(store.answer) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas

    assert isinstance(replica.sample, Reading)
    assert Metric.REQUESTS_RUNNING not in replica.sample.values
    assert Metric.REQUESTS_RUNNING in replica.sample.missing
    assert replica.value(Metric.REQUESTS_WAITING) == 2


async def test_a_series_that_ended_one_scrape_ago_is_not_in_the_last_one():
    store = Store(
        [an_up("a")],
        [*an_engine("a"), a_series("a", "kv_cache_usage_perc", [(18, "0.9")])],
    )

    async with a_fleet(store.answer) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas

    assert replica.value(Metric.KV_CACHE_USAGE) is None
    assert replica.previous is not None
    assert replica.previous.values[Metric.KV_CACHE_USAGE] == 0.9


async def test_one_scrape_alone_is_a_reading_without_one_before():
    store = Store([an_up("a")], [a_series("a", "num_requests_running", [(3, "4")])])

    async with a_fleet(store.answer) as fleet:
        (replica,) = (await fleet.snapshot(T0)).replicas

    assert replica.value(Metric.REQUESTS_RUNNING) == 4
    assert replica.previous is None


async def test_native_histograms_and_series_of_nobody_are_passed_over():
    nobody = {"metric": {"__name__": "vllm:num_requests_running"}, "values": [[T0, "9"]]}
    native = {"metric": {"__name__": "vllm:x", **labels_of("a")}, "histograms": [[T0, {}]]}
    store = Store([an_up("a"), {"metric": {"__name__": "up"}, "value": [T0, "1"]}], [])
    store.engines = [*an_engine("a"), nobody, native]

    async with a_fleet(store.answer) as fleet:
        found = await fleet.snapshot(T0)

    assert running(found) == {"inference/a": 4}


async def test_a_partial_answer_silences_every_replica_and_says_which_store_did():
    store = Store([an_up("a"), an_up("b")], [*an_engine("a"), *an_engine("b")])

    async with a_fleet(store.answer) as fleet:
        await fleet.snapshot(T0)
        store.warnings = ["No StoreAPIs matched for this query"]
        store.ups, store.engines = [an_up("a")], an_engine("a")
        partial_answer = samples(await fleet.snapshot(Timestamp(T0 + 1)))
        store.warnings = []
        store.ups, store.engines = [an_up("a"), an_up("b")], [*an_engine("a"), *an_engine("b")]
        whole = await fleet.snapshot(Timestamp(T0 + 2))

    assert sorted(partial_answer) == ["a", "b"]
    for sample in partial_answer.values():
        assert isinstance(sample, Gap)
        assert "partial (No StoreAPIs matched" in sample.detail
    assert running(whole) == {"inference/a": 4, "inference/b": 4}


REFUSALS = [
    (saying(b"", status="401 Unauthorized"), Cause.HTTP_STATUS, "wants credentials; set source."),
    (saying(b"<html>", status="403 Forbidden"), Cause.HTTP_STATUS, "answered 403 Forbidden: it w"),
    (saying(b"404 page not found", status="404 Not Found"), Cause.HTTP_STATUS, "Mimir's address"),
    (saying(b"", status="502 Bad Gateway"), Cause.HTTP_STATUS, "502 Bad Gateway, and does not say"),
    (
        saying(b"", status="302 Found", headers="Location: http://login/?token=geheim\r\n"),
        Cause.HTTP_STATUS,
        "'http://login/?token=***': redirects are not followed",
    ),
    (
        saying(b'{"status":"error","error":"too many samples"}', status="422 Unprocessable"),
        Cause.HTTP_STATUS,
        "answered 422 Unprocessable: too many samples",
    ),
    (
        saying(b'{"status":"error","error":"query timed out"}'),
        Cause.HTTP_STATUS,
        "says 'query timed out'",
    ),
    (saying(b"<!doctype html><title>Login"), Cause.NOT_METRICS, "an HTML page, no answer of the"),
    (saying(b""), Cause.NOT_METRICS, "an empty answer"),
    (saying(b'{"status": "success", "data": {"res'), Cause.NOT_METRICS, "damaged one: it begins"),
    (saying(b'{"status": "success", "data": []}'), Cause.NOT_METRICS, "no answer of the API"),
    (saying(b"x" * 5000), Cause.TOO_LARGE, "over 0.000953674 MiB"),
    (saying(b"half", length=100), Cause.UNREACHABLE, "broke in the middle of the answer"),
]


@pytest.mark.parametrize(("answer", "cause", "words"), REFUSALS)
async def test_what_is_no_answer_is_a_gap_with_the_cause_in_words(
    answer: Answer, cause: Cause, words: str
):
    gap = await the_gap(answer, body_limit=1000)

    assert gap.cause is cause
    assert words in gap.detail


async def test_no_answer_in_time_is_a_gap_and_says_what_allows_more():
    gap = await the_gap(hanging, access={"timeout": Seconds(0.05)})

    assert gap.cause is Cause.TIMEOUT
    assert "within 0.05 s" in gap.detail
    assert "source.prometheus.timeout" in gap.detail


async def test_null_for_nothing_as_go_writes_it_is_nothing():
    body = b'{"status":"success","data":{"resultType":"vector","result":null},"warnings":null}'

    gap = await the_gap(saying(body))

    assert gap.cause is Cause.NOT_METRICS  # the labels that are asked for next are no list


@pytest.mark.parametrize(
    ("labels", "names", "words"),
    [
        ({}, {}, "zero series of vllm, whatever the labels: it does not scrape the engines"),
        ({}, {"labels": ["__name__", "pod"]}, "series of vllm there were, but none now"),
        (
            {"namespace": "x"},
            {"labels": ["__name__", "job", "pod"]},
            "label namespace does not exist; found job, pod",
        ),
        (
            {"namespace": "inferense"},
            {"labels": ["namespace"], "label/namespace/values": ["inference", "web"]},
            "never 'inferense'; found 'inference', 'web'; did you mean 'inference'?",
        ),
        (
            {"pod": "x"},
            {"labels": ["pod"], "label/pod/values": [f"p{n}" for n in range(10)]},
            "'p7' and 2 more",
        ),
        (
            {"pod": "a", "job": "j"},
            {"labels": ["pod", "job"], "label/pod/values": ["a"], "label/job/values": ["j"]},
            "each of job='j', pod='a' is there, but no series of vllm carries all of them",
        ),
    ],
)
async def test_nothing_at_all_says_which_label_is_wrong(
    labels: dict[str, str], names: dict[str, list[str]], words: str
):
    store = Store([], [])
    store.names = names

    gap = await the_gap(store.answer, labels=labels)

    assert gap.cause is Cause.NO_ENGINE
    assert words in gap.detail


async def test_why_there_is_nothing_is_asked_once_a_minute():
    store = Store([], [])

    async with a_fleet(store.answer) as fleet:
        for later in (0, 15, 30, 60):
            await fleet.snapshot(Timestamp(T0 + later))

    assert len([path for path in store.paths if "labels" in path]) == 2


async def test_a_fleet_that_is_gone_is_a_gap_and_comes_back_with_rates():
    store = Store([an_up("a")], an_engine("a"))

    async with a_fleet(store.answer) as fleet:
        await fleet.snapshot(T0)
        ups, engines = store.ups, store.engines
        store.ups, store.engines = [], []
        (nobody,) = (await fleet.snapshot(T0)).replicas
        store.ups, store.engines = ups, engines
        (back,) = (await fleet.snapshot(T0)).replicas

    assert isinstance(nobody.sample, Gap)
    assert back.previous is not None


async def test_the_token_is_read_at_each_question_and_the_tenant_is_sent(tmp_path: Any):
    store = Store([an_up("a")], an_engine("a"))
    token = tmp_path / "token"
    access = {"token_file": token, "tenant": "team-a", "timeout": Seconds(5.0)}

    async with a_fleet(store.answer, access=access) as fleet:
        token.write_text("first\n")
        await fleet.snapshot(T0)
        token.write_text("second\n")
        await fleet.snapshot(T0)

    assert [b"Authorization: Bearer first" in head for head in store.heads] == [True] * 2 + [
        False
    ] * 2
    assert all(b"Authorization: Bearer second" in head for head in store.heads[2:])
    assert all(b"X-Scope-OrgID: team-a" in head for head in store.heads)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "token: No such file"),
        (b"", "token: no token in it"),
        (b"a\nb", "token: no token in it"),
        (b"\xff", "token: not ASCII text"),
    ],
)
async def test_a_token_that_cannot_be_sent_is_a_gap_that_names_the_file(
    tmp_path: Any, content: bytes | None, words: str
):
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)

    gap = await the_gap(Store([], []).answer, access={"token_file": token, "timeout": Seconds(5.0)})

    assert gap.cause is Cause.UNREACHABLE
    assert words in gap.detail
    assert "was not asked: source.prometheus.tokenFile" in gap.detail


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://no-such-host.invalid", "no such host (no-such-host.invalid)"),
        ("http://127.0.0.1:1", "no connection"),
        ("http://127.0.0.1:99999", "no address that could be asked"),
    ],
)
async def test_an_address_that_does_not_answer_is_a_gap(url: str, words: str):
    fleet = PrometheusFleet(
        PrometheusApi(Access(url, Seconds(5.0))),
        Question("vllm", Seconds(15.0)),
        partial(read_exposition, engine="vllm", model=None),
        clock=FakeClock(),
    )

    (replica,) = (await fleet.snapshot(T0)).replicas
    await fleet.close()

    assert isinstance(replica.sample, Gap)
    assert words in replica.sample.detail
