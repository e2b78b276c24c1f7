"""A receiver of webhooks on loopback, which answers as a test says and remembers what it got."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

CERTIFICATES = Path(__file__).parent / "certificates"
# The name in the certificate.
NAME = "hooks.test"


@dataclass(frozen=True)
class Received:
    """A request."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Reply:
    """An answer."""

    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


OK = Reply()
Answering = Callable[[Received], Reply]


@dataclass
class Receiver:
    """A running server."""

    port: int
    # What it answers next; the last of them stays.
    replies: list[Reply] = field(default_factory=lambda: [OK])
    received: list[Received] = field(default_factory=list)

    def answers(self, *replies: Reply | int) -> None:
        """Let it answer these, one after the other; the last one from then on."""
        self.replies = [Reply(each) if isinstance(each, int) else each for each in replies]

    def next_reply(self) -> Reply:
        """Return what it answers now."""
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def receiving(host: str = "127.0.0.1", *, port: int = 0, tls: bool = False) -> Iterator[Receiver]:
    """Run a receiver."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            receiver.received.append(Received(self.path, dict(self.headers.items()), body))
            reply = receiver.next_reply()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *args: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *args: Any) -> None:
            """Clients that leave are part of the tests."""

    server = Server((host, port), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "hooks.pem")
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
