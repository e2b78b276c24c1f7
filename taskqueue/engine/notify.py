"""Waking workers: `NOTIFY` where there is one, and nothing where polling must do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from django.db.backends.base.base import BaseDatabaseWrapper

CHANNEL = "taskqueue"


def wake(connection: BaseDatabaseWrapper, payload: str) -> None:
    """Wake all workers once the caller's transaction commits."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))


class Listener:
    """A worker's ear, on a connection that it uses for its statements too."""

    def __init__(self, connection: BaseDatabaseWrapper, heard: Callable[[str], None]) -> None:
        self._connection = connection
        self._heard = heard
        self.is_proven = False

    def start(self) -> bool:
        """Listen, and prove it by a notification to oneself.

        PgBouncer in transaction mode swallows LISTEN without an error; polling takes over.
        """
        if self._connection.vendor != "postgresql":
            return False
        session = cast(Any, self._connection.connection)
        proof = f"proof {id(self)}"
        received: list[str] = []

        def take_proof(notify: Any) -> None:
            received.append(notify.payload)

        session.add_notify_handler(take_proof)
        with self._connection.cursor() as cursor:
            cursor.execute(f"LISTEN {CHANNEL}")
            cursor.execute("SELECT pg_notify(%s, %s)", (CHANNEL, proof))
            cursor.execute("SELECT 1")
        session.remove_notify_handler(take_proof)
        self.is_proven = proof in received
        session.add_notify_handler(self._on_notify)
        return self.is_proven

    def _on_notify(self, notify: Any) -> None:
        if not notify.payload.startswith("proof "):
            self._heard(notify.payload)

    def fileno(self) -> int:
        """The socket that becomes readable when there is something to hear."""
        return int(cast(Any, self._connection.connection).fileno())

    def hear(self) -> None:
        """Take in what has arrived, without waiting. Raises OperationalError on a lost session."""
        from django.db import OperationalError

        session = cast(Any, self._connection.connection)
        try:
            session.pgconn.consume_input()
            while notify := session.pgconn.notifies():
                self._heard(notify.extra.decode())
        except Exception as error:
            raise OperationalError(str(error)) from error
