"""Loads by name and from files: the format is told by the columns, damage by its line."""

import os
from pathlib import Path

import pytest

from adapter.fleet.units import Seconds
from adapter.simulator.backtest.load import Drawn, Requests
from adapter.simulator.backtest.opening import open_load
from adapter.simulator.traces import TraceError

HERE = Path(__file__).parents[3]
SHARED = Path(os.environ.get("LEADTIME_TRACES", HERE.parent / "shared" / "traces"))
MONDAY = 1_715_558_400.0

AZURE = (
    "TIMESTAMP,ContextTokens,GeneratedTokens\n"
    "2023-11-16 18:15:46.6805900,374,44\n"
    "2023-11-16 18:15:50.9951690,396,109\n"
)
MOONCAKE = (
    '{"timestamp": 0, "input_length": 10, "output_length": 2}\n'
    '{"timestamp": 2000, "input_length": 20, "output_length": 3}\n'
)
WEEK = (
    "timestamp_s,requests_per_min,input_tokens_per_min,output_tokens_per_min\n"
    "0,60,60000,6000\n"
    "432,120,120000,12000\n"
)
SERVEGEN = (
    "timestamp_s,requests,rate_rps,idc,input_tokens_mean,output_tokens_mean\n"
    "0,600,1,1,900,90\n"
    "600,1200,2,1,,\n"
)
BINS = (
    "start_s,seconds,requests,prompt_tokens,output_tokens,masked\n"
    "1764590400,300,30,3000,300,\n"
    "1764590700,300,0,0,0,true\n"
    "1764591000,300,30,3000,300,0\n"
)


def a_file(place: Path, text: str, name: str = "load.csv") -> str:
    (place / name).write_text(text)
    return str(place / name)


def test_a_shipped_load_says_that_it_is_none_of_the_real_ones():
    load = open_load("office-week")

    assert (load.begin, load.length) == (MONDAY, 7 * 86_400)
    assert load.remarks == ("A synthetic load: no real traffic is in it.",)


def test_azures_requests_keep_their_date(tmp_path):
    load = open_load(a_file(tmp_path, AZURE))

    assert isinstance(load, Requests)
    assert [(one.prompt_tokens, one.output_tokens) for one in load.every] == [(374, 44), (396, 109)]
    assert load.begin == pytest.approx(1_700_158_546.68, abs=0.01)
    assert load.length == pytest.approx(5.31, abs=0.01)
    assert load.remarks == ()


def test_moncakes_lines_have_no_date_and_it_is_said(tmp_path):
    load = open_load(a_file(tmp_path, MOONCAKE, "mooncake.jsonl"))

    assert load.begin == MONDAY
    assert "no date" in load.remarks[0]


def test_a_week_of_rates_is_a_curve_with_its_lengths(tmp_path):
    load = open_load(a_file(tmp_path, WEEK))

    assert isinstance(load, Drawn)
    assert load.rates.rate(216.0) == 1.0
    assert load.length == 864.0
    assert "means of each bin" in load.remarks[-1]


def test_servegen_without_token_means_has_a_chats(tmp_path):
    load = open_load(a_file(tmp_path, SERVEGEN))

    assert isinstance(load, Drawn)
    cards = load.decks.deck(900.0)
    assert sum(prompt for prompt, _ in cards) / len(cards) == pytest.approx(1200, rel=0.03)


def test_bins_with_a_mask_are_gaps(tmp_path):
    load = open_load(a_file(tmp_path, BINS))

    assert load.begin == 1_764_590_400
    assert load.gaps == ((1_764_590_700, 1_764_591_000),)


def test_the_format_may_be_said(tmp_path):
    both = (
        "timestamp_s,requests_per_min,input_tokens_per_min,output_tokens_per_min,"
        "input_tokens,output_tokens\n0,60,6,6,1,1\n1,60,6,6,2,2\n"
    )

    assert isinstance(open_load(a_file(tmp_path, both)), Drawn)
    assert isinstance(open_load(a_file(tmp_path, both), form="requests"), Requests)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no row"),
        ("timestamp_s,input_tokens,output_tokens\n", "no row"),
        ("a,b\n1,2\n", "expected those of one format"),
        (WEEK.replace("432", "0"), "no later than the row before"),
        (WEEK.replace("432,120", "432,many"), "requests_per_min is 'many'"),
        (WEEK[: WEEK.index("432")], "expected two or more"),
        (BINS.replace("1764590700,300", "1764590700,0"), "seconds is 0"),
        (BINS.replace("1764591000", "1764590400"), "begins before the last one"),
        (BINS.replace(",30,", ",0,"), "no requests"),
    ],
)
def test_damage_is_told_in_one_sentence_with_the_file(tmp_path, text, said):
    with pytest.raises(TraceError, match=said) as error:
        open_load(a_file(tmp_path, text))

    assert "load.csv" in str(error.value)
    assert "\n" not in str(error.value)


def test_bins_without_a_row_are_refused(tmp_path):
    header = BINS.splitlines()[0] + "\n"

    with pytest.raises(TraceError, match="nothing to play"):
        open_load(a_file(tmp_path, header), form="bins")
    with pytest.raises(TraceError, match="nothing to play"):
        open_load(a_file(tmp_path, header), form="requests")


def test_an_unknown_name_is_told_what_there_is():
    with pytest.raises(TraceError, match=r"nonsense: no such file.*office-week.*azure-conv"):
        open_load("nonsense")


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the public traces (LEADTIME_TRACES)")
@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("azure2023_conv_1h.csv", 1.0),
        ("azure2024_code_week_digitised.csv", 167.5),
        ("servegen_m-large_10min.csv", 336.0),
        ("vllm_real_llama31-8b_rtx4090.csv", 0.01),
    ],
)
def test_files_handed_over_are_read_as_they_are(name, hours):
    load = open_load(str(SHARED / name)).part(Seconds(0.0), None)

    assert load.length / 3600 == pytest.approx(hours, rel=0.1, abs=0.05)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs the public traces (LEADTIME_TRACES)")
def test_a_known_trace_says_what_is_not_original_about_it(monkeypatch):
    monkeypatch.setenv("LEADTIME_TRACES", str(SHARED))

    assert "digitised" in open_load("azure-code").remarks[0]
