"""Wake workers by `NOTIFY`, and prove that a session can listen because no pooler shares it."""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from secrets import token_hex
from typing import Any, cast

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.sessions import is_postgresql
from taskqueue.engine.statement import fetch

CHANNEL = "taskqueue"
# The payload is the queue in which ordinary tasks were enqueued, or one of these values.
ANYWHERE = ""  # There may be other work to claim, or work that is due later.
PLACES = "!places"  # There may be tasks under limits to claim. No queue has this name.
STOP = "!stop"  # A request that the next ping finds. No queue has this name.


def wake(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Wake all workers once the caller's transaction commits."""
    if is_postgresql(connection):
        notify(connection, payload)


def notify(connection: BaseDatabaseWrapper, payload: str, *, channel: str = CHANNEL) -> None:
    """Notify the listeners of a channel once the caller's transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", (channel, payload))


class Listener:
    """Listens on a connection that is also used for other statements.

    LISTEN outlives a transaction: use this only if `has_own_session` is true.
    """

    def __init__(
        self,
        connection: BaseDatabaseWrapper,
        heard: Callable[[str], None],
        *,
        channel: str = CHANNEL,
    ) -> None:
        self._connection = connection
        self._heard = heard
        self._channel = channel
        self._hears_itself = True

    @property
    def _session(self) -> Any:
        return cast(Any, self._connection.connection)

    def start(self) -> None:
        """Begin to listen."""
        self._session.add_notify_handler(self._on_notify)
        self._execute("LISTEN")

    def stop(self) -> None:
        """Stop listening."""
        self._session.remove_notify_handler(self._on_notify)
        self._execute("UNLISTEN")

    def _execute(self, verb: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(f"{verb} {self._channel}")

    @contextmanager
    def leaving_out_own_work(self) -> Iterator[None]:
        """Ignore notifications about tasks that this session itself makes ready meanwhile."""
        self._hears_itself = False
        try:
            yield
        finally:
            self._hears_itself = True

    def _on_notify(self, notification: Any) -> None:
        """Handle a notification that came with the answer to a statement."""
        left_out = {PLACES} if self._hears_itself else {PLACES, ANYWHERE}
        is_own = notification.pid == self._session.info.backend_pid
        if not is_own or notification.payload not in left_out:
            self._heard(notification.payload)

    def fileno(self) -> int:
        """Return the socket that becomes readable when there are notifications."""
        return int(self._session.fileno())

    def hear(self) -> None:
        """Read what has arrived, without waiting. Raises OperationalError on a lost session."""
        try:
            self._session.pgconn.consume_input()
            while notification := self._session.pgconn.notifies():
                self._heard(notification.extra.decode())
        except Exception as error:
            raise OperationalError(str(error)) from error


# Seconds for a notification to arrive; with a direct connection it takes milliseconds.
LONGEST_DELIVERY = 10.0
# ProxySQL itself answers `SELECT pg_backend_pid()`, but this query must reach the server.
SERVER_PROCESS = "SELECT pid FROM pg_stat_get_activity(pg_backend_pid())"


class NoWitness(OperationalError):
    """The server accepts no second connection at present, so nothing can be proven."""


def has_own_session(connection: BaseDatabaseWrapper, *, silence: float) -> bool:
    """Return whether the server process serves this connection alone, as long as it is open.

    Both must be true:

    1. The server process is the one that the server named when the connection was opened. Poolers
       name a process of their own. A second connection checks the same, because a pooler may repeat
       an earlier answer of a server: then both connections get the same name.
    2. A notification from the second connection arrives while this one is idle outside of a
       transaction. In transaction mode a pooler has given the server process back by then.

    Nothing that outlives a transaction is set unless the first is true. A pooler in session mode
    that names its own processes fails the first check too: nothing distinguishes it from one in
    transaction mode.

    Raises `NoWitness` if no second connection can be opened.
    """
    process = _named_process(connection)
    if process is None:
        return False
    witness = _witness(silence)
    try:
        if _named_process(witness) in (None, process):
            return False
        return _hears_while_idle(connection, witness)
    finally:
        witness.close()


def _named_process(connection: BaseDatabaseWrapper) -> int | None:
    """Return the server process, if it is the one named when the connection was opened."""
    if not is_postgresql(connection):
        return None
    session = cast(Any, connection.connection)
    rows = fetch(connection, SERVER_PROCESS)
    named = int(session.info.backend_pid)
    return named if rows == [(named,)] else None


def _witness(silence: float) -> BaseDatabaseWrapper:
    try:
        return open_worker_connection(silence=silence)
    except OperationalError as error:
        raise NoWitness(str(error)) from error


def _hears_while_idle(connection: BaseDatabaseWrapper, witness: BaseDatabaseWrapper) -> bool:
    channel = f"{CHANNEL}_{token_hex(8)}"
    heard: list[str] = []
    listener = Listener(connection, heard.append, channel=channel)
    listener.start()
    try:
        notify(witness, "", channel=channel)
        ends_at = time.monotonic() + LONGEST_DELIVERY
        with selectors.DefaultSelector() as selector:
            selector.register(listener.fileno(), selectors.EVENT_READ)
            left = LONGEST_DELIVERY
            # The last check begins after the time is over, because this process may have had no
            # turn before.
            while not heard and left > 0:
                left = ends_at - time.monotonic()
                selector.select(max(0.0, left))
                listener.hear()
        # A notification that arrives with the answer to a statement proves nothing.
        return bool(heard)
    finally:
        listener.stop()
