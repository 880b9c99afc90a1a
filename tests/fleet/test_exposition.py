"""The prefilter must say what the library says, only sooner, and only of what is wanted."""

import math
import time
import tracemalloc

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from adapter.fleet.engines import ENGINES
from adapter.fleet.exposition import (
    ExpositionError,
    Sample,
    Series,
    cut_short,
    has_samples,
    parse,
    select,
)
from tests.fleet.expositions import FIXTURES, a_body, recorded

NAMES = ("vllm:a", "vllm:a_total", "vllm:ab", "nv_x", "nv_x_bucket", "up", "b:c_created")
WANTED = frozenset(NAMES[::2])


def seen(samples: list[Sample]) -> list[tuple[str, tuple[tuple[str, str], ...], str]]:
    """Return samples in a form that compares, NaN included, in any order of the series."""
    return sorted(
        (one.series.name, tuple(sorted(one.series.labels.items())), repr(one.value))
        for one in samples
    )


def by_library(body: bytes) -> list[Sample]:
    """Return what the library makes of every series, under the names of the text.

    It appends ``_total`` to the samples of a counter whose TYPE line lacks it; without comments
    every sample keeps its name.
    """
    text = "\n".join(
        line for line in body.decode().split("\n") if not line.lstrip(" \t").startswith("#")
    )
    return [
        Sample(Series(sample.name, sample.labels), float(sample.value))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    ]


label_values = st.text(
    st.sampled_from('ab {}=",\\\n#é') | st.characters(codec="utf-8", exclude_categories=["Cc"]),
    max_size=8,
)
numbers = st.one_of(
    st.integers(-5, 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["NaN", "Nan", "+Inf", "-Inf", "1e3", "0", "-1.0"]),
)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def sample_lines(draw: st.DrawFn) -> str:
    """Draw a sample line: any label values, odd spacing, perhaps a timestamp or an exemplar."""
    name = draw(st.sampled_from(NAMES))
    labels = draw(st.dictionaries(st.sampled_from(["le", "m", "x_y"]), label_values, max_size=3))
    comma = draw(st.sampled_from([",", ", ", " ,"]))
    inside = comma.join(f'{label}="{escaped(value)}"' for label, value in labels.items())
    braces = f"{{{inside}{draw(st.sampled_from(['', ',']))}}}" if labels else ""
    gap = draw(st.sampled_from([" ", "  "]))
    timestamp = draw(st.sampled_from(["", "", " 1796092600123"]))
    exemplar = draw(st.sampled_from(["", "", ' # {trace_id="a b"} 0.5', ' # {t="}"} 1 1.5']))
    lead = draw(st.sampled_from(["", "", "", " ", "\t"]))
    trail = draw(st.sampled_from(["", "", " ", "\r"]))
    return f"{lead}{name}{braces}{gap}{draw(numbers)}{timestamp}{exemplar}{trail}"


comment_lines = st.sampled_from(
    [
        "# HELP vllm:a vllm:a 1.0",
        "# HELP nv_x looks like\\nnv_x 7",
        "# TYPE vllm:a gauge",
        "# TYPE nv_x counter",
        "#vllm:a 3",
        " # vllm:ab 4",
        "",
        "# EOF",
    ]
)


@pytest.mark.slow
@given(st.lists(sample_lines() | comment_lines, max_size=12))
@example(['vllm:a{m="x"} 1', 'vllm:a{m="x"} 2'])
@example(['vllm:a{m="x"} 1 1796092600123', 'vllm:a{m="x"} 1'])
@settings(max_examples=200, deadline=None)
def test_selecting_is_the_library_and_a_filter(lines: list[str]):
    """Escapes, commas and braces in values, spacing, CRLF, duplicates, timestamps, exemplars."""
    body = a_body(*lines)
    wanted = [one for one in by_library(body) if one.series.name in WANTED]

    for _ in ("cold", "warm"):
        assert seen(select(body, WANTED)) == seen(wanted)


@pytest.mark.slow
def test_on_every_recorded_dump_selecting_is_the_library_and_a_filter():
    """All dumps, each with every engine's wanted series."""
    dumps = sorted(FIXTURES.glob("*.prom"))
    if not dumps:
        pytest.skip(f"no recorded dumps: {FIXTURES} is not there, see LEADTIME_SHARED")

    for path in dumps:
        body = path.read_bytes()
        everything = by_library(body)
        for dialect in ENGINES:
            wanted = [one for one in everything if one.series.name in dialect.wanted]
            assert seen(select(body, dialect.wanted)) == seen(wanted), path


def test_parsing_everything_reads_every_sample():
    body = a_body("# TYPE nv_x counter", 'nv_x{m="a"} 24', "up NaN")

    samples = parse(body)

    assert [one.series.name for one in samples] == ["nv_x_total", "up"]
    assert samples[0].value == 24.0
    assert math.isnan(samples[1].value)


def test_names_stand_as_in_the_text_and_not_as_the_library_completes_them():
    """Triton's counters lack ``_total``; the library appends it, and 24 stays a float."""
    body = a_body("# TYPE nv_x counter", 'nv_x{m="a"} 24')

    (sample,) = select(body, frozenset({"nv_x"}))

    assert (sample.series.name, sample.value) == ("nv_x", 24.0)
    assert isinstance(sample.value, float)


def test_a_name_that_begins_like_a_wanted_one_is_not_wanted():
    body = a_body("vllm:a 1", "vllm:ab 2", "vllm:a:b 3", "vllm:a_total 4", "xvllm:a 5")

    samples = select(body, frozenset({"vllm:a"}))

    assert [one.value for one in samples] == [1.0]


