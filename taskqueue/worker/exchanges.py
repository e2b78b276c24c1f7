"""One connection of a port: a request of GET or HEAD, its answer, the end."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import urlsplit

logger = logging.getLogger("taskqueue.worker")

LONGEST = 5.0
"""Seconds from the first byte to the last."""
LARGEST = 8 * 1024
"""Bytes of a request's head; nothing that is sent with it is read."""
MOST_LEFT = 64 * 1024
"""Bytes that are thrown away of what a client goes on to send."""
READ_SIZE = 4096
PLAIN = "text/plain; charset=utf-8"


class Answer(NamedTuple):
    """What a route says."""

    status: int
    content_type: str
    body: bytes


Route = Callable[[], Answer]
"""Called in the thread of the port, which it must not keep: no statement, no waiting."""


class Exchange:
    """Reads a request, writes its answer, and waits until the client has read it.

    A connection that is closed while something from the client stands unread is reset, and the
    client may lose the answer.
    """

    def __init__(self, client: socket.socket, routes: Mapping[str, Route]) -> None:
        client.setblocking(False)
        self.socket = client
        self.ends_at = time.monotonic() + LONGEST
        self.is_over = False
        self._routes = routes
        self._request = bytearray()
        self._answer: memoryview | None = None
        self._left = MOST_LEFT

    def go_on(self) -> bool:
        """Read or write what is possible now; whether it wants to write. Raises OSError."""
        if self._answer is None:
            self._read()
        if self._answer:
            self._write()
        elif self._answer is not None:
            self._throw_away()
        return bool(self._answer)

    def _read(self) -> None:
        try:
            received = self.socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        if not received:
            self.is_over = True
            return
        self._request += received
        head, is_whole = _head(self._request)
        if len(head) > LARGEST:
            self._answer = memoryview(_written(_said(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)))
        elif is_whole:
            self._answer = memoryview(_answer_to(head, self._routes))

    def _write(self) -> None:
        assert self._answer is not None
        try:
            self._answer = self._answer[self.socket.send(self._answer) :]
        except BlockingIOError:
            return
        if not self._answer:
            self.socket.shutdown(socket.SHUT_WR)

    def _throw_away(self) -> None:
        try:
            received = self.socket.recv(READ_SIZE)
        except BlockingIOError:
            return
        self._left -= len(received)
        self.is_over = not received or self._left < 0


def _head(request: bytearray) -> tuple[bytes, bool]:
    """What stands before the first empty line, and whether there is one yet."""
    ends = [at for at in (request.find(b"\r\n\r\n"), request.find(b"\n\n")) if at >= 0]
    return bytes(request[: min(ends)] if ends else request), bool(ends)


def _answer_to(head: bytes, routes: Mapping[str, Route]) -> bytes:
    words = head.split(b"\n", 1)[0].decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return _written(_said(HTTPStatus.BAD_REQUEST))
    method, target, _ = words
    try:
        route = routes.get(urlsplit(target).path)
    except ValueError:
        return _written(_said(HTTPStatus.BAD_REQUEST))
    if route is None:
        return _written(_said(HTTPStatus.NOT_FOUND))
    if method not in ("GET", "HEAD"):
        return _written(_said(HTTPStatus.METHOD_NOT_ALLOWED), "Allow: GET, HEAD")
    try:
        answer = route()
    except Exception:
        logger.exception("Port could not answer target=%s", target)
        answer = _said(HTTPStatus.INTERNAL_SERVER_ERROR)
    written = _written(answer)
    return written if method == "GET" else written[: len(written) - len(answer.body)]


def _said(status: HTTPStatus) -> Answer:
    return Answer(status, PLAIN, f"{status.phrase}\n".encode())


def _written(answer: Answer, *headers: str) -> bytes:
    lines = [
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}",
        f"Date: {formatdate(usegmt=True)}",
        f"Content-Type: {answer.content_type}",
        f"Content-Length: {len(answer.body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.body
