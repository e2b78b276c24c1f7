"""The ports of a worker: whom they answer, and whom they survive. They know nothing of workers."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection

import psutil
import pytest

from taskqueue.worker import ports
from taskqueue.worker.ports import (
    LOOPBACK,
    MAX_CONNECTIONS,
    MAX_HEAD,
    Address,
    Answer,
    PortRefused,
    Route,
    listening,
)
from tests.worker_process import wait_until

ANY = Address(LOOPBACK, 0)
FIGURES = b"figures 1\n" * 200_000
"""More than the buffers of a connection hold."""


def broken() -> Answer:
    raise RuntimeError("secret")


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[Address]:
    """A port with a route of each kind, which waits for a client that the machine delays."""
    monkeypatch.setattr(ports, "CONNECTION_TIMEOUT", 600.0)
    routes: dict[str, Route] = {
        "/live": lambda: Answer(200, "application/json", b'{"status": "ok"}'),
        "/metrics": lambda: Answer(200, "text/plain", FIGURES),
        "/broken": broken,
    }
    with listening({ANY: routes}) as [address]:
        yield address


def answering(body: bytes) -> Route:
    return lambda: Answer(200, "text/plain", body)


def ask(address: Address, path: str = "/live", method: str = "GET") -> tuple[int, bytes]:
    connection = HTTPConnection(address.host, address.port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def threads_of_connections() -> int:
    return sum("process_request" in thread.name for thread in threading.enumerate())


def say(address: Address, text: bytes) -> bytes:
    """Return all that comes back to these very bytes."""
    with socket.create_connection((address.host, address.port), timeout=60) as client:
        client.sendall(text)
        client.shutdown(socket.SHUT_WR)
        return client.makefile("rb").read()


def test_a_route_is_answered_whoever_asks_how(port: Address) -> None:
    assert ask(port) == (200, b'{"status": "ok"}')
    assert ask(port, "/live?verbose=1") == (200, b'{"status": "ok"}')
    assert ask(port, f"http://{port}/live") == (200, b'{"status": "ok"}')
    assert ask(port, method="HEAD") == (200, b"")
    assert ask(port, "/metrics") == (200, FIGURES)
    assert say(port, b"GET /live HTTP/1.0\n\n").endswith(b'\r\n\r\n{"status": "ok"}')
    assert say(port, b"GET /live HTTP/1.1\r\n\r\nGET /live HTTP/1.1\r\n\r\n").count(b"200 OK") == 1


def test_an_invalid_request_to_the_port_is_refused(
    port: Address, caplog: pytest.LogCaptureFixture
) -> None:
    assert ask(port, "/") == (404, b"Not Found\n")
    assert ask(port, "/live/../metrics") == (404, b"Not Found\n")
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert ask(port, method=method) == (405, b"Method Not Allowed\n")
    for words in (b"\r\n", b"GET /live\r\n", b"\x16\x03\n", b"GET http://[ HTTP/1.1\n"):
        assert say(port, words + b"\n").startswith(b"HTTP/1.1 400 ")
    assert say(port, b"GET /" + b"x" * MAX_HEAD).startswith(b"HTTP/1.1 431 ")
    body = b"POST /live HTTP/1.1\r\nContent-Length: 30000\r\n\r\n" + b"x" * 30_000
    assert say(port, body).startswith(b"HTTP/1.1 405 ")
    assert ask(port, "/broken") == (500, b"Internal Server Error\n")
    assert "secret" in caplog.text


def test_clients_that_fall_silent_keep_nobody_from_an_answer(port: Address) -> None:
    with ExitStack() as open_clients:
        clients = []
        for number in range(MAX_CONNECTIONS + 20):
            client = open_clients.enter_context(
                socket.create_connection((port.host, port.port), timeout=60)
            )
            # Nothing, half a request, a whole one whose answer nobody reads, a reset.
            client.sendall((b"", b"GET /li", b"GET /metrics HTTP/1.1\r\n\r\n")[number % 3])
            clients.append(client)
            if number % 10 == 0:
                assert ask(port)[0] == 200
        assert ask(port)[0] == 200
        # Dropped connections end their threads.
        wait_until(lambda: threads_of_connections() <= MAX_CONNECTIONS, what="fewer threads")
        # The first ones made room for the last.
        with suppress(ConnectionResetError):
            assert clients[0].recv(1) == b""


def test_a_request_that_never_ends_is_ended(port: Address, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "CONNECTION_TIMEOUT", 0.1)
    monkeypatch.setattr(ports, "CHECK_INTERVAL", 0.05)
    with socket.create_connection((port.host, port.port), timeout=60) as client:
        client.sendall(b"GET /live HTTP/1.1\r\nX-Slow: ")
        assert client.recv(1) == b""
    with socket.create_connection((port.host, port.port), timeout=60) as client:

        def trickle() -> bool:
            client.sendall(b"x")
            return bool(select.select([client], [], [], 0)[0])

        wait_until(trickle, what="the end of a request that goes on byte by byte")
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_routes_of_one_address_share_a_port_and_a_taken_one_is_refused(
    port: Address,
) -> None:
    with (
        pytest.raises(PortRefused, match=f"Cannot listen on {port}: Address already in use"),
        listening({ANY: {"/live": answering(b"live")}, port: {"/live": answering(b"never")}}),
    ):
        pass
    both = {"/live": answering(b"live"), "/metrics": answering(b"metrics")}
    with listening({Address.parse("0"): both}) as [address]:
        assert (ask(address)[1], ask(address, "/metrics")[1]) == (b"live", b"metrics")
    # At once again, though a connection to it has just ended.
    with listening({address: {"/live": answering(b"again")}}):
        assert ask(address)[1] == b"again"
    with pytest.raises(ConnectionRefusedError):
        ask(address)


def test_a_program_that_is_started_meanwhile_has_no_part_in_the_port(port: Address) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert psutil.Process(child.pid).net_connections() == []
    finally:
        child.communicate(b"\n", timeout=60)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8001", Address("127.0.0.1", 8001)),
        ("0.0.0.0:8001", Address("0.0.0.0", 8001)),
        ("[::1]:0", Address("::1", 0)),
        ("worker.internal:80", Address("worker.internal", 80)),
    ],
)
def test_an_address_is_read_and_written_alike(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "65536", ":8001", "::1:8001", "[::g]:1", "host:", "8001:host", "٣"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|names|wants|permitted"):
        Address.parse(text)


def test_a_host_that_is_not_this_ones_is_refused() -> None:
    for host in ("192.0.2.1", "no.such.host.invalid"):
        refused = pytest.raises(PortRefused, match=f"Cannot listen on {host}:0: ")
        with refused, listening({Address(host, 0): {"/live": broken}}):
            pass
