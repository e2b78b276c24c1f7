"""The worker's database session: one transaction records a batch and claims the next."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.core.log_text import one_line
from taskqueue.core.outcomes import Outcome, Recorded
from taskqueue.engine import workers
from taskqueue.engine.connections import open_worker_connection, transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.notify import Listener
from taskqueue.engine.record import record, record_each, write_logs, write_notes
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Claimed, Held, LogLine, Note
from taskqueue.engine.session_proof import NoWitness, has_own_session
from taskqueue.engine.sessions import is_sqlite, leave_session, own_session
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import Registered
from taskqueue.worker.claims import Claims
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.options import QueueQuotas, WorkerOptions

logger = logging.getLogger("taskqueue.worker")

# Seconds until the next try to prove a session, where there was no connection for a witness.
PROOF_INTERVAL = 60.0


class WorkerSession:
    """One connection, on which the worker records, claims and listens."""

    def __init__(
        self,
        options: WorkerOptions,
        settings: Settings,
        *,
        registered: Registered,
        heard: Callable[[str], None],
        tally: Tally,
    ) -> None:
        self._policy = EndPolicy.of(settings)
        self._lease_duration: timedelta = settings.LEASE_DURATION
        self._worker_name = options.name
        self._claims = Claims(
            QueueQuotas(options.queues),
            worker_name=options.name,
            slots=options.concurrency,
            lease_duration=settings.LEASE_DURATION,
        )
        self._registered = registered
        self._heard = heard
        self._tally = tally
        self._connection: BaseDatabaseWrapper | None = None
        self._is_idle = False
        self._prove_at = 0.0  # When to find out whether the session is the worker's own.
        self._listens: bool | None = None  # The value in the worker's row.
        self.listener: Listener | None = None

    def open(self) -> None:
        """Connect, and begin to listen on a session of the worker's own."""
        if self._connection is None:
            self._connection = open_worker_connection(silence=self._silence)
            self._is_idle = False
            self._prove_at = 0.0
        if time.monotonic() >= self._prove_at:
            self._try_to_listen(self._connection)

    @property
    def _silence(self) -> float:
        return self._lease_duration.total_seconds() / 3

    def _try_to_listen(self, connection: BaseDatabaseWrapper) -> None:
        if self.is_sqlite:
            self._prove_at = math.inf
            return
        is_own: bool | None = None
        try:
            is_own = has_own_session(connection, silence=self._silence)
            self._prove_at = math.inf
        except NoWitness as error:
            self._prove_at = time.monotonic() + PROOF_INTERVAL
            logger.debug("No second connection, polling for now error=%s", one_line(error))
        if is_own:
            own_session(connection)
            listener = Listener(connection, self._heard)
            listener.start()
            self.listener = listener
        if is_own != self._listens:
            workers.set_listening(connection, worker_id=self._registered.id, listens=is_own)
            self._listens = is_own

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection; `open` comes first."""
        assert self._connection is not None
        return self._connection

    @property
    def is_sqlite(self) -> bool:
        """Whether it works on SQLite."""
        return is_sqlite(self.connection)

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

    def record_and_claim(
        self,
        outcomes: list[Outcome],
        lines: list[LogLine],
        notes: list[Note],
        *,
        want: int,
        unknown: list[str],
    ) -> tuple[dict[int, Recorded], list[Claimed]]:
        """Record a batch and claim the next in one transaction.

        Raises OperationalError and InterfaceError when the database is in trouble; everything
        may then be sent again, for the fence sorts out what had been recorded.
        """
        connection = self.connection
        try:
            with self._tally.guard(), transaction(connection):
                write_logs(connection, lines)
                write_notes(connection, notes)
                recorded = record(connection, outcomes, policy=self._policy, tally=self._tally)
                return recorded, self._claims.claim(connection, want, unknown)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.warning("Batch refused, looking for the reason error=%s", one_line(error))
        self._write_reports(lines, notes)
        recorded = record_each(connection, outcomes, policy=self._policy, tally=self._tally)
        with transaction(connection):
            return recorded, self._claims.claim(connection, want, unknown)

    def look_and_claim(self, want: int, unknown: list[str]) -> list[Claimed]:
        """Claim, with nothing to write before it."""
        return self._claims.look_and_claim(self.connection, want, unknown)

    def _write_reports(self, lines: list[LogLine], notes: list[Note]) -> None:
        try:
            with transaction(self.connection):
                write_logs(self.connection, lines)
                write_notes(self.connection, notes)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.error("Log lines refused, and dropped error=%s", one_line(error))

    # After trouble

    def unknown_leases(self, held: list[int]) -> list[int]:
        """Leases whose claim was committed while its answer was lost."""
        return workers.unknown_leases(
            self.connection,
            worker=self._worker_name,
            known=held,
            since=self._registered.started_at,
        )

    def resolve(self, lease_ids: list[int]) -> tuple[list[int], list[int]]:
        """Of attempts whose COMMIT got no answer: those that ended, those that still run."""
        seconds = self._lease_duration.total_seconds()
        with transaction(self.connection):
            renewal = dialect_for(self.connection).renew(
                self.connection, [Held(lease_id, seconds, None) for lease_id in lease_ids]
            )
        return list(renewal.ended), list(renewal.renewed)

    def declare_idle(self, is_idle: bool) -> bool:
        """Say whether an enqueue has to wake this worker; whether that is news."""
        if self.listener is None or self._is_idle == is_idle:
            return False
        workers.set_idle(self.connection, worker_id=self._registered.id, is_idle=is_idle)
        self._is_idle = is_idle
        return True
