"""The catalogue of engines, and what every vocabulary in it must keep to."""

from pathlib import Path

import pytest

import adapter.fleet.engines as catalogue
from adapter.fleet.dialect import Dialect, Name, Source, Spelling
from adapter.fleet.engines import ENGINES
from adapter.fleet.metrics import Metric
from tests.fleet.expositions import a_body, reading_of

each = pytest.mark.parametrize("dialect", ENGINES, ids=lambda dialect: dialect.engine)


def all_alternatives(dialect: Dialect) -> list[tuple[Name, ...]]:
    sources = [*dialect.sources.values(), *([dialect.ttft] if dialect.ttft else [])]
    return [names for source in sources for names in (source.names, *source.plus)]


def test_every_engine_file_is_in_the_catalogue_and_under_its_own_name():
    """A file that is forgotten in ENGINES would be an engine that nobody reads."""
    files = {path.stem for path in Path(catalogue.__file__).parent.glob("*.py")} - {"__init__"}

    assert {dialect.engine for dialect in ENGINES} == files
    assert len(ENGINES) == len(files)


@each
def test_names_of_one_metric_are_not_repeated(dialect: Dialect):
    for names in all_alternatives(dialect):
        assert len({str(name) for name in names}) == len(names)


@each
def test_only_a_name_with_a_newer_one_before_it_goes_away(dialect: Dialect):
    """The warning of a deprecated name says what replaces it and since when."""
    for names in all_alternatives(dialect):
        assert not names[0].until, names[0]
        assert all(names[0].since for name in names if name.until), names


@each
def test_releases_go_back_along_the_names(dialect: Dialect):
    """Newest first, among names of one exporter: Triton's backends have releases of their own."""
    for names in all_alternatives(dialect):
        for word in {name.series[:3] for name in names}:
            dated = [name.since for name in names if name.since and name.series.startswith(word)]
            releases = [tuple(map(int, since.split("."))) for since in dated]
            assert releases == sorted(releases, reverse=True), names


@each
def test_queue_running_and_kv_are_read_or_the_engine_is_known_to_lack_them(dialect: Dialect):
    """TGI exports no KV usage; nothing else may be forgotten."""
    vital = {Metric.REQUESTS_RUNNING, Metric.REQUESTS_WAITING, Metric.KV_CACHE_USAGE}
    lacking = {Metric.KV_CACHE_USAGE} if dialect.engine == "tgi" else set()

    assert vital - dialect.sources.keys() == lacking


@each
def test_every_spelling_is_told_by_its_own_marks(dialect: Dialect):
    """A body in one spelling is read in that spelling, whatever the others' marks are."""
    for spelling in dialect.spellings:
        spelled = dialect.spelled(spelling.prefix)
        for mark in spelling.marks:
            assert any(
                name.startswith((mark.rstrip("{"), spelling.prefix)) for name in spelled.wanted
            )


def test_respelling_reaches_parts_ratios_and_what_hides():
    """Every name of a dialect is written anew, and nothing that lacks the prefix."""
    dialect = Dialect(
        engine="x",
        spellings=(Spelling("x:", marks=("x:",)), Spelling("y_", marks=("y_",))),
        sources={
            Metric.REQUESTS_WAITING: Source(
                (Name("x:a", over=Name("x:b"), minus=Name("x:c")),),
                plus=((Name("x:d"),),),
                hidden_by=("x:e", "other"),
            )
        },
        ttft=Source((Name("x:t"),)),
    )

    spelled = dialect.spelled("y_")

    assert spelled.wanted >= {"y_a", "y_b", "y_c", "y_d", "y_e", "other", "y_t_bucket", "y_t_sum"}
    assert not any(name.startswith("x:") for name in spelled.wanted)
    assert dialect.spelled("x:") is dialect


def test_a_name_reads_as_a_formula():
    ratio = Name("used", {"kind": "a"}, over=Name("all"))

    assert str(ratio) == 'used{kind="a"} / all'
    assert str(Name("in", minus=Name("out"))) == "in - out"


@pytest.mark.parametrize(
    ("line", "engine"),
    [
        ("nv_inference_request_success{model='m'} 1".replace("'", '"'), "triton"),
        ('vllm:num_requests_running{model_name="m"} 1', "vllm"),
        ('num_requests_running{model_name="m"} 1', "vllm"),
        ('sglang:num_running_reqs{model_name="m"} 1', "sglang"),
        ('sglang_num_running_reqs{model_name="m"} 1', "sglang"),
        ('trtllm_num_requests_running{model_name="m"} 1', "trtllm"),
        ('trtllm:num_requests_running{model_name="m"} 1', "trtllm"),
        ('lmdeploy:num_requests_running{model_name="m"} 1', "lmdeploy"),
        ("tgi_batch_current_size 1", "tgi"),
        ('dynamo_component_requests_total{model="m"} 1', "dynamo"),
    ],
)
def test_the_engine_is_told_from_its_series(line: str, engine: str):
    assert reading_of(a_body(line)).engine == engine


@pytest.mark.parametrize("wrapper", ["tgi_queue_size 0", "dynamo_component_requests_total 4"])
def test_what_passes_vllm_s_series_on_is_read_as_vllm(wrapper: str):
    """IBM's TGI adapter and Dynamo's workers write their own series beside: one engine, once."""
    reading = reading_of(a_body(wrapper, 'vllm:num_requests_waiting{model_name="m"} 7'))

    assert (reading.engine, reading.values[Metric.REQUESTS_WAITING]) == ("vllm", 7)
