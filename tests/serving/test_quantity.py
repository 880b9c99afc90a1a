"""Quantities: what we write, and what an HPA reads in it."""

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapter.serving.external_metrics.quantity import MAX_MILLI, format_milli, read_milli, to_milli
from tests.serving.contract import vector_file


@pytest.mark.parametrize(
    ("milli", "text"),
    [
        (0, "0"),
        (1, "1m"),
        (999, "999m"),
        (1000, "1"),
        (1001, "1001m"),
        (12_340, "12340m"),
        (1_000_000, "1k"),
        (1_001_000, "1001"),
        (20_000_000, "20k"),
        (10**9, "1M"),
        (1500 * 10**9, "1500M"),
        (10**21, "1E"),
        (10**24, "1000E"),
        (MAX_MILLI, "9223372036854775807m"),
        (-500, "-500m"),
        (-1_500_000, "-1500"),
    ],
)
def test_milli_are_written_with_the_largest_suffix_that_leaves_no_fraction(milli: int, text: str):
    assert format_milli(milli) == text


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("1n", 1),
        ("0.0001", 1),
        ("2.0000001", 2001),
        ("-0.0001", -1),
        ("3.0000000001", 3001),
        ("0.0000000000001", 1),
        ("-0", 0),
        ("1.", 1000),
        (".5", 500),
        ("+5", 5000),
        ("1e-7", 1),
        ("1E3", 1_000_000),
        ("0.1Ki", 102_400),
        ("1.5Ki", 1_536_000),
        ("100n", 1),
        ("1e-999999999", 1),
        ("0e999", 0),
    ],
)
def test_an_hpa_reads_fractions_rounded_up_and_away_from_zero(text: str, milli: int):
    assert read_milli(text) == milli


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        ("9223372036854775", 9_223_372_036_854_775_000),
        ("9223372036854775807", -1000),
        ("9300000000000000", -9_146_744_073_709_551_616),
        ("1e16", 0),
        ("1e400", 0),
        ("1e999999999", 0),
        ("16Ei", -1000),
        ("1234567890123456789e100", 0),
        ("12345678901234567890123", -7_484_280_360_333_952_776),
    ],
)
def test_beyond_64_bits_an_hpa_reads_nonsense(text: str, milli: int):
    """``str(1e16)`` would scale to the minimum, which is why no float is ever published."""
    assert read_milli(text) == milli


@pytest.mark.parametrize("text", ["", " 1 ", "NaN", "inf", "1_000", "1,5", "0x10", "1٣"])
def test_what_has_not_the_shape_of_a_quantity_is_refused_in_gos_words(text: str):
    with pytest.raises(ValueError, match="quantities must match the regular expression"):
        read_milli(text)


@pytest.mark.parametrize("text", ["1K", "5m5", "1ki", "1e", "1e9999999999", "1mm"])
def test_an_unknown_suffix_is_refused_in_gos_words(text: str):
    with pytest.raises(ValueError, match="unable to parse quantity's suffix"):
        read_milli(text)


@pytest.mark.parametrize(
    ("replicas", "milli"), [(0.0, 0), (6.2, 6200), (2.007, 2007), (6.20001, 6201), (7, 7000)]
)
def test_a_fraction_of_a_replica_is_rounded_up_once(replicas: float, milli: int):
    """2.007 times 1000 is a little more than 2007 in floats, and still 2007 milli."""
    assert to_milli(replicas) == milli


@pytest.mark.parametrize("replicas", [math.nan, math.inf, -math.inf, -1.0, -1e-9, 1e16])
def test_what_is_no_number_of_replicas_never_becomes_one(replicas: float):
    """Row 11: NaN became -9223372036854775808m; row 12: +Inf became 0 and scaled in."""
    with pytest.raises(ValueError, match="is no number of replicas"):
        to_milli(replicas)


@given(st.integers(min_value=-MAX_MILLI - 1, max_value=MAX_MILLI))
@settings(max_examples=300)
def test_what_we_write_is_read_back_as_it_was(milli: int):
    """Row 13: 650634457m was read as 650 million."""
    assert read_milli(format_milli(milli)) == milli


@given(st.text(alphabet="0123456789.+-eEinumkKMGTP ", max_size=24))
@settings(max_examples=500)
def test_any_text_is_a_quantity_or_a_clear_refusal(text: str):
    try:
        milli = read_milli(text)
    except ValueError as error:
        assert "quantit" in str(error)  # noqa: PT017 - most texts are refused, some are read
    else:
        assert -(2**63) <= milli < 2**63


def test_the_whole_vector_file_of_quantities_passes():
    """Vector 4: every line that the real Go library printed."""
    lines = vector_file("quantity_vectors.txt").read_text().splitlines()

    wrong = [line for line in lines if not _agrees(line)]

    assert len(lines) > 60
    assert wrong == []


def _agrees(line: str) -> bool:
    if written := re.fullmatch(r'milli (\S+) -> "(.*)"', line):
        return format_milli(int(written[1])) == written[2]
    if parsed := re.fullmatch(r'parse "(.*)" +canonical=\S+ milli=(\S+)', line):
        return read_milli(parsed[1]) == int(parsed[2])
    refused = re.fullmatch(r'parse "(.*)" +err (.*)', line)
    assert refused is not None
    with pytest.raises(ValueError, match=re.escape(refused[2])):
        read_milli(refused[1])
    return True
