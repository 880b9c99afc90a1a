"""API keys: what is shown, what is in the file, and that the file may change."""

import asyncio
import base64
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapter.serving.metrics_api.keys import POLL, ApiKeys, ApiKeysError
from tests.build import T0
from tests.fakes import FakeClock

SECRET = "0123456789abcdef"  # noqa: S105 - of this test
OTHER = "fedcba9876543210"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "keys"
    path.write_text(f"# for KEDA\n\nkeda: {SECRET}\ncurl:{OTHER}\n")
    return path


def basic(name: str, secret: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode()}


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"X-API-KEY": SECRET}, {}),
        ({}, {"api_key": SECRET}),
        ({"Authorization": f"Bearer {SECRET}"}, {}),
        ({"Authorization": f"bearer  {OTHER} "}, {}),
        (basic("keda", SECRET), {}),
        ({"X-API-KEY": "wrong", **basic("keda", SECRET)}, {}),
    ],
)
def test_a_key_is_admitted_in_each_of_kedas_ways(file: Path, headers, query):
    assert ApiKeys(file).admit(headers, query) is True


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"X-API-KEY": SECRET[:-1]}, {}),
        ({"X-API-KEY": SECRET + "x"}, {}),
        ({"X-API-KEY": f"keda:{SECRET}"}, {}),
        ({}, {"api_key": SECRET.upper()}),
        (basic("curl", SECRET), {}),
        (basic("", SECRET), {}),
        ({"Authorization": f"Basic {SECRET}"}, {}),
        ({"Authorization": "Basic /w=="}, {}),
        ({"Authorization": SECRET}, {}),
        ({"Authorization": "Digest x"}, {}),
    ],
)
def test_anything_else_that_is_shown_is_no_key(file: Path, headers, query):
    assert ApiKeys(file).admit(headers, query) is False


@pytest.mark.parametrize(
    ("headers", "query"),
    [({}, {}), ({"X-API-KEY": ""}, {"api_key": ""}), ({"Authorization": "Bearer"}, {})],
)
def test_nothing_shown_is_told_from_a_wrong_key(file: Path, headers, query):
    assert ApiKeys(file).admit(headers, query) is None


@given(text=st.text())
def test_no_text_but_the_secret_is_a_key(text: str, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "keys-of-any-text"
    path.write_text(f"keda:{SECRET}")
    keys = ApiKeys(path)

    for headers in ({"X-API-KEY": text}, {"Authorization": text}, basic(text, text)):
        assert keys.admit(headers, {"api_key": text}) is not True


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "hold no key"),
        (b"# nothing\n\n", "hold no key"),
        (b"keda\n", "line 1: write NAME:SECRET"),
        (b"# x\nkeda:\n", "line 2: write NAME:SECRET"),
        (b":0123456789abcdef\n", "line 1: write NAME:SECRET"),
        (b"keda:short-secret\n", "line 1: the secret of 'keda' is shorter than 16 characters"),
        (b"\xff\xfe", "are no UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_never_the_secret(
    tmp_path: Path, content: bytes, sentence: str
):
    path = tmp_path / "keys"
    path.write_bytes(content)

    with pytest.raises(ApiKeysError) as error:
        ApiKeys(path)

    assert sentence in str(error.value)
    assert "short-secret" not in str(error.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(ApiKeysError, match="none cannot be read: No such file or directory"):
        ApiKeys(tmp_path / "none")


def test_new_content_is_taken_over_and_the_old_keys_end(file: Path):
    keys = ApiKeys(file)
    unchanged = keys.refresh()
    file.write_text(f"keda: {SECRET[::-1]}\n")

    assert keys.refresh()
    assert not unchanged
    assert keys.admit({"X-API-KEY": SECRET}, {}) is False
    assert keys.admit({"X-API-KEY": SECRET[::-1]}, {}) is True


def test_broken_content_keeps_the_old_keys_and_is_told_once(file: Path):
    keys = ApiKeys(file)
    file.write_text("nothing")

    with pytest.raises(ApiKeysError):
        keys.refresh()

    assert not keys.refresh()
    assert keys.admit({"X-API-KEY": SECRET}, {}) is True


async def test_the_file_is_followed_while_it_is_served(file: Path, caplog):
    caplog.set_level(logging.WARNING, "leadtime")
    keys = ApiKeys(file)
    clock = FakeClock(stop_at=T0 + 3 * POLL)
    file.write_text(f"keda: {SECRET[::-1]}\n")

    with pytest.raises(asyncio.CancelledError):
        await keys.follow(clock)
    file.write_text("nothing")
    with pytest.raises(asyncio.CancelledError):
        await keys.follow(FakeClock(stop_at=T0 + 3 * POLL))

    assert "keys=replaced count=1" in caplog.text
    assert caplog.text.count("keys=refused") == 1
    assert SECRET[::-1] not in caplog.text
