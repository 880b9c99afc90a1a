"""The TTFT histogram: ranks, bucket layouts, and buckets that cannot be true."""

import math

import pytest

from tests.fleet.expositions import (
    a_body,
    a_histogram,
    a_vllm_body,
    reading_of,
)

TTFT_NAME = "vllm:time_to_first_token_seconds"


def test_ttft_adds_up_over_ranks():
    body = a_body(
        *a_histogram(TTFT_NAME, 'engine="0",model_name="m",', le_1=2, inf=3),
        *a_histogram(TTFT_NAME, 'engine="1",model_name="m",', le_1=5, inf=5),
    )

    reading = reading_of(body)

    assert reading.ttft is not None
    assert reading.ttft.counts == (7, 8)
    assert reading.ttft.sum_seconds == 3.0
    assert reading.ranks["0"].ttft is not None
    assert reading.ranks["0"].ttft.counts == (2, 3)


def test_ttft_of_two_bucket_layouts_is_read_in_the_bounds_they_share():
    """Trap 25: Exact there: 2+5 within 1 s. The bound only one has says nothing of the other."""
    body = a_body(
        *a_histogram(TTFT_NAME, 'engine="0",model_name="m",', le_0_5=1, le_1=2, inf=3),
        *a_histogram(TTFT_NAME, 'engine="1",model_name="m",', le_1=5, inf=5),
    )

    reading = reading_of(body)

    assert reading.ttft is not None
    assert (reading.ttft.bounds, reading.ttft.counts) == ((1.0, math.inf), (7, 8))


def test_ttft_of_ranks_that_share_no_bound_is_unknown_and_not_infinite():
    """Bounds .5 and 1: together only +Inf is left, whose every quantile is infinite."""
    body = a_body(
        *a_histogram(TTFT_NAME, 'engine="0",model_name="m",', le_0_5=1, inf=3),
        *a_histogram(TTFT_NAME, 'engine="1",model_name="m",', le_1=5, inf=5),
        'vllm:num_requests_waiting{model_name="m"} 1',
    )

    reading = reading_of(body)

    assert reading.ttft is None
    assert "without a common bound" in reading.missing["ttft"]


def test_two_layouts_within_one_rank_warn():
    body = a_body(
        *a_histogram(TTFT_NAME, 'engine="0",model_name="m",x="a",', le_0_5=1, le_1=2, inf=3),
        *a_histogram(TTFT_NAME, 'engine="0",model_name="m",x="b",', le_1=5, inf=5),
    )

    reading = reading_of(body)

    assert reading.ttft is not None
    assert reading.ttft.counts == (7, 8)
    assert any("2 bucket layouts" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (a_histogram(TTFT_NAME, le_1=2), "no +Inf bucket"),
        (a_histogram(TTFT_NAME, le_1=5, inf=3), "cumulative buckets that fall"),
        (a_histogram(TTFT_NAME, le_1=math.nan, inf=3), "NaN, negative or beyond counting"),
        (a_histogram(TTFT_NAME, le_1=-1, inf=3), "NaN, negative or beyond counting"),
        (
            [
                *a_histogram(TTFT_NAME, 'x="a",', le_1=1, inf=3),
                *a_histogram(TTFT_NAME, 'x="b",', le_2=1, inf=3),
            ],
            "without a common bound",
        ),
    ],
)
def test_buckets_that_cannot_be_true_make_ttft_unknown(lines: list[str], why: str):
    reading = reading_of(a_vllm_body(*lines))

    assert reading.ttft is None
    assert why in reading.missing["ttft"]


def test_a_histogram_without_its_sum_keeps_its_buckets_and_warns():
    *buckets, _ = a_histogram(TTFT_NAME, le_1=2, inf=3)

    reading = reading_of(a_vllm_body(*buckets))

    assert reading.ttft is not None
    assert reading.ttft.counts == (2, 3)
    assert any("_sum is missing" in warning for warning in reading.warnings)


@pytest.mark.parametrize("bound", ["NaN", "soon"])
def test_a_bound_that_is_no_number_is_left_out(bound: str):
    lines = [*a_histogram(TTFT_NAME, le_1=2, inf=3), f'{TTFT_NAME}_bucket{{le="{bound}"}} 9']

    reading = reading_of(a_vllm_body(*lines))

    assert reading.ttft is not None
    assert reading.ttft.bounds == (1.0, math.inf)
