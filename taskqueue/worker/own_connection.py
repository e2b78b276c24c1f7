"""A worker's own connection: open it, prove that no pooler shares it, and listen on it."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.connections import open_worker_connection
from taskqueue.engine.notify import Listener, NoWitness, has_own_session
from taskqueue.engine.sessions import (
    cancel_statement,
    is_sqlite,
    leave_session,
    own_session,
    set_wanted_events,
)
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.state import WorkerState

logger = logging.getLogger("taskqueue.worker")

# Seconds until the next try to prove a session, if there was no connection for a witness.
PROOF_INTERVAL = 60.0


class OwnConnection:
    """The connection of a worker's thread, which is opened again after an error."""

    def __init__(self, state: WorkerState, *, heard: Callable[[str], None] | None) -> None:
        self._state, self._registered = state, state.registered
        self._lease_seconds = state.lease_seconds
        self._heard = heard
        self._connection: BaseDatabaseWrapper | None = None
        self._prove_at = 0.0  # When to find out whether the session is unshared.
        self._listens: bool | None = None  # The value in the worker's row.
        self.listener: Listener | None = None

    def open(self) -> None:
        """Connect, and begin to listen if the session is unshared."""
        if self._connection is None:
            self._connection = open_worker_connection(silence=self._lease_seconds / 3)
            self._prove_at = 0.0
        if time.monotonic() >= self._prove_at:
            self._try_to_listen(self._connection)

    def _try_to_listen(self, connection: BaseDatabaseWrapper) -> None:
        if is_sqlite(connection):
            self._prove_at = math.inf
            return
        is_own: bool | None = None
        try:
            is_own = has_own_session(connection, silence=self._lease_seconds / 3)
            self._prove_at = math.inf
        except NoWitness as error:
            self._prove_at = time.monotonic() + PROOF_INTERVAL
            logger.debug("No second connection, polling for now error=%s", one_line(error))
        if is_own:
            own_session(connection)
        if self._heard is None:
            return
        self._state.is_idle = False
        if is_own:
            listener = Listener(connection, self._heard)
            listener.start()
            self.listener = listener
        if is_own != self._listens:
            workers.set_listening(connection, worker_id=self._registered.id, listens=is_own)
            self._listens = is_own

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection; call `open` first."""
        assert self._connection is not None
        return self._connection

    def want_events(self, kinds: str) -> None:
        """Let later changes by this worker cause events of these kinds, on all of its sessions."""
        self._state.wanted_events = kinds
        set_wanted_events(self.connection, kinds)

    def cancel(self) -> None:
        """Cancel the statement under way, if there is one. Another thread may call this."""
        if (connection := self._connection) is not None:
            cancel_statement(connection)

    def end(self) -> None:
        """Reset the session, and close the connection."""
        if self._connection is not None:
            try:
                leave_session(self._connection)
            except (DatabaseError, InterfaceError) as error:
                logger.debug("Session was not left clean error=%s", one_line(error))
        self.close()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        self.listener = None
        close_quietly(connection)
