"""Waking workers: `NOTIFY` where there is one, and nothing where polling must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.db import OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.engine.sessions import is_postgresql

CHANNEL = "taskqueue"


def wake(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Wake all workers once the caller's transaction commits."""
    if is_postgresql(connection):
        notify(connection, payload)


def notify(connection: BaseDatabaseWrapper, payload: str, *, channel: str = CHANNEL) -> None:
    """Notify the listeners of a channel once the caller's transaction commits."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", (channel, payload))


class Listener:
    """Listens on a connection that is used for other statements too.

    LISTEN outlives a transaction: use it only where `session_proof` allows it.
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

    @property
    def _session(self) -> Any:
        return cast(Any, self._connection.connection)

    def start(self) -> None:
        """Listen."""
        self._session.add_notify_handler(self._on_notify)
        self._execute("LISTEN")

    def stop(self) -> None:
        """Listen no more."""
        self._session.remove_notify_handler(self._on_notify)
        self._execute("UNLISTEN")

    def _execute(self, verb: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(f"{verb} {self._channel}")

    def _on_notify(self, notification: Any) -> None:
        """A notification came with the answer to a statement."""
        self._heard(notification.payload)

    def fileno(self) -> int:
        """The socket that becomes readable when there is something to hear."""
        return int(self._session.fileno())

    def hear(self) -> None:
        """Take in what has arrived, without waiting. Raises OperationalError on a lost session."""
        try:
            self._session.pgconn.consume_input()
            while notification := self._session.pgconn.notifies():
                self._heard(notification.extra.decode())
        except Exception as error:
            raise OperationalError(str(error)) from error
