"""The prober: bounded in time and size, one address at a time, TLS with the host's name."""

import socket
import threading
from contextlib import suppress

import pytest

from adapter.fleet.smoke.ask import Ask, UnusableAnswerError
from adapter.fleet.units import Seconds
from adapter.sources.clock import SystemClock
from adapter.sources.smoke import BODY_LIMIT, Endpoint, EndpointError, Prober, endpoints_of
from tests.sources.smoke_servers import engine, vllm

GET = Ask("/v1/models", method="GET")


def a_prober(timeout: float = 5.0) -> Prober:
    return Prober(SystemClock(), timeout=Seconds(timeout))


def test_an_answer_has_its_status_headers_and_body():
    with engine(lambda path, body: (201, {"X-Model-Hash": "ab"}, {"path": path})) as url:
        (endpoint,) = endpoints_of(f"{url}/base", {})

        answer = a_prober().send(endpoint, GET)

    assert (answer.status, answer.headers["x-model-hash"]) == (201, "ab")
    assert answer.body == b'{"path": "/base/v1/models"}'


def test_headers_of_the_caller_are_sent_and_caches_are_asked_to_stay_away():
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_once, args=(listener, seen))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        (endpoint,) = endpoints_of(url, {"Authorization": "Bearer s3cret"})
        a_prober().send(endpoint, Ask("/x", b"{}"))
        thread.join()

    assert b"Authorization: Bearer s3cret" in seen[0]
    assert b"Cache-Control: no-cache, no-store" in seen[0]
    assert b"Content-Type: application/json" in seen[0]


def _answer_once(listener: socket.socket, seen: list[bytes]) -> None:
    connection, _ = listener.accept()
    with connection:
        seen.append(connection.recv(65536))
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_every_address_of_a_name_is_an_endpoint_of_its_own(monkeypatch):
    infos = [(2, 1, 6, "", (address, 80)) for address in ("10.0.0.2", "10.0.0.1", "10.0.0.2")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: infos)

    found = endpoints_of("http://pods.example/", {})

    assert [one.address for one in found] == ["10.0.0.1", "10.0.0.2"]
    assert found[0].name == "http://pods.example at 10.0.0.1"


def test_the_address_is_asked_whatever_the_name_says():
    """A headless Service: the same name, each pod in turn."""
    with engine(vllm()) as url:
        port = url.rpartition(":")[2]
        endpoint = Endpoint(f"http://not-in-any-dns.invalid:{port}", "127.0.0.1")

        assert a_prober().send(endpoint, GET).status == 200


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://host", "neither http:// nor https://"),
        ("host:8000", "no host"),
        ("http://", "no host"),
        ("http://host:99999", "out of range"),
        ("http://no-such-host.invalid", "no such host"),
    ],
)
def test_an_address_that_cannot_be_asked_says_why(url, why):
    with pytest.raises(EndpointError, match=why):
        endpoints_of(url, {})


def test_a_refused_connection_is_told_as_one():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(UnusableAnswerError, match="nothing listens there"):
        a_prober().send(Endpoint(f"http://127.0.0.1:{port}", "127.0.0.1"), GET)


def test_who_never_answers_is_given_up_in_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UnusableAnswerError, match=r"within 0\.2 s"):
            a_prober(0.2).send(Endpoint(url, "127.0.0.1"), GET)


def test_who_answers_drop_by_drop_is_given_up_in_time():
    """Each byte comes within the timeout; all of them together do not."""
    stop = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n")
            while not stop.wait(0.05):
                try:
                    connection.sendall(b"x")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UnusableAnswerError, match=r"within 0\.3 s"):
            a_prober(0.3).send(Endpoint(url, "127.0.0.1"), GET)
        stop.set()
        thread.join()


def test_an_endless_answer_is_not_read_on():
    with (
        engine(lambda *_: (200, {}, b"x" * (BODY_LIMIT + 100_000))) as url,
        pytest.raises(UnusableAnswerError, match="not read on"),
    ):
        a_prober().send(endpoints_of(url, {})[0], GET)


@pytest.mark.parametrize(
    ("said", "why"), [(b"hello\r\n", "not HTTP"), (b"", "connection broke|not HTTP")]
)
def test_what_is_not_http_is_told_as_such(said, why):
    def speak(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=speak, args=(listener,))
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(UnusableAnswerError, match=why):
            a_prober().send(Endpoint(url, "127.0.0.1"), GET)
        thread.join()


def test_https_to_a_plain_port_is_told_as_a_tls_failure():
    with engine(vllm()) as url:
        endpoint = Endpoint(url.replace("http://", "https://"), "127.0.0.1")
        with pytest.raises(UnusableAnswerError, match="TLS failed"):
            Prober(SystemClock(), timeout=Seconds(5.0), insecure=True).send(endpoint, GET)


@pytest.mark.parametrize("drop", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X: y\r\n", b"h"], ids=str)
def test_headers_that_come_drop_by_drop_are_given_up_in_time(drop):
    done = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection, suppress(OSError):
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n" if drop.startswith(b"X") else b"")
            while not done.wait(0.05):
                connection.sendall(drop)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        endpoint = Endpoint(f"http://127.0.0.1:{listener.getsockname()[1]}", "127.0.0.1")
        try:
            with pytest.raises(UnusableAnswerError, match=r"no complete answer within 0\.3 s"):
                a_prober(0.3).send(endpoint, GET)
        finally:
            done.set()
            thread.join()


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Content-Length": "99"}, "broke off 97 bytes too early"),
        ({"Content-Encoding": "gzip"}, "an answer in gzip, which nobody asked for"),
    ],
)
def test_half_an_answer_and_a_compressed_one_are_none(headers, why):
    with engine(lambda *_: (200, headers, b"{}")) as url:
        (endpoint,) = endpoints_of(url, {})

        with pytest.raises(UnusableAnswerError, match=why):
            a_prober().send(endpoint, GET)
