"""The worker's connection to the database: one transaction records a batch and claims the next."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.engine import workers
from taskqueue.engine.connections import (
    open_worker_connection,
    own_session,
    transaction,
)
from taskqueue.engine.limits import Limits
from taskqueue.engine.notify import Listener
from taskqueue.engine.record import record, record_each, write_logs, write_notes
from taskqueue.engine.rows import Claimed, Held, LogLine, Note
from taskqueue.engine.tally import Tally
from taskqueue.engine.wording import wording_for
from taskqueue.engine.workers import Registered
from taskqueue.outcomes import Outcome
from taskqueue.worker.claims import Claims
from taskqueue.worker.lanes import Lanes
from taskqueue.worker.logs import one_line

logger = logging.getLogger("taskqueue.worker")


class Intake:
    """One connection, on which the worker records, claims and listens."""

    def __init__(
        self,
        settings: Settings,
        *,
        lanes: Lanes,
        worker_name: str,
        registered: Registered,
        slots: int,
        heard: Callable[[str], None],
        tally: Tally,
    ) -> None:
        self._limits = Limits.of(settings)
        self._lease_duration: timedelta = settings.LEASE_DURATION
        self._worker_name = worker_name
        self._claims = Claims(
            lanes,
            worker_name=worker_name,
            slots=slots,
            lease_duration=settings.LEASE_DURATION,
        )
        self._registered = registered
        self._heard = heard
        self._tally = tally
        self._connection: BaseDatabaseWrapper | None = None
        self._is_idle = False
        self.listener: Listener | None = None

    def open(self) -> None:
        """Connect and begin to listen, where that has not been done."""
        if self._connection is None:
            silence = self._lease_duration.total_seconds() / 3
            self._connection = open_worker_connection(silence=silence)
            self._is_idle = False
            listener = Listener(self._connection, self._heard)
            # Who hears himself has a session of his own.
            self.listener = listener if listener.start() else None
            if self.listener is not None:
                own_session(self._connection)

    @property
    def connection(self) -> BaseDatabaseWrapper:
        """The connection; `open` comes first."""
        assert self._connection is not None
        return self._connection

    @property
    def is_sqlite(self) -> bool:
        """Whether it works on SQLite."""
        return self.connection.vendor == "sqlite"

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        self.listener = None
        if connection is not None:
            try:
                connection.close()
            except Exception as error:
                logger.debug("Connection did not close error=%s", error)

    def exchange(
        self,
        outcomes: list[Outcome],
        lines: list[LogLine],
        notes: list[Note],
        *,
        want: int,
        unknown: list[str],
    ) -> tuple[dict[int, str], list[Claimed]]:
        """Record a batch and claim the next in one transaction.

        Raises OperationalError and InterfaceError when the database is in trouble; everything
        may then be sent again, for the fence sorts out what had been recorded.
        """
        connection = self.connection
        try:
            with self._tally.guard(), transaction(connection):
                write_logs(connection, lines)
                write_notes(connection, notes)
                recorded = record(connection, outcomes, limits=self._limits, tally=self._tally)
                return recorded, self._claims.claim(connection, want, unknown)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.warning("Batch refused, looking for the reason error=%s", one_line(error))
        self._write_reports(lines, notes)
        recorded = record_each(connection, outcomes, limits=self._limits, tally=self._tally)
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
        return wording_for(self.connection).unknown_leases(
            self.connection,
            worker=self._worker_name,
            known=held,
            since=self._registered.started_at,
        )

    def resolve(self, lease_ids: list[int]) -> tuple[list[int], list[int]]:
        """Of attempts whose COMMIT got no answer: those that ended, those that still run."""
        seconds = self._lease_duration.total_seconds()
        with transaction(self.connection):
            renewal = wording_for(self.connection).renew(
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
