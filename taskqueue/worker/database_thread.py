"""The thread with the worker's database session, which carries out one request at a time.

The main thread sends a request and continues to serve children: time limits are enforced and
crashes noticed even while the database is slow or unavailable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import TYPE_CHECKING

from django.db import DatabaseError, InterfaceError

from taskqueue.core.outcomes import Outcome
from taskqueue.engine.connections import project_connection
from taskqueue.engine.sessions import is_sqlite
from taskqueue.engine.transient_errors import is_outage
from taskqueue.engine.workflows.any_workflows import is_any_running
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.exchange import Exchange
from taskqueue.worker.late_imports import PAUSE, LateImports
from taskqueue.worker.standing import StandingClaim
from taskqueue.worker.wakeup import WakePipe
from taskqueue.worker.worker_session import WorkerSession
from taskqueue.worker.workflows import StepEnds, give_inputs

if TYPE_CHECKING:
    from taskqueue.worker.duties import Duties

logger = logging.getLogger("taskqueue.worker")

# Seconds between two looks for unannounced tasks.
POLL_LISTENING, POLL_BLIND, POLL_SQLITE = 2.0, 1.0, 0.25
# Seconds after a notification that began no claim, in which others wait to be heard together.
HEAR_TOGETHER = 0.003


class DatabaseThread:
    """Carries out requests, and wakes the main thread when a report is ready."""

    def __init__(
        self,
        session: WorkerSession,
        wake: Callable[[], None],
        make_duties: Callable[[], Duties] | None = None,
        imports: LateImports | None = None,
        step_ends: StepEnds | None = None,
        standing: StandingClaim | None = None,
    ) -> None:
        self._session = session
        self._imports = imports or LateImports()
        self._make_duties = make_duties
        self._duties: Duties | None = None
        self._step_ends = step_ends or StepEnds(self._imports)
        self._wake = wake
        self._standing = standing or StandingClaim(deque(), lambda heard: ())
        self._is_sent = WakePipe()
        self._requests: SimpleQueue[Exchange | None] = SimpleQueue()
        self._reports: SimpleQueue[Exchange] = SimpleQueue()
        self.under_way: Exchange | None = None
        self.sent_at = 0.0  # When the last request was sent, by the monotonic clock.
        self._lost: Exception | None = None
        self._failure: Exception | None = None
        self._is_outage = False  # Whether the database was away at the last request.
        self.thread = threading.Thread(target=self._run, name="taskqueue-database", daemon=True)
        self.thread.start()

    # From the main thread

    def send(self, request: Exchange) -> None:
        """Begin a request; the previous one must have been reported."""
        self.under_way = request
        self.sent_at = time.monotonic()
        self._put(request)

    def _put(self, request: Exchange | None) -> None:
        self._requests.put(request)
        if self.owns_session:
            self._is_sent.wake()

    def leave(self, claim: Exchange) -> None:
        """Let this claim begin by itself if tasks are announced, until `take_back`."""
        self._standing.leave(claim)

    def take_back(self) -> bool:
        """Withdraw the claim that was left. Return whether it has begun, as the present request."""
        if (begun := self._standing.take_back()) is None:
            return False
        self.under_way, self.sent_at = begun, time.monotonic()
        return True

    def overtake(self) -> None:
        """Note that a batch was recorded while the present request is under way."""
        if self.under_way is not None:
            self.under_way.is_overtaken = True

    def report(self) -> Exchange | None:
        """Return the report of the request under way, once it is ready.

        Raises RuntimeError if the thread has ended unexpectedly, after its last report.
        """
        # Read first: the thread puts its last report before it fails.
        failure = self._failure
        if self.under_way is not None and self.has_report:
            self.under_way = None
            if failure is not None:
                self._wake()  # For another turn, which raises.
            return self._reports.get()
        if failure is not None:
            raise RuntimeError("The database thread has failed.") from failure
        return None

    @property
    def has_report(self) -> bool:
        """Whether a report is ready."""
        return not self._reports.empty()

    def take_lost(self) -> Exception | None:
        """Return the error by which the connection was lost, if no request was under way."""
        if (lost := self._lost) is not None:
            self._lost = None
        return lost

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes that the request under way will record."""
        return self.under_way.outcomes if self.under_way else []

    @property
    def owns_session(self) -> bool:
        """Whether the session is known to be the worker's alone; then this thread listens."""
        return self._session.listener is not None

    @property
    def poll_interval(self) -> float:
        """Seconds between two looks for unannounced tasks, unless an option sets them."""
        if is_sqlite(project_connection()):
            return POLL_SQLITE
        return POLL_LISTENING if self.owns_session else POLL_BLIND

    def cancel(self) -> None:
        """Ask the server to cancel the statement under way; the request then ends with an error."""
        if self.under_way is not None:
            self._session.cancel()

    def stop(self) -> None:
        """End the thread, unless a database call holds it up."""
        self._put(None)
        self.thread.join(timeout=5)
        if not self.thread.is_alive():
            self._is_sent.close()

    # In the thread

    def _next(self) -> Exchange | None:
        """Wait for a request, and hear notifications meanwhile, which may begin a standing claim.

        Only this thread uses the connection, whether a request is under way or not.
        """
        while (listener := self._session.listener) is not None and self._requests.empty():
            try:
                if self._is_sent.wait_beside(listener.fileno()):
                    listener.hear()
            except Exception as error:  # The driver's own ones too.
                self._session.close()
                self._lost = error
                self._wake()
            if (claim := self._standing.begin()) is not None:
                self._wake()  # It gets ready for the report while the server works.
                return claim
            if self._standing.is_announced:
                self._wake()
                # Each turn of the main thread takes in all that was heard before it.
                self._is_sent.wait(HEAR_TOGETHER)
        return self._requests.get()

    def _run(self) -> None:
        try:
            self._carry_out_all()
        except Exception as error:
            # Otherwise the worker would renew its leases for ever, and record nothing.
            self._failure = error
            self._wake()

    def _carry_out_all(self) -> None:
        while (exchange := self._next()) is not None:
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
