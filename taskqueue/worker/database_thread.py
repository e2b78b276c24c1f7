"""The thread that talks to the database, one request at a time.

The main thread sends a request and goes on serving children: limits are kept and crashes seen while
the database takes its time, or is away.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue

from django.db import DatabaseError, InterfaceError

from taskqueue.engine.connections import project_connection
from taskqueue.engine.notify import Listener
from taskqueue.engine.transient_errors import is_outage
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.duties import Duties
from taskqueue.worker.worker_session import Exchange, WorkerSession

logger = logging.getLogger("taskqueue.worker")


class DatabaseThread:
    """Carries out requests, and wakes the main thread when a report is there."""

    def __init__(self, session: WorkerSession, duties: Duties, wake: Callable[[], None]) -> None:
        self._session = session
        self._duties = duties
        self._wake = wake
        self._requests: SimpleQueue[Exchange | None] = SimpleQueue()
        self._reports: SimpleQueue[Exchange] = SimpleQueue()
        self.under_way: Exchange | None = None
        self._is_outage = False  # Whether the database was away when this thread last asked it.
        self.thread = threading.Thread(target=self._run, name="taskqueue-database", daemon=True)
        self.thread.start()

    # From the main thread

    def send(self, request: Exchange) -> None:
        """Begin a request; the one before must have been reported."""
        self.under_way = request
        self._requests.put(request)

    def report(self) -> Exchange | None:
        """The report of the request under way, once it is there."""
        if self.under_way is None or self._reports.empty():
            return None
        self.under_way = None
        return self._reports.get()

    @property
    def listener(self) -> Listener | None:
        """The listener; only between two requests, for they have its connection to themselves."""
        return self._session.listener if self.under_way is None else None

    def hear(self) -> Exception | None:
        """Take in notifications between two requests; the error where the connection is lost."""
        if self.listener is not None:
            try:
                self.listener.hear()
            except (DatabaseError, InterfaceError, OSError) as error:
                self._session.close()
                return error
        return None

    def stop(self) -> None:
        """End the thread, unless the database keeps it."""
        self._requests.put(None)
        self.thread.join(timeout=5)

    # In the thread

    def _run(self) -> None:
        while (exchange := self._requests.get()) is not None:
            try:
                self._session.carry_out(exchange)
                if self._is_outage:
                    self._is_outage = False
                    self._duties.spare(time.monotonic())
                if exchange.with_duties:
                    connection = self._session.connection
                    exchange.has_ready = self._duties.step(connection, time.monotonic())
                    exchange.duties_at = self._duties.next_at
            except (DatabaseError, InterfaceError, OSError) as error:
                exchange.error = error
                self._is_outage = self._is_outage or is_outage(error)
            except Exception as error:
                logger.exception("Request to the database failed")
                exchange.error = error
            if exchange.error is not None:
                self._session.close()
                close_quietly(project_connection())
            self._reports.put(exchange)
            self._wake()
        self._session.end()
        close_quietly(project_connection())
