"""Addresses: which could be connected to, and what of them is shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.policy.address import checked_address, masked, shown_address

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
        ("http://reader:s3cr@t@engine/m?name=a@b", "http://engine/m?name=a@b"),
        ("http://engine/m?at=x@y", "http://engine/m?at=x@y"),
        ("http://reader:s3cret@[::1", "http://[::1"),
        ("dump.prom", "dump.prom"),
    ],
)
def test_what_is_shown_of_an_address_has_no_credentials(url, shown):
    assert shown_address(url) == shown


@given(WORDS, WORDS)
def test_no_credentials_pass_whatever_they_are(user, password):
    url = f"http://{user}:{password}@engine/metrics"

    assert shown_address(url) == "http://engine/metrics"
    assert len(masked(url)) == len(url)


def test_every_address_of_a_line_is_masked_in_place():
    line = "urls: [http://a:b@one/m, http://two/m, https://c:d/e@three/m]"

    assert masked(line) == "urls: [http://***@one/m, http://two/m, https://*****@three/m]"
