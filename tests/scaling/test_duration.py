"""Durations: what people write, what they meant, and what is refused with a hint."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.scaling.duration import default_duration, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("1h30m", 5400), ("336h", 1_209_600), ("250ms", 0.25), ("0s", 0)],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (5, "5 has no unit; write 5s, or in minutes like 5m"),
        ("5", "it has no unit; write 5s"),
        ("14d", "days are not in the grammar"),
        ("1.5h", "fractions are not in the grammar (GEP-2257); write 1h30m for 1.5h"),
        ("five minutes", "write it like 90s, 5m or 1h30m"),
        ("", "write it like 90s"),
        ("-5m", "write it like 90s"),
        ("5m\n", "write it like 90s"),
        (True, "write it like 90s"),
        (None, "write it like 90s"),
    ],
)
def test_what_is_no_duration_is_refused_with_a_hint(text: object, hint: str) -> None:
    with pytest.raises(ValueError, match=r".+") as refused:
        parse_duration(text)

    assert hint in str(refused.value)


@given(st.integers(0, 10**9))
def test_every_whole_number_of_milliseconds_survives_writing_and_reading(millis: int) -> None:
    text = format_duration(millis / 1000)

    assert round(parse_duration(text) * 1000) == millis


def test_nothing_is_written_as_zero_seconds() -> None:
    assert format_duration(0.0) == "0s"
    assert default_duration("2m") == 120