def test_the_first_line_counts_like_any_other():
    assert [one.value for one in select(b"up 1", frozenset({"up"}))] == [1.0]
    assert [one.value for one in select(b"up 1\nup 2\n", frozenset({"up"}))] == [1.0, 2.0]
    assert select(b"", frozenset({"up"})) == []


def test_quoted_names_of_prometheus_3_are_read():
    (sample,) = select(a_body('{"vllm:a",m="x"} 3'), WANTED)

    assert (sample.series.name, sample.series.labels, sample.value) == ("vllm:a", {"m": "x"}, 3.0)


def test_equal_series_are_one_object_however_they_are_written():
    body = a_body('vllm:a{m="x",le="1"} 1', 'vllm:a{le="1", m="x"}  2', 'vllm:a{le="1",m="x",} 3')

    first, *others = select(body, WANTED)

    assert all(other.series is first.series for other in others)


@pytest.mark.parametrize(
    "line",
    [
        'vllm:a{m="x"} abc',
        'vllm:a{m="x"} 1_000',
        'vllm:a{m="x} 1',
        'vllm:a{m="x",m="y"} 1',
        "vllm:a",
        'vllm:a{m="x"}',
        "vllm:a{m=x} 1",
        " vllm:a one",
        "vllm:a  " + "9" * 400,
    ],
)
def test_a_wanted_line_that_cannot_be_read_is_an_error_that_quotes_it(line: str):
    with pytest.raises(ExpositionError, match="cannot read the line") as error:
        select(a_body("up 1", line), WANTED)

    assert line.strip()[:20] in str(error.value)


def test_a_line_that_is_not_utf_8_is_an_error_and_no_crash():
    with pytest.raises(ExpositionError, match="cannot read the line"):
        select(b'vllm:a{m="\xff"} 1\n', WANTED)
    with pytest.raises(ExpositionError):
        parse(b'vllm:a{m="\xff"} 1\n')


def test_a_broken_line_that_nobody_wants_is_not_looked_at():
    """One bad family of a plugin must not blind the queue."""
    body = a_body("plugin{m= what", "vllm:a 3")

    assert [one.value for one in select(body, WANTED)] == [3.0]


@pytest.mark.parametrize(
    ("body", "cut"),
    [
        (b"up 1\n", False),
        (b"up 1\n# EOF", False),
        (b"up 1\n# EOF\n", False),
        (b"up 1", False),
        (b"up 1\nup{m=", True),
        (b"up 1\nup", True),
        (b"up 1\n# HELP up Wheth", True),
        (b"", False),
        (b"up 1\n\n", False),
    ],
)
def test_a_body_that_stops_inside_a_line_was_cut(body: bytes, cut: bool):  # noqa: FBT001 - a table
    assert cut_short(body) is cut


@pytest.mark.parametrize(
    ("body", "has"),
    [
        (b"# comment\nup 1\n", True),
        (b"# TYPE up gauge\n", True),
        (b'{"detail":"Not Found"}', False),
        (b"<html>\n<body>x</body>", False),
        (b"\x1f\x8b\x08\x00", False),
        (b"", False),
    ],
)
def test_metrics_are_told_from_other_text(body: bytes, has: bool):  # noqa: FBT001 - a table
    assert has_samples(body) is has


def test_absurdly_long_lines_are_refused_at_once_and_leave_nothing_behind():
    """100 bodies with a label of 50 kB, all different: the library alone takes 20 s and 5 MB."""
    bodies = [a_body(f'vllm:a{{m="{"x" * 50_000}{n}"}} {n}') for n in range(100)]

    tracemalloc.start()
    begun = time.process_time()
    for body in bodies:
        with pytest.raises(ExpositionError, match="bytes in one line"):
            select(body, WANTED)
    spent = time.process_time() - begun
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert spent < 1.0
    assert held < 1_000_000


def test_a_long_line_of_a_series_that_nobody_wants_does_not_matter():
    body = a_body(f'info{{m="{"x" * 50_000}"}} 1', "vllm:a 3")

    assert [one.value for one in select(body, WANTED)] == [3.0]


@pytest.mark.slow
def test_50_mb_are_read_in_seconds_and_within_the_memory_of_what_is_wanted():
    """50 MB with one wanted line in 20,000: under 3 s, and under 5 MB beside the body."""
    noise = b"".join(b'noise_bucket{le="%d",m="abcdefgh"} 12345.0\n' % i for i in range(20_000))
    body = (noise + b'vllm:a{m="x"} 3\n') * (50_000_000 // len(noise) + 1)
    assert len(body) > 50_000_000

    tracemalloc.start()
    begun = time.process_time()
    samples = select(body, WANTED)
    spent = time.process_time() - begun
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(samples) == len(body) // len(noise)
    assert spent < 3.0
    assert peak < 5_000_000


@pytest.mark.slow
def test_the_prefilter_is_20_times_faster_than_the_library_on_a_vllm_body():
    """Warm, 50 kB, best of 5: measured 0.15 ms against 7.4 to 8.8 ms, some 55 times."""
    body = recorded("vllm-0.32.0-real_cpu-under_load_1")
    wanted = next(dialect.wanted for dialect in ENGINES if dialect.engine == "vllm")
    select(body, wanted)

    fast = min(_seconds(lambda: select(body, wanted), times=50) for _ in range(5))
    slow = min(_seconds(lambda: parse(body), times=3) for _ in range(5))

    assert slow / fast > 20


def _seconds(work, times: int) -> float:
    begun = time.process_time()
    for _ in range(times):
        work()
    return (time.process_time() - begun) / times
