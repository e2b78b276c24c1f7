"""The worker's connection to the database: one transaction records a batch and claims the next."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import timedelta

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.conf import Settings
from taskqueue.engine import workers
from taskqueue.engine.apart import claim_apart, queues_apart
from taskqueue.engine.connections import (
    open_worker_connection,
    own_session,
    owns_session,
    transaction,
)
from taskqueue.engine.limits import Limits
from taskqueue.engine.notify import Listener
from taskqueue.engine.record import record, record_each, write_logs, write_notes
from taskqueue.engine.rows import Claimed, Held, LogLine, Note
from taskqueue.engine.wording import wording_for
from taskqueue.engine.workers import Registered
from taskqueue.outcomes import Outcome
from taskqueue.worker.lanes import Lanes

logger = logging.getLogger("taskqueue.worker")

DISCOVERY_INTERVAL = 1.0
"""Seconds for which a worker of all queues trusts the list of those that have tasks."""
APART_INTERVAL = 0.05
"""Seconds between two looks for tasks of several or named workers, while others keep it busy."""


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
    ) -> None:
        self._slots = slots
        self._limits = Limits.of(settings)
        self._lease_duration: timedelta = settings.LEASE_DURATION
        self._lanes = lanes
        self._worker_name = worker_name
        self._registered = registered
        self._heard = heard
        self._connection: BaseDatabaseWrapper | None = None
        self._known_queues: list[str] = []
        self._discovered_at = 0.0
        self._remembered: set[str] = set()
        self._is_idle = False
        self._is_busy = False
        """Whether the last claim gave all that was wanted."""
        self._looked_apart_at = 0.0
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
            with transaction(connection):
                write_logs(connection, lines)
                write_notes(connection, notes)
                recorded = record(connection, outcomes, limits=self._limits)
                return recorded, self._claim(want, unknown, self._queues_apart(want))
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.warning("Batch refused, looking for the reason error=%s", str(error).strip())
        self._write_reports(lines, notes)
        recorded = record_each(connection, outcomes, limits=self._limits)
        with transaction(connection):
            return recorded, self._claim(want, unknown, self._queues_apart(want))

    def look_and_claim(self, want: int, unknown: list[str]) -> list[Claimed]:
        """Claim, with nothing to write before it.

        On PostgreSQL the claim is a transaction of its own; on SQLite a look costs less than the
        write lock that a claim takes.
        """
        apart = self._queues_apart(want)
        if not apart and not self.is_sqlite and owns_session(self.connection):
            return self._claim(want, unknown, apart)
        if (
            not apart
            and self.is_sqlite
            and not self._lanes.serving(wording_for(self.connection).ready_queues(self.connection))
        ):
            return []
        with transaction(self.connection):
            return self._claim(want, unknown, apart)

    def _write_reports(self, lines: list[LogLine], notes: list[Note]) -> None:
        try:
            with transaction(self.connection):
                write_logs(self.connection, lines)
                write_notes(self.connection, notes)
        except (OperationalError, InterfaceError):
            raise
        except DatabaseError as error:
            logger.error("Log lines refused, and dropped error=%s", str(error).strip())

    # Claiming

    def _queues_apart(self, want: int) -> list[str]:
        """The queues where tasks wait that not every worker may take, if it is time to look."""
        now = time.monotonic()
        if want <= 0 or (self._is_busy and now - self._looked_apart_at < APART_INTERVAL):
            return []
        self._looked_apart_at = now
        return self._lanes.serving(queues_apart(self.connection, worker=self._worker_name))

    def _claim(self, want: int, unknown: list[str], apart: list[str]) -> list[Claimed]:
        """What only some workers may take goes before its equals; then what any may; the rest."""
        claimed = self._claim_apart(want, unknown, apart)
        claimed += self._claim_ordinary(want - len(claimed), unknown)
        if len(claimed) < want:
            claimed += self._claim_apart(want - len(claimed), unknown, apart)
        self._is_busy = len(claimed) >= want > 0
        return claimed

    def _claim_apart(self, want: int, unknown: list[str], names: list[str]) -> list[Claimed]:
        if not names or want <= 0:
            return []
        return claim_apart(
            self.connection,
            worker=self._worker_name,
            queue_names=names,
            unknown=unknown,
            limit=min(want, self._slots),
            lease_duration=self._lease_duration,
        )

    def _claim_ordinary(self, want: int, unknown: list[str]) -> list[Claimed]:
        connection = self.connection
        claimed: list[Claimed] = []
        names = self._queues(connection) if want > 0 else []
        while names and len(claimed) < want:
            quotas = self._lanes.quotas(names, want - len(claimed))
            found = wording_for(connection).claim(
                connection,
                worker=self._worker_name,
                quotas=quotas,
                unknown=unknown,
                lease_duration=self._lease_duration,
            )
            claimed += found
            counts = dict.fromkeys((name for name, _ in quotas), 0)
            for each in found:
                counts[each.queue_name] += 1
            short = {name for name, quota in quotas if counts[name] < quota}
            if not short:
                break
            # What a queue could not give, the others may.
            names = [name for name in names if name not in short]
            if self._lanes.serves_all:
                self._known_queues = [n for n in self._known_queues if n not in short]
        return claimed

    def _queues(self, connection: BaseDatabaseWrapper) -> list[str]:
        names = self._lanes.names
        if len(names) == 1:
            return names
        if not self._lanes.serves_all:
            return self._lanes.serving(wording_for(connection).ready_queues(connection))
        now = time.monotonic()
        if not self._known_queues or now - self._discovered_at > DISCOVERY_INTERVAL:
            self._known_queues = wording_for(connection).ready_queues(connection)
            self._discovered_at = now
            self._remember(connection, self._known_queues)
        return self._lanes.serving(self._known_queues)

    def _remember(self, connection: BaseDatabaseWrapper, names: list[str]) -> None:
        new = set(names) - self._remembered
        if new:
            self._remembered |= new
            workers.remember_queues(connection, sorted(new))

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
