"""The client connects to checked addresses alone, and bounds what it waits for and reads."""

from __future__ import annotations

import socket
import threading

import pytest

from taskqueue.core.webhook_targets import NOTHING_ALLOWED, Allowed
from taskqueue.webhooks import client
from taskqueue.webhooks.client import NoAnswer, Refused, post
from tests.webhooks.receiver import NAME, Receiver, Reply, receiving
from tests.webhooks.resolver import Resolver
from tests.webhooks.test_addresses import REFUSED

LOOPBACK = Allowed.of(["127.0.0.1/32"])
HEADERS = {"Content-Type": "application/json"}


@pytest.mark.parametrize(("address", "found"), REFUSED)
def test_a_name_with_an_address_of_any_refused_class_is_not_called(
    address: str, found: str, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver.knows(NAME, [address])
    monkeypatch.setattr(socket.socket, "connect", _never)
    with pytest.raises(Refused, match=found):
        post(f"https://{NAME}/", b"{}", HEADERS, allowed=NOTHING_ALLOWED)
    assert resolver.asked == [NAME]


def test_one_refused_address_among_public_ones_is_enough(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver.knows(NAME, ["8.8.8.8", "1.1.1.1", "10.0.0.1"])
    monkeypatch.setattr(socket.socket, "connect", _never)
    with pytest.raises(Refused, match="private"):
        post(f"https://{NAME}/", b"{}", HEADERS, allowed=NOTHING_ALLOWED)


def test_a_refusal_names_no_address(resolver: Resolver) -> None:
    resolver.knows(NAME, ["10.0.0.1"])
    with pytest.raises(Refused) as refused:
        post(f"https://{NAME}/", b"{}", HEADERS, allowed=NOTHING_ALLOWED)
    assert "10.0.0.1" not in str(refused.value)


def test_the_socket_goes_to_the_checked_address_without_a_second_look_up(
    resolver: Resolver,
) -> None:
    """Whoever answers for the name gives the address of an inner host from the second time on."""
    with receiving("127.0.0.1") as outer, receiving("127.0.0.2", port=outer.port) as inner:
        resolver.knows(NAME, ["127.0.0.1"], ["127.0.0.2"])
        url = f"http://{NAME}:{outer.port}/in?x=1"
        answer = post(url, b"{}", HEADERS, allowed=LOOPBACK)
        assert answer.status == 204
        assert [each.path for each in outer.received] == ["/in?x=1"]
        assert outer.received[0].headers["Host"] == f"{NAME}:{outer.port}"
        assert resolver.asked == [NAME]
        with pytest.raises(Refused, match="loopback"):  # It is checked at every attempt.
            post(url, b"{}", HEADERS, allowed=LOOPBACK)
        assert inner.received == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_an_answer_and_is_not_followed(
    status: int, receiver: Receiver, resolver: Resolver
) -> None:
    with receiving("127.0.0.2") as inner:
        resolver.knows(NAME, ["127.0.0.1"])
        inside = f"http://127.0.0.2:{inner.port}/"
        receiver.answers(Reply(status, {"Location": inside}))
        url = f"http://{NAME}:{receiver.port}/"
        everything = Allowed.of(["127.0.0.0/8"])
        answer = post(url, b"{}", HEADERS, allowed=everything)
        assert answer.status == status
        assert inner.received == []
        assert len(receiver.received) == 1


def test_tls_is_checked_by_the_name(tls_receiver: Receiver, resolver: Resolver) -> None:
    port = tls_receiver.port
    resolver.knows(NAME, ["127.0.0.1"])
    resolver.knows("other.test", ["127.0.0.1"])
    assert post(f"https://{NAME}:{port}/", b"{}", HEADERS, allowed=LOOPBACK).status == 204
    with pytest.raises(NoAnswer, match="certificate"):
        post(f"https://other.test:{port}/", b"{}", HEADERS, allowed=LOOPBACK)
    assert len(tls_receiver.received) == 1


def test_an_unknown_issuer_is_refused(resolver: Resolver) -> None:
    with receiving(tls=True) as running:
        resolver.knows(NAME, ["127.0.0.1"])
        with pytest.raises(NoAnswer, match="certificate"):
            post(f"https://{NAME}:{running.port}/", b"{}", HEADERS, allowed=LOOPBACK)
    assert running.received == []


def test_no_proxy_of_the_environment_is_used(
    receiver: Receiver, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with receiving() as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        resolver.knows(NAME, ["127.0.0.1"])
        post(f"http://{NAME}:{receiver.port}/", b"{}", HEADERS, allowed=LOOPBACK)
        assert len(receiver.received) == 1
        assert proxy.received == []


def test_cookies_are_not_sent_back(receiver: Receiver, resolver: Resolver) -> None:
    resolver.knows(NAME, ["127.0.0.1"])
    receiver.answers(Reply(200, {"Set-Cookie": "a=b"}))
    for _ in range(2):
        post(f"http://{NAME}:{receiver.port}/", b"{}", HEADERS, allowed=LOOPBACK)
    assert all("Cookie" not in each.headers for each in receiver.received)


def test_the_next_checked_address_is_tried_where_the_first_refuses(
    receiver: Receiver, resolver: Resolver
) -> None:
    resolver.knows(NAME, ["127.0.0.3", "127.0.0.1"])
    url = f"http://{NAME}:{receiver.port}/"
    answer = post(url, b"{}", HEADERS, allowed=Allowed.of(["127.0.0.0/8"]))
    assert answer.status == 204


def test_no_more_than_a_bound_is_read(receiver: Receiver, resolver: Resolver) -> None:
    resolver.knows(NAME, ["127.0.0.1"])
    receiver.answers(Reply(200, body=b"x" * 1_000_000))
    answer = post(f"http://{NAME}:{receiver.port}/", b"{}", HEADERS, allowed=LOOPBACK)
    assert len(answer.body) <= client.MOST_READ


def test_a_server_that_sends_byte_after_byte_is_left_at_the_deadline(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte comes in time; all of them together do not."""
    monkeypatch.setattr(client, "WHOLE_SECONDS", 1.0)
    resolver.knows(NAME, ["127.0.0.1"])
    with _dripping() as port, pytest.raises(NoAnswer, match="in time"):
        post(f"http://{NAME}:{port}/", b"{}", HEADERS, allowed=LOOPBACK)


def test_a_resolver_that_does_not_answer_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "CONNECT_SECONDS", 0.2)
    over = threading.Event()

    def resolve(host: str, port: int) -> list[str]:
        over.wait(60)
        return []

    try:
        with pytest.raises(NoAnswer, match="resolved in time"):
            post(f"https://{NAME}/", b"{}", HEADERS, allowed=LOOPBACK, resolve=resolve)
    finally:
        over.set()


@pytest.mark.parametrize("answers", [[], None])
def test_a_name_without_an_address_has_no_answer(
    answers: list[str] | None, resolver: Resolver
) -> None:
    if answers is not None:
        resolver.knows(NAME, answers)
    with pytest.raises(NoAnswer, match="host"):
        post(f"https://{NAME}/", b"{}", HEADERS, allowed=LOOPBACK)


def test_an_answer_that_is_no_http_is_refused(resolver: Resolver) -> None:
    resolver.knows(NAME, ["127.0.0.1"])
    with Saying(b"SSH-2.0-OpenSSH_9.9\r\n") as port, pytest.raises(NoAnswer, match="HTTP"):
        post(f"http://{NAME}:{port}/", b"{}", HEADERS, allowed=LOOPBACK)


def _never(*args: object) -> None:
    raise AssertionError("A socket was connected.")


class Saying:
    """A server that sends these bytes to whoever connects, again and again if `pause` is given."""

    def __init__(self, said: bytes, *, pause: float | None = None) -> None:
        self._said, self._pause = said, pause
        self._over = threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> int:
        self._thread.start()
        return int(self._listening.getsockname()[1])

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        connected, _ = self._listening.accept()
        with connected:
            try:
                connected.recv(65536)
                connected.sendall(self._said)
                while self._pause is not None and not self._over.wait(self._pause):
                    connected.sendall(b"x")
            except OSError:
                pass


def _dripping() -> Saying:
    return Saying(b"HTTP/1.1 200 OK\r\nX-Long: ", pause=0.1)
