"""Traces: every format, every damage by its line, and the files handed over where they are."""

import contextlib
import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.fleet.units import Seconds
from adapter.simulator.synthetic import Play, Steady
from adapter.simulator.traces import (
    TRACES,
    Client,
    Row,
    TraceError,
    clients,
    deck_of,
    directory,
    requests,
    rows,
    servegen_deck,
    some_clients,
    together,
    trace,
)
from adapter.simulator.workload import Arrival

HERE = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LEADTIME_TRACES", HERE.parent / "shared" / "traces"))


def a_file(place: Path, name: str, text: str) -> Path:
    path = place / name
    path.write_text(text)
    return path


def as_tuples(found: list[Arrival]) -> list[tuple[float, int, int]]:
    return [(one.after, one.prompt_tokens, one.output_tokens) for one in found]


FORMATS = {
    "ours.csv": "timestamp_s,input_tokens,output_tokens\n0.0,374,44\n4.315,396,109\n",
    "azure.csv": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n"
        "2023-11-16 18:15:50.9955900,396,109\n"
    ),
    "azure2024.csv": (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,374,44\n"
        "2024-05-10 00:00:04.324930+00:00,396,109\n"
    ),
    "burst.csv": (
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
        "5,ChatGPT,374,44,418,Conversation log\n"
        "9.315,GPT-4,396,109,505,Conversation log\n"
    ),
    "mooncake.jsonl": (
        '{"timestamp": 1000, "input_length": 374, "output_length": 44, "hash_ids": [0, 1]}\n'
        "\n"
        '{"timestamp": 5315, "input_length": 396, "output_length": 109, "hash_ids": [0, 2]}\n'
    ),
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_requests(tmp_path, name):
    found = list(requests(a_file(tmp_path, name, FORMATS[name])))

    assert as_tuples(found) == [(0.0, 374, 44), (pytest.approx(4.315), 396, 109)]


def test_a_gzipped_trace_reads_the_same(tmp_path):
    path = tmp_path / "ours.csv.gz"
    path.write_bytes(gzip.compress(FORMATS["ours.csv"].encode()))

    assert len(list(requests(path))) == 2


def test_requests_are_read_as_they_are_asked_for(tmp_path):
    """The damage in the third row does not hide the first two: a week is never held at once."""
    text = FORMATS["ours.csv"] + "5.0,many,3\n"
    found = requests(a_file(tmp_path, "ours.csv", text))

    assert as_tuples([next(found), next(found)])[1][1] == 396
    with pytest.raises(TraceError, match=r"ours\.csv:4: input_tokens is 'many'"):
        next(found)


def test_a_request_without_an_answer_counts_as_one_token(tmp_path):
    text = "Timestamp,Model,Request tokens,Response tokens\n1,GPT-4,500,0\n"

    assert as_tuples(list(requests(a_file(tmp_path, "b.csv", text)))) == [(0.0, 500, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timestamp_s,input_tokens,output_tokens\n1,2\n", r":2: expected 3 values"),
        ("timestamp_s,input_tokens,output_tokens\n1,2,3,4\n", r":2: expected 3 values"),
        (
            "timestamp_s,input_tokens,output_tokens\n1,2,-3\n",
            r":2: output_tokens is '-3': expected a number, 0 or more",
        ),
        ("timestamp_s,input_tokens,output_tokens\n1,nan,3\n", r":2: input_tokens is 'nan'"),
        ("timestamp_s,input_tokens,output_tokens\n1,inf,3\n", r":2: input_tokens is 'inf'"),
        (
            "timestamp_s,input_tokens,output_tokens\n5,1,1\n3,1,1\n",
            r":3: 2 s before the row above: expected rising times",
        ),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n", r":2: TIMESTAMP is"),
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46,1\n", r":2: no value in column 'Gen"),
        (
            "time,prompt,answer\n1,2,3\n",
            r":2: columns time, prompt, answer: expected those of one format: timestamp_s",
        ),
    ],
)
def test_damage_in_a_csv_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(TraceError, match=r"t\.csv" + message):
        list(requests(a_file(tmp_path, "t.csv", text)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"timestamp": 1, "input_length": 2', r":1: .*: expected one JSON object per line"),
        ("[1, 2, 3]", r":1: '\[1, 2, 3\]': expected a JSON object"),
        ('{"timestamp": 1, "input_length": null, "output_length": 2}', r":1: no value in column"),
        ('{"timestamp": 1, "input_length": 5}', r":1: no value in column 'output_length'"),
    ],
)
def test_damage_in_json_lines_is_named_with_its_line(tmp_path, text, message):
    with pytest.raises(TraceError, match=r"m\.jsonl" + message):
        list(requests(a_file(tmp_path, "m.jsonl", text)))


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["timestamp_s", "input_tokens", "output_tokens", "TIMESTAMP", "x"]),
        st.one_of(st.text(max_size=8), st.floats(), st.none(), st.integers()),
    )
)
def test_a_row_is_a_request_or_a_trace_error(values):
    """Nothing that stands in a file raises anything else, and no request is empty."""
    row = Row(Path("t.csv"), 7, values)
    with contextlib.suppress(TraceError):
        at, prompt, output = row.request()

        assert at >= 0
        assert min(prompt, output) >= 1


def test_a_missing_file_says_what_to_set(tmp_path):
    with pytest.raises(TraceError, match=r"gone\.csv: No such file.*set LEADTIME_TRACES"):
        list(rows(tmp_path / "gone.csv"))


