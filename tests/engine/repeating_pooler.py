"""A pooler in transaction mode that says to its clients what servers said when it connected.

PgBouncer names a process of its own to each client. pgagroal and others repeat the server's words.
"""

from __future__ import annotations

import socket
import struct
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

SSL_REQUEST, GSS_REQUEST = (struct.pack("!ii", 8, code) for code in (80877103, 80877104))
IDLE, GOODBYE = b"I", b"X"


class ServerSession:
    """A connection to the server, and what the server said when it was opened."""

    def __init__(self, port: int, parameters: bytes) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.sendall(struct.pack("!i", len(parameters) + 4) + parameters)
        self.greeting = self.answer()

    def answer(self) -> list[bytes]:
        """The messages up to the one that says that the server is ready."""
        messages = [_message(self.socket)]
        while messages[-1][:1] != b"Z":
            messages.append(_message(self.socket))
        return messages

    def ask(self, statement: str) -> list[bytes]:
        """Send a statement and return the messages with its rows."""
        text = statement.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!i", len(text) + 4) + text)
        return [message for message in self.answer() if message[:1] == b"D"]


class RepeatingPooler:
    """Clients get the session that was given back last, or the one that greeted them if it is idle.

    There is no authentication and no encryption.
    """

    def __init__(self, port: int, *, sessions: int, prefers_greeter: bool) -> None:
        self._server_port = port
        self._count = sessions
        self._prefers_greeter = prefers_greeter
        self._all: list[ServerSession] = []
        self._idle: list[ServerSession] = []
        self._clients = 0
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for each in [*self._sockets, *(session.socket for session in self._all)]:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def left_behind(self) -> list[bytes]:
        """Return the channels, the prepared statements and the settings of its sessions."""
        found: list[bytes] = []
        for session in self._all:
            found += session.ask("SELECT pg_listening_channels()")
            found += session.ask("SELECT statement FROM pg_prepared_statements")
            found += session.ask(
                "SELECT name FROM pg_settings WHERE source = 'session' AND name <> 'TimeZone'"
            )
        return found

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._sockets.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError, EOFError), client:
            parameters = _startup(client)
            greeter = self._greeter(parameters)
            client.sendall(b"".join(greeter.greeting))
            while True:
                self._transaction(client, greeter)

    def _greeter(self, parameters: bytes) -> ServerSession:
        with self._changed:
            while len(self._all) < self._count:
                self._all.append(ServerSession(self._server_port, parameters))
                self._idle.append(self._all[-1])
            self._clients += 1
            return self._all[self._clients % self._count if self._prefers_greeter else -1]

    def _take(self, greeter: ServerSession) -> ServerSession:
        with self._changed:
            self._changed.wait_for(lambda: self._idle)
            chosen = greeter if self._prefers_greeter and greeter in self._idle else self._idle[-1]
            self._idle.remove(chosen)
            return chosen

    def _give_back(self, session: ServerSession) -> None:
        with self._changed:
            self._idle.append(session)
            self._changed.notify()

    def _transaction(self, client: socket.socket, greeter: ServerSession) -> None:
        """Serve a client from its first message until it is outside of a transaction again."""
        message = _message(client)
        if message[:1] == GOODBYE:
            raise EOFError
        session = self._take(greeter)
        try:
            while True:
                session.socket.sendall(message)
                if message[:1] in b"QS":
                    answer = session.answer()
                    client.sendall(b"".join(answer))
                    if answer[-1].endswith(IDLE):
                        return
                message = _message(client)
        finally:
            self._give_back(session)


def _startup(client: socket.socket) -> bytes:
    while True:
        head = _exactly(client, 4)
        body = _exactly(client, struct.unpack("!i", head)[0] - 4)
        if head + body not in (SSL_REQUEST, GSS_REQUEST):
            return body
        client.sendall(b"N")


def _message(sock: socket.socket) -> bytes:
    head = _exactly(sock, 5)
    return head + _exactly(sock, struct.unpack("!i", head[1:])[0] - 4)


def _exactly(sock: Any, size: int) -> bytes:
    found = b""
    while len(found) < size:
        if not (part := sock.recv(size - len(found))):
            raise EOFError
        found += part
    return found
