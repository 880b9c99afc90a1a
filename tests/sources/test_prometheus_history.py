"""The past out of a Prometheus: a real one with a day that was written for it."""

import shutil
import subprocess
from collections.abc import Iterator

import pytest

from adapter.fleet.metrics import Metric
from adapter.fleet.units import Seconds, Timestamp
from adapter.scaling.history import BIN, WorkBin, WorkHistory
from adapter.sources.clock import SystemClock
from adapter.sources.prometheus_api import Access, PrometheusApi
from adapter.sources.prometheus_history import CHUNK, promql, work_bins
from tests.sources.prometheus_answers import Store
from tests.sources.prometheus_server import Exporters, Prometheus, a_prometheus
from tests.sources.servers import serving

END = Timestamp(SystemClock().now() // 3600 * 3600 - 4 * 3600)
BEGIN = Timestamp(END - 12 * 3600)
STEP = 60
GAP = range(4 * 3600, 5 * 3600)
"""Seconds after the begin in which nobody scraped."""

RESTART = 8 * 3600
LABELS = {"namespace": "past"}


def a_day() -> str:
    """Return 12 hours of two pods, seen by a pair: 2 requests, 600 and 100 tokens a second each.

    A third of the prompts is cached. One pod restarts after 8 hours; in the last hour, one more
    request a minute waits on each.
    """
    lines = []
    for pod in ("a", "b"):
        for name, each in (
            ("vllm:request_success_total", 2.0),
            ("vllm:prompt_tokens_total", 600.0),
            ("vllm:prefix_cache_hits_total", 200.0),
            ("vllm:generation_tokens_total", 100.0),
            ("vllm:num_requests_waiting", 0.0),
        ):
            for replica in ("p-0", "p-1"):
                labels = (
                    f'model_name="m",namespace="past",pod="{pod}",prometheus_replica="{replica}"'
                )
                for after in range(0, int(END - BEGIN) + 1, STEP):
                    if after in GAP:
                        continue
                    counted = after - RESTART if pod == "b" and after > RESTART else after
                    value = each * counted
                    if name.endswith("waiting"):
                        value = max(0, after - 11 * 3600) / 60
                    lines.append(f"{name}{{{labels}}} {value} {BEGIN + after:.0f}")
    lines += [f'up{{namespace="past",pod="a",prometheus_replica="p-0"}} 1 {END:.0f}']
    return "\n".join([*lines, "# EOF", ""])


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    path = tmp_path_factory.mktemp("history")
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool on the PATH: install Prometheus to test the history against it")
    (path / "day.txt").write_text(a_day())
    backfill = ["tsdb", "create-blocks-from", "openmetrics", "day.txt", "data"]
    subprocess.run([promtool, *backfill], cwd=path, check=True, capture_output=True)
    exporters = Exporters()
    try:
        with a_prometheus(path, exporters, {}) as running:
            yield running
    finally:
        exporters.close()


async def asked(
    url: str, since: float, until: float, **options: object
) -> tuple[tuple[WorkBin, ...], int]:
    """Return the bins, and how many questions they took."""
    api = PrometheusApi(Access(url, Seconds(10.0)))
    span = {"since": Timestamp(since), "until": Timestamp(until)}
    try:
        found = await work_bins(
            api,
            engine="vllm",
            labels=LABELS,
            **span,
            **options,  # type: ignore[arg-type]
        )
    finally:
        await api.close()
    return found, api.questions


@pytest.mark.slow
async def test_a_day_comes_back_as_it_was_written(store: Prometheus):
    """Cached prompts are taken off, a restart is no work, and the gap is masked."""
    bins, questions = await asked(store.url, BEGIN + 1, END + 100, model="m")

    assert questions == 7
    assert [one.start for one in bins] == [BEGIN + BIN * n for n in range(1, 144)]
    known = [one for one in bins if not one.masked]
    assert 130 <= len(known) <= 133
    masked = {one.start - BEGIN for one in bins if one.masked}
    assert masked
    assert all(GAP.start <= after < GAP.stop for after in masked)
    whole = [one for one in known if not GAP.start - BIN <= one.start - BEGIN <= GAP.stop]
    assert len(whole) > 125
    for one in whole:
        waiting = 2 * 5 if one.start - BEGIN >= 11 * 3600 else 0
        assert one.requests == pytest.approx(2 * 2 * BIN + waiting, rel=0.15)
        assert one.prompt_tokens == pytest.approx(2 * 400 * BIN, rel=0.15)
        assert one.output_tokens == pytest.approx(2 * 100 * BIN, rel=0.15)
    calm = whole[20]
    assert (calm.requests, calm.output_tokens) == pytest.approx((1200, 60_000), rel=0.001)
    last = bins[-1]
    assert last.requests == pytest.approx(1210, rel=0.001)
    history = WorkHistory().with_bins(bins, keep=Seconds(14 * 86_400.0))
    assert len(history) >= len(known)


@pytest.mark.slow
async def test_a_model_that_was_not_there_has_no_history(store: Prometheus):
    bins, _ = await asked(store.url, BEGIN, END, model="other")

    assert len(bins) == 144
    assert all(one.masked and one.requests is None for one in bins)


async def test_weeks_are_asked_one_by_one_and_progress_is_told():
    """Four weeks: four questions for each of six metrics, and one for the pair's labels."""
    store, shares = Store([], []), list[float]()
    async with serving(store.answer) as url:
        weeks = 4 * CHUNK * BIN
        bins, questions = await asked(url.removesuffix("/metrics"), 0, weeks, told=shares.append)

    assert len(bins) == 4 * CHUNK
    assert questions == 25
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    steps = [form for form in store.forms if "step" in form]
    assert max(float(f["end"][0]) - float(f["start"][0]) for f in steps) <= 11_000 * BIN
    assert {form["step"][0] for form in steps} == {"300"}


def test_of_several_names_the_newest_counts_and_parts_are_added():
    text = promql(Metric.PROMPT_TOKENS, "sglang", {"namespace": "n"}, "m", ("replica",))

    newest, older = 'mode="prefill_compute"', "sglang:prompt_tokens_total"
    assert text.index(newest) < text.index(older) < text.index('mode="prefill_cache"')
    assert "or vector(0)" in text
    assert 'model_name="m",namespace="n",priority=~"|"' in text
    assert "max without (moe_ep_rank, pid, pp_rank, replica, tp_rank) (increase(" in text


def test_a_gauge_that_holds_another_is_written_without_it():
    text = promql(Metric.REQUESTS_RUNNING, "dynamo", {})

    assert "dynamo_frontend_inflight_requests" in text
    assert ' - sum({__name__="dynamo_frontend_queued_requests"})' in text
    assert "increase" not in text


def test_what_an_engine_does_not_count_is_not_asked_for():
    assert not promql(Metric.CACHED_PROMPT_TOKENS, "triton", {})
