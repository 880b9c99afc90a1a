"""A user's CSV: read whole, or every fault named with its line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.simulator.request_log import FEWEST_REQUESTS, RequestLogError, read_log
from tests.simulator.logs import REAL, real_log

HEADER = "timestamp_s,input_tokens,output_tokens,ttft_s,e2e_s"


def a_csv(*first: str, header: str = HEADER, rows: int = FEWEST_REQUESTS) -> bytes:
    good = [f"{index},10,5,0.5,2" for index in range(rows)]
    return "\n".join([header, *first, *good]).encode()


def problems(text: bytes) -> list[str]:
    with pytest.raises(RequestLogError) as caught:
        read_log(text, name="log.csv")
    return list(caught.value.problems)


def test_a_log_is_read_in_the_order_of_arrival():
    log = read_log(a_csv("9.5,100,3,0.25,1.25"), name="log.csv")

    assert [one.at for one in log] == sorted(one.at for one in log)
    (late,) = [one for one in log if one.at == 9.5]
    assert (late.input_tokens, late.output_tokens, late.ttft, late.e2e) == (100, 3, 0.25, 1.25)
    assert (late.queue, late.cached_tokens, late.tpot) == (None, 0, 0.5)


def test_columns_have_any_order_and_others_are_ignored():
    """As exported by a spreadsheet: a BOM, CRLF, blanks, an empty line, unknown columns."""
    header = (
        "\ufeffe2e_s, user ,ttft_s,cached_tokens,output_tokens,queue_s,input_tokens,timestamp_s"
    )
    rows = "\r\n".join(f"3, ann ,1,4,1,0.5,8,{index}" for index in range(FEWEST_REQUESTS))

    log = read_log(f"{header}\r\n\r\n{rows}\r\n".encode(), name="log.csv")

    assert len(log) == FEWEST_REQUESTS
    assert (log[0].queue, log[0].cached_tokens, log[0].e2e, log[0].tpot) == (0.5, 4, 3.0, None)


def test_optional_cells_may_be_empty():
    rows = [f"{index},10,5,0.5,2,," for index in range(FEWEST_REQUESTS)]

    log = read_log("\n".join([f"{HEADER},queue_s,cached_tokens", *rows]).encode(), name="log.csv")

    assert log[0].queue is None
    assert log[0].cached_tokens == 0


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,10,5,0.5,2", "timestamp_s is 'x', expected a number"),
        ("inf,10,5,0.5,2", "timestamp_s is inf, expected a number from 0 up"),
        ("0,0,5,0.5,2", "input_tokens is 0, expected a whole number from 1 up"),
        ("0,10,2.5,0.5,2", "output_tokens is 2.5, expected a whole number from 1 up"),
        ("0,10,5,,2", "ttft_s is '', expected a number"),
        ("0,10,5,-1,2", "ttft_s is -1, expected a number from 0 up"),
        ("0,10,5,nan,2", "ttft_s is nan, expected a number from 0 up"),
        ("0,10,5,0,2", "ttft_s is 0; expected the seconds to the first token"),
        ("0,10,5,3,2", "e2e_s 2 is shorter than ttft_s 3"),
        ("0,10,5,0.5", "e2e_s is '', expected a number"),
        ("0,10,5,0.5,2,0.7", "queue_s 0.7 is longer than ttft_s 0.5"),
        ("0,10,5,0.5,2,,11", "cached_tokens 11 is more than input_tokens"),
    ],
)
def test_each_fault_is_named_with_its_line(row, said):
    header = f"{HEADER},queue_s,cached_tokens"

    assert problems(a_csv(row, header=header)) == [f"log.csv:2: {said}"]


def test_all_faults_come_in_one_run_and_many_are_cut():
    """25 bad rows: 20 are shown, the rest is counted."""
    found = problems(a_csv(*["0,0,5,0.5,2"] * 25))

    assert len(found) == 21
    assert found[19].startswith("log.csv:21: ")
    assert found[20] == "and 5 more lines like these"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "log.csv:1: no column timestamp_s, input_tokens, output_tokens, ttft_s, e2e_s"),
        (b"a,b\n1,2\n", "log.csv:1: no column timestamp_s"),
        (a_csv(rows=7), "log.csv: 7 requests; a fit needs 30 or more: log longer"),
        (a_csv() + b"\n\xff", "log.csv:32: not UTF-8 text; expected CSV"),
        (a_csv() + b'\n"1,2', "log.csv:32: unexpected end of data; expected CSV"),
        (b" " * (64 * 2**20 + 1), "log.csv: more than 64 MiB; give a part of it"),
    ],
    ids=["empty", "header", "short", "binary", "quotes", "huge"],
)
def test_what_is_no_log_says_so(text, said):
    assert problems(text)[0].startswith(said)


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.binary(max_size=200), st.text(",\n\"'ab01.-\r", max_size=80).map(str.encode)))
def test_no_text_does_anything_but_name_its_faults(text):
    with pytest.raises(RequestLogError):
        read_log(HEADER.encode() + b"\n" + text, name="log.csv")


@pytest.mark.parametrize("name", REAL)
def test_the_real_logs_are_read(name):
    log = read_log(real_log(name).read_bytes(), name=name)

    assert len(log) == 300
