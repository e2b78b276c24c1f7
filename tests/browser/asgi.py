"""The site of the tests on a real ASGI server, in a thread of this process."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

PATIENCE = 60.0


@contextmanager
def asgi_served() -> Iterator[Any]:
    """Serve the admin, the API and the static files; `url` is where."""
    uvicorn = pytest.importorskip("uvicorn")
    from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
    from django.core.asgi import get_asgi_application

    config = uvicorn.Config(
        ASGIStaticFilesHandler(get_asgi_application()),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        # Streams are open for minutes; whoever stops the server does not wait for them.
        timeout_graceful_shutdown=1,
    )
    server = Server(uvicorn.Server(config))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server.start(listener)
        try:
            yield SimpleNamespace(url=f"http://127.0.0.1:{listener.getsockname()[1]}")
        finally:
            server.stop()


class Server:
    """A server and its thread."""

    def __init__(self, server: Any) -> None:
        self._server = server

    def start(self, listener: socket.socket) -> None:
        """Accept from now on: the socket listens already, and clients wait for the server."""
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [listener]}, daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """End the server with all that it has open."""
        self._server.should_exit = True
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
