"""Serve health probes and metrics over HTTP from a worker's parent.

A port runs none of the project's code, and its routes respond from memory, without a statement.
Each connection has a thread and a short timeout, and the number of connections is bounded, so that
a client that connects and sends nothing does not block other clients.
"""

from __future__ import annotations

import ipaddress
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit

logger = logging.getLogger("taskqueue.worker")

LOOPBACK = "127.0.0.1"
MAX_CONNECTIONS = 64  # Beyond this, the oldest connection is dropped.
CONNECTION_TIMEOUT = 5.0  # Seconds from the first byte to the last.
CHECK_INTERVAL = 1.0  # Seconds between two checks for connections whose time is over.
MAX_HEAD = 8 * 1024  # Bytes of a request's line and headers; its body is not read.
MAX_DISCARDED = 64 * 1024  # Bytes that are read and discarded after an answer.


class PortRefused(Exception):
    """The system does not let the worker listen there; the message says why."""


class Answer(NamedTuple):
    """A route's answer."""

    status: int
    content_type: str
    body: bytes


# Called in a thread of the port. It must not block: no database statement, no waiting.
Route = Callable[[], Answer]


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 lets the system choose one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `[HOST:]PORT`, with the loopback address as the default host. Raises ValueError."""
        host, _, port = text.rpartition(":")
        bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
        if ":" in bare and bare == host:
            raise ValueError(f"wants IPv6 in brackets, such as [::1]:8001, not {text!r}")
        if text.startswith(":"):
            raise ValueError(f"names no host before the colon: {text!r}; 0.0.0.0 is every address")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise ValueError(f"must be PORT or HOST:PORT, the port from 0 to 65535, not {text!r}")
        if ":" in bare:
            ipaddress.IPv6Address(bare)
        return cls(bare or LOOPBACK, int(port))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@contextmanager
def listening(routes: Mapping[Address, Mapping[str, Route]]) -> Iterator[list[Address]]:
    """Answer at all of the addresses or none, and yield those on which it listens.

    Raises `PortRefused`.
    """
    with ExitStack() as stack:
        ports = [stack.enter_context(closing(Port(*item))) for item in routes.items()]
        for port in ports:
            port.start()
        yield [port.address for port in ports]


class Port(ThreadingTCPServer):
    """One listening socket, and the threads that serve it. Raises `PortRefused`."""

    allow_reuse_address = True  # A restarted worker need not wait for old connections to expire.
    allow_reuse_port = False
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Address, routes: Mapping[str, Route]) -> None:
        self.routes = routes
        # The open connections and when each is dropped, oldest first.
        self._connections: dict[socket.socket, float] = {}
        self._lock = threading.Lock()
        self._is_closing = False
        try:
            places = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            self.address_family, _, _, _, place = places[0]
            super().__init__(place, _Handler)  # type: ignore[arg-type]
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise PortRefused(
                f"Cannot listen on {address}: {reason}. "
                "Name another port, or 0 for any that is free."
            ) from None
        self.address = Address(address.host, self.socket.getsockname()[1])
        self._thread = threading.Thread(
            target=self.serve_forever, args=(CHECK_INTERVAL,), name="taskqueue-port", daemon=True
        )

    def start(self) -> None:
        """Begin to answer."""
        logger.info("Port open address=%s paths=%s", self.address, ",".join(sorted(self.routes)))
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and free the port."""
        self._is_closing = True
        if self._thread.is_alive():
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_RDWR)  # Wakes the thread at once.
            self.shutdown()
        self.server_close()
        with self._lock:
            for connection in self._connections:
                _drop(connection)

    def get_request(self) -> tuple[Any, Any]:
        """Accept a connection; pause after an error that the next one would meet as well."""
        try:
            return super().get_request()
        except OSError as error:
            if not self._is_closing:
                logger.warning("Port cannot accept address=%s error=%s", self.address, error)
                time.sleep(CHECK_INTERVAL)
            raise

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread, and drop the oldest if there are too many."""
        with self._lock:
            if len(self._connections) >= MAX_CONNECTIONS:
                oldest = next(iter(self._connections))
                del self._connections[oldest]
                _drop(oldest)
            self._connections[request] = time.monotonic() + CONNECTION_TIMEOUT
        super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Drop connections whose time is over, including those that send a byte now and then."""
        now = time.monotonic()
        with self._lock:
            for connection, ends_at in self._connections.items():
                if now >= ends_at:
                    _drop(connection)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection that has been served."""
        with self._lock:
            self._connections.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error, unless the client has gone."""
        error = sys.exception()
        if not isinstance(error, OSError):
            logger.error("Port failed to answer address=%s", self.address, exc_info=error)


def _drop(connection: socket.socket) -> None:
    """End what the connection's thread waits for; the thread then closes it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    """Answers one request of GET or HEAD, and ends the connection."""

    protocol_version = request_version = "HTTP/1.1"
    command = ""
    server: Port

    def handle(self) -> None:
        """Answer, then wait until the client has read the answer.

        If a connection is closed while unread bytes of the client remain, it is reset, and the
        client may lose the answer.
        """
        if head := self._read_head():
            self._write(self._answer(head))
            self.connection.shutdown(socket.SHUT_WR)
            self.rfile.read(MAX_DISCARDED)

    def _read_head(self) -> bytes:
        """Read up to the first empty line, or up to the limit."""
        head = b""
        while len(head) <= MAX_HEAD:
            line = self.rfile.readline(MAX_HEAD + 1 - len(head))
            head += line
            if not line:
                return b""
            if line in (b"\r\n", b"\n"):
                break
        return head

    def _answer(self, head: bytes) -> Answer:
        if len(head) > MAX_HEAD:
            return _plain(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        try:
            self.command, target, version = head.split(b"\n", 1)[0].decode("latin-1").split()
            route = self.server.routes.get(urlsplit(target).path)
            if not version.startswith("HTTP/1."):
                raise ValueError(version)
        except ValueError:
            return _plain(HTTPStatus.BAD_REQUEST)
        if route is None:
            return _plain(HTTPStatus.NOT_FOUND)
        if self.command not in ("GET", "HEAD"):
            return _plain(HTTPStatus.METHOD_NOT_ALLOWED)
        try:
            return route()
        except Exception:
            logger.exception("Port could not answer target=%s", target)
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR)

    def _write(self, answer: Answer) -> None:
        self.send_response_only(answer.status)
        for name, value in (
            ("Date", self.date_time_string()),
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            ("Connection", "close"),
        ):
            self.send_header(name, value)
        if answer.status == HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)


def _plain(status: HTTPStatus) -> Answer:
    return Answer(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())
