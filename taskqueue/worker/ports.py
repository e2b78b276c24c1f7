"""Ports: what a worker answers over HTTP to probes and scrapers, from a thread of its parent.

One thread serves all connections of a port without waiting for any of them, so that nobody who
connects and falls silent keeps others from an answer. It runs nothing of the project's, and the
answers come from memory: a route makes no statement.
"""

from __future__ import annotations

import ipaddress
import logging
import selectors
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass

from taskqueue.worker.exchanges import Exchange, Route

logger = logging.getLogger("taskqueue.worker")

LOOPBACK = "127.0.0.1"
MOST_CONNECTIONS = 64
"""Beyond them the one that has been open for longest is dropped."""
BACKLOG = 128
ACCEPTED_AT_ONCE = 32
TICK = 1.0
"""Seconds between two looks at connections whose time is over."""


class PortRefused(Exception):
    """The system does not let the worker listen there; the message says why."""


@dataclass(frozen=True)
class Address:
    """Where to listen; port 0 lets the system choose one."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read `[HOST:]PORT`, the loopback where no host is named. Raises ValueError."""
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


class Ports:
    """The ports of one worker; flags that name the same address share one."""

    def __init__(self) -> None:
        self._routes: dict[Address, dict[str, Route]] = {}
        self._open: list[Port] = []

    def add(self, address: Address, path: str, route: Route) -> None:
        """Have `path` answered by `route` at the address; before `open` only."""
        self._routes.setdefault(address, {})[path] = route

    def open(self) -> None:
        """Listen, and begin to answer, on all of them or none. Raises `PortRefused`."""
        try:
            for address, routes in self._routes.items():
                self._open.append(Port(address, routes))
        except PortRefused:
            self.close()
            raise
        for port in self._open:
            port.start()

    def close(self) -> None:
        """Answer nothing more; after all else of the worker has ended."""
        while self._open:
            self._open.pop().close()

    @property
    def addresses(self) -> list[Address]:
        """Where it listens."""
        return [port.address for port in self._open]


class Port:
    """One listening socket, and the thread that serves it. Raises `PortRefused`."""

    def __init__(self, address: Address, routes: Mapping[str, Route]) -> None:
        self._routes = dict(routes)
        # Python's sockets are closed in whatever this process starts: children do not have it.
        self._listener = _listening(address)
        self.address = Address(address.host, self._listener.getsockname()[1])
        self._ours, self._theirs = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._exchanges: dict[Exchange, None] = {}
        """The open ones, the oldest first."""
        self._is_over = False
        self._deaf_until: float | None = None
        self._thread = threading.Thread(target=self._serve, name="taskqueue-port", daemon=True)

    def start(self) -> None:
        """Begin to answer."""
        logger.info("Port open address=%s paths=%s", self.address, ",".join(sorted(self._routes)))
        self._thread.start()

    def close(self) -> None:
        """Answer nothing more, and free the port."""
        self._is_over = True
        self._ours.send(b"!")
        if self._thread.is_alive():
            self._thread.join(timeout=2)
        self._selector.close()
        for each in (self._listener, self._ours, self._theirs):
            each.close()

    # In its thread

    def _serve(self) -> None:
        self._selector.register(self._theirs, selectors.EVENT_READ)
        self._hear()
        while not self._is_over:
            try:
                self._turn()
            except Exception:
                # Whatever a client did: it must not leave the others without an answer.
                logger.exception("Port stumbled address=%s", self.address)
                time.sleep(TICK)
        for exchange in list(self._exchanges):
            self._drop(exchange)

    def _turn(self) -> None:
        is_quiet = not self._exchanges and self._deaf_until is None
        for key, _ in self._selector.select(None if is_quiet else TICK):
            if key.fileobj is self._listener:
                self._accept()
            elif isinstance(key.data, Exchange) and key.data in self._exchanges:
                self._serve_one(key.data)
        now = time.monotonic()
        for exchange in [each for each in self._exchanges if now >= each.ends_at]:
            self._drop(exchange)
        if self._deaf_until is not None and now >= self._deaf_until:
            self._hear()

    def _hear(self) -> None:
        self._deaf_until = None
        self._selector.register(self._listener, selectors.EVENT_READ)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                client, _ = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                # Such as too many open files, which would be met again at once, for ever.
                logger.warning("Port deaf for a moment address=%s error=%s", self.address, error)
                self._selector.unregister(self._listener)
                self._deaf_until = time.monotonic() + TICK
                return
            if len(self._exchanges) >= MOST_CONNECTIONS:
                self._drop(next(iter(self._exchanges)))
            exchange = Exchange(client, self._routes)
            self._exchanges[exchange] = None
            self._selector.register(client, selectors.EVENT_READ, exchange)

    def _serve_one(self, exchange: Exchange) -> None:
        try:
            wants_to_write = exchange.go_on()
        except OSError:
            self._drop(exchange)
            return
        if exchange.is_over:
            self._drop(exchange)
            return
        events = selectors.EVENT_WRITE if wants_to_write else selectors.EVENT_READ
        self._selector.modify(exchange.socket, events, exchange)

    def _drop(self, exchange: Exchange) -> None:
        del self._exchanges[exchange]
        self._selector.unregister(exchange.socket)
        exchange.socket.close()


def _listening(address: Address) -> socket.socket:
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        listener = socket.socket(family, kind, protocol)
        try:
            # A worker that starts again need not wait for what is left of old connections.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(place)
            listener.listen(BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise PortRefused(
            f"Cannot listen on {address}: {reason}. Name another port, or 0 for any that is free."
        ) from None
    return listener
