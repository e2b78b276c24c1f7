"""The thread with the worker's database session, which carries out one request at a time.

The main thread sends a request and continues to serve children: time limits are enforced and
crashes noticed even while the database is slow or unavailable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError

from taskqueue.core.outcomes import Outcome
from taskqueue.engine.connections import project_connection
from taskqueue.engine.notify import Listener
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.transient_errors import is_outage
from taskqueue.engine.workflows.any_workflows import is_any_running
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.late_imports import PAUSE, LateImports
from taskqueue.worker.worker_session import WorkerSession
from taskqueue.worker.workflows import StepEnds, give_inputs

if TYPE_CHECKING:
    from taskqueue.worker.duties import Duties

logger = logging.getLogger("taskqueue.worker")

# Seconds between two looks for unannounced tasks.
POLL_LISTENING, POLL_BLIND, POLL_SQLITE = 2.0, 1.0, 0.25


class DatabaseThread:
    """Carries out requests, and wakes the main thread when a report is ready."""

    def __init__(
        self,
        session: WorkerSession,
        wake: Callable[[], None],
        make_duties: Callable[[], Duties] | None = None,
        imports: LateImports | None = None,
        step_ends: StepEnds | None = None,
    ) -> None:
        self._session = session
        self._imports = imports or LateImports()
        self._make_duties = make_duties
        self._duties: Duties | None = None
        self._step_ends = step_ends or StepEnds(self._imports)
        self._wake = wake
        self._requests: SimpleQueue[Exchange | None] = SimpleQueue()
        self._reports: SimpleQueue[Exchange] = SimpleQueue()
        self.under_way: Exchange | None = None
        self.sent_at = 0.0  # When the last request was sent, by the monotonic clock.
        self._is_outage = False  # Whether the database was away at the last request.
        self.thread = threading.Thread(target=self._run, name="taskqueue-database", daemon=True)
        self.thread.start()

    # From the main thread

    def send(self, request: Exchange) -> None:
        """Begin a request; the previous one must have been reported."""
        self.under_way = request
        self.sent_at = time.monotonic()
        self._requests.put(request)

    def overtake(self) -> None:
        """Note that a batch was recorded while the present request is under way."""
        if self.under_way is not None:
            self.under_way.is_overtaken = True

    def report(self) -> Exchange | None:
        """Return the report of the request under way, once it is ready."""
        if self.under_way is None or self._reports.empty():
            return None
        self.under_way = None
        return self._reports.get()

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that the request under way will record."""
        return self.under_way.outcomes if self.under_way else []

    @property
    def listener(self) -> Listener | None:
        """The listener; only between two requests, which have the connection to themselves."""
        return self._session.listener if self.under_way is None else None

    @property
    def owns_session(self) -> bool:
        """Whether the session is known to be the worker's alone; this may be asked at any time."""
        return self._session.listener is not None

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks for unannounced tasks, unless an option sets them."""
        if is_sqlite(project_connection()):
            return POLL_SQLITE
        return POLL_LISTENING if self.listener else POLL_BLIND

    def hear(self) -> Exception | None:
        """Read notifications between two requests. Return the error if the connection is lost."""
        if self.listener is not None:
            try:
                self.listener.hear()
            except (DatabaseError, InterfaceError, OSError) as error:
                self._session.close()
                return error
        return None

    def cancel(self) -> None:
        """Ask the server to cancel the statement under way; the request then ends with an error."""
        if self.under_way is not None:
            self._session.cancel()

    def stop(self) -> None:
        """End the thread, unless a database call holds it up."""
        self._requests.put(None)
        self.thread.join(timeout=5)

    # In the thread

    def _run(self) -> None:
        while (exchange := self._requests.get()) is not None:
            try:
                self._session.carry_out(exchange)
                if exchange.may_advance:
                    self._wake()  # More tasks may be claimed while workflows are advanced.
                self._session.advance(self._step_ends, exchange)
                self._session.claim_released(exchange)
                self._session.leave_stopped(exchange)
                give_inputs(self._session.connection, exchange)
                if exchange.looks_ahead:
                    exchange.has_steps = is_any_running(self._session.connection)
                if exchange.with_duties and self._make_duties is not None:
                    self._serve(self._make_duties, exchange)
            except (DatabaseError, InterfaceError, OSError) as error:
                exchange.error = error
                self._is_outage = self._is_outage or is_outage(error)
            except Exception as error:
                logger.exception("Request to the database failed")
                exchange.error = error
            if exchange.error is not None:
                self._session.close()
                close_quietly(project_connection())
            has_steps = exchange.has_steps
            self._reports.put(exchange)
            self._wake()
            if has_steps:
                self._imports.begin()
        self._session.end()
        close_quietly(project_connection())

    def _serve(self, make_duties: Callable[[], Duties], exchange: Exchange) -> None:
        if not self._imports.have_duties:
            exchange.duties_at = time.monotonic() + PAUSE
            return
        duties = self._duties = self._duties or make_duties()
        if self._is_outage:
            self._is_outage = False
            duties.spare()
        exchange.has_ready = duties.step(self._session.connection, time.monotonic())
        exchange.duties_at, exchange.are_duties_cut = duties.next_at, duties.periodic.is_cut
        exchange.limited_at = min(exchange.limited_at, duties.opens_at)
        self._session.want_events(duties.wanted_events)