def test_a_missing_directory_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("LEADTIME_TRACES", str(tmp_path / "gone"))

    with pytest.raises(TraceError, match="no directory of traces: set LEADTIME_TRACES to one, or"):
        trace("azure-conv")


def test_the_default_directory_is_beside_the_repository(monkeypatch, tmp_path):
    (tmp_path / "shared" / "traces").mkdir(parents=True)
    (tmp_path / "main").mkdir()
    monkeypatch.chdir(tmp_path / "main")
    monkeypatch.delenv("LEADTIME_TRACES", raising=False)

    assert directory() == Path("../shared/traces")


def test_an_unknown_trace_is_named_with_the_known_ones(tmp_path):
    with pytest.raises(TraceError, match="no trace 'azure': there are azure-conv, azure-code"):
        trace("azure", at=tmp_path)


def test_clients_are_read_with_their_windows(tmp_path):
    text = "client,timestamp_s,rate_rps,cv\nb,0,1.5,2\na,600,3,1\nb,600,0.5,4\n"

    found = clients(a_file(tmp_path, "c.csv", text))

    assert [client.name for client in found] == ["a", "b"]
    assert found[1].windows == {0.0: (1.5, 2.0), 600.0: (0.5, 4.0)}
    assert found[1].requests == 2.0


def test_clients_together_add_up_and_mix_their_burstiness_by_rate():
    """1 a second with cv 2 and 3 with cv 1: index (1 x 4 + 3 x 1) / 4; regular ones count as 1."""
    one = Client("one", {0.0: (1.0, 2.0), 600.0: (1.0, 0.5)})
    two = Client("two", {0.0: (3.0, 1.0)})

    curve = together([one, two], length=Seconds(1800.0), window=Seconds(600.0))

    assert curve.points == ((0.0, 4.0), (600.0, 1.0), (1200.0, 0.0))
    assert curve.dispersions == (1.75, 1.0, 1.0)


def test_whole_clients_are_chosen_up_to_the_share():
    many = [Client(str(n), {0.0: (float(rate), 1.0)}) for n, rate in enumerate([50, *[1] * 50])]

    chosen = some_clients(many, share=0.2, seed=1)

    assert sum(client.requests for client in chosen) == 20
    assert chosen == some_clients(reversed(many), share=0.2, seed=1)
    assert "0" not in {client.name for client in chosen}
    assert some_clients(many, share=0.2, seed=2) != chosen


needs_traces = pytest.mark.skipif(
    not SHARED.is_dir(),
    reason=f"no traces in {SHARED}: set LEADTIME_TRACES to the directory of the public traces",
)


@needs_traces
@pytest.mark.parametrize(
    ("name", "days", "million"),
    [
        ("azure-conv", 7, 27.304),
        ("azure-code", 7, 16.804),
        ("servegen-m-small", 14, 1420),
        ("servegen-m-large", 14, 237),
        ("nyc-taxi", 215, 156),
    ],
)
def test_the_curves_hold_as_many_requests_as_were_published(name, days, million):
    """Azure's totals are the published row counts, to 1 %; the others their files' own sums."""
    found = trace(name, at=SHARED)
    step = 300.0

    total = step * sum(
        found.curve.rate(n * step + step / 2) for n in range(round(days * 86400 / step))
    )

    assert found.curve.length == pytest.approx(days * 86400, rel=0.01)
    assert total / 1e6 == pytest.approx(million, rel=0.012)
    assert found.name == name
    assert found.remark


@needs_traces
def test_azures_weeks_begin_on_their_own_days():
    """Conversations on Sunday the 12th, code on Friday the 10th of May 2024, both at 00:00 UTC."""
    assert trace("azure-conv", at=SHARED).begin == 1_715_472_000
    assert trace("azure-code", at=SHARED).begin == 1_715_299_200


@needs_traces
@pytest.mark.parametrize(
    ("name", "prompt", "output"), [("azure-conv", 1611, 101), ("azure-code", 2489, 28)]
)
def test_azures_decks_have_the_published_means(name, prompt, output):
    """To 4 %: quantiles stand 1 % apart, and half a percent at the end."""
    deck = trace(name, at=SHARED).deck

    assert sum(p for p, _ in deck) / len(deck) == pytest.approx(prompt, rel=0.01)
    assert sum(o for _, o in deck) / len(deck) == pytest.approx(output, rel=0.04)


@needs_traces
def test_requests_of_2023_are_a_correlated_deck():
    deck = deck_of(SHARED / "azure2023_conv_1h.csv")

    assert len(deck) == 19_366
    assert sum(p for p, _ in deck) / len(deck) == pytest.approx(1155, rel=0.01)


@needs_traces
def test_servegens_clients_scale_the_load_down_and_stay_bursty():
    every = clients(SHARED / "servegen_m-small_clients_10min.csv.gz")
    few = some_clients(every, share=0.02, seed=1)

    curve = together(few, length=Seconds(14 * 86400.0), window=Seconds(600.0))

    total = sum(client.requests for client in every)
    assert len(every) == 43
    assert sum(client.requests for client in few) / total == pytest.approx(0.02, rel=0.4)
    assert max(curve.dispersions) > 3


@needs_traces
def test_a_servegen_trace_plays_with_its_own_lengths():
    found = trace("servegen-m-large", at=SHARED)
    play = Play(
        rates=found.curve.times(0.1),
        decks=Steady(servegen_deck(SHARED, "deepseek-r1")),
        length=Seconds(60.0),
        seed=1,
    )

    outputs = [arrival.output_tokens for arrival in play.arrivals()]

    assert sum(outputs) / len(outputs) == pytest.approx(1527, rel=0.15)
    assert set(TRACES) >= {found.name}
