"""Addresses: which could be connected to, and what of them is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.policy.address import checked_address, masked, shown_address, without_credentials

WORDS = st.text(st.characters(codec="utf-8", exclude_characters="/?#@ \n\r\t"), min_size=1)


@pytest.mark.parametrize(
    "url",
    [
        "http://engine/metrics",
        "http://[::1]:8000/metrics",
        "https://reader:s3cret@engine:8443/metrics?name=a@b#part",
        "http://10.0.0.1:65535",
    ],
)
def test_an_address_with_a_host_is_one(url):
    assert checked_address(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://engine:8000/metrics", "http://engine:8000/metrics"),
        ("http://reader:s3cr@t@engine/m?name=a@b", "http://engine/m?name=***"),
        ("http://engine/m?at=x@y", "http://engine/m?at=***"),
        ("http://engine/m?a=1&token=s=t;b=#s3cret", "http://engine/m?a=***&token=***;b=***"),
        ("http://engine/m?s3cret", "http://engine/m?***"),
        ("http://engine/m#s3cret", "http://engine/m"),
        ("http://engine/m?", "http://engine/m?"),
        ("dumps/a?b=c.prom", "dumps/a?b=c.prom"),
        ("http://reader:s3cret@[::1", "http://[::1"),
        ("dump.prom", "dump.prom"),
    ],
)
def test_what_is_shown_of_an_address_has_no_credentials(url, shown):
    assert shown_address(url) == shown


@given(WORDS, WORDS, WORDS)
def test_no_credentials_and_no_token_pass_whatever_they_are(user, password, token):
    url = f"http://{user}:{password}@engine/metrics?token={token.replace('&', '').replace(';', '')}"

    assert shown_address(url).startswith("http://engine/metrics?token=")
    assert set(shown_address(url).rpartition("=")[2]) <= {"*"}
    assert len(masked(url)) == len(url)


def test_addresses_are_compared_with_their_query_and_without_credentials():
    assert without_credentials("http://a:b@engine/m?gpu=1") == "http://engine/m?gpu=1"


def test_every_address_of_a_line_is_masked_in_place():
    line = "urls: [http://a:b@one/m, http://two/m?x=y, 'https://c:d/e@three/m?t=abc&word']}"

    assert masked(line) == (
        "urls: [http://***@one/m, http://two/m?x=*, 'https://*****@three/m?t=***&****']}"
    )


def test_what_is_no_address_is_not_masked():
    assert masked("queue: {a: b@c?d=e}") == "queue: {a: b@c?d=e}"


def test_a_long_line_of_what_looks_like_addresses_is_masked_at_once():
    """A file of 4 MiB may come from anywhere; twice the length must not take four times as long."""
    line = "://" * 300_000

    assert masked(line) == line
