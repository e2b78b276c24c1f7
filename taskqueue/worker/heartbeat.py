"""The heartbeat: renews leases on its own connection, and extends the deadlines of children."""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections.abc import Iterable

from django.db import DatabaseError, InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.connections import open_worker_connection, transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.live_changes import apply_live_changes
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.rows import Held, Renewal
from taskqueue.engine.tally import Tally
from taskqueue.engine.transient_errors import is_busy, is_lock_refused
from taskqueue.worker.connections import close_quietly
from taskqueue.worker.jobs import FENCE, Job
from taskqueue.worker.leases import Leases
from taskqueue.worker.memory import ProcessorShare, memory_of
from taskqueue.worker.pool import Pool
from taskqueue.worker.state import WorkerState

logger = logging.getLogger("taskqueue.worker")

RETRY = 0.5  # Seconds between two tries to reach the database.
# On SQLite: seconds until the next try for the write lock, which other workers must not always get
# first.
RETRY_BUSY = 0.02
# On SQLite: seconds of one try. A longer try would check the lock only every 100 ms.
BUSY_TIMEOUT = 0.1


class Heartbeat:
    """Pings in a thread, which neither a busy main thread nor a body in a child can delay."""

    def __init__(self, state: WorkerState, pool: Pool, leases: Leases) -> None:
        self._state = state
        self._lease_seconds = state.lease_seconds
        self._interval = state.settings.PING_INTERVAL.total_seconds()
        self._policy = EndPolicy.of(state.settings)
        self._pool = pool
        self._leases = leases
        self._vitals = state.vitals
        self._tally = Tally()
        self._connection: BaseDatabaseWrapper | None = None
        self._wake = threading.Event()
        # The change that the row shows, and the definitions that it excludes.
        self._told: tuple[workers.Wanted | None, frozenset[str]] = None, frozenset()
        self._is_over = False
        self._is_lost = False
        self._processor_share = ProcessorShare()
        # Whether the last ping could not renew leases because another session had locked them.
        self._has_missed = False
        self.thread = threading.Thread(target=self._beat, name="taskqueue-heartbeat", daemon=True)

    def hurry(self) -> None:
        """Ping now."""
        self._wake.set()

    def stop(self) -> None:
        """End the thread after the ping that may be under way."""
        self._is_over = True
        self._wake.set()
        self.thread.join(timeout=5)

    def _beat(self) -> None:
        while not self._is_over:
            self._wake.wait(self._try_step())
            self._wake.clear()
        self._close()

    def _try_step(self) -> float:
        """Ping once. Return how long to wait until the next ping."""
        began = time.monotonic()
        held = list(self._leases.held.values())
        try:
            self.step(began, held)
        except (DatabaseError, InterfaceError, OSError) as error:
            return self._on_error(error)
        except Exception:
            logger.exception("Ping failed")
            self._vitals.failed()
            return RETRY
        self._vitals.renewed(began)
        if self._is_lost:
            self._is_lost = False
            logger.info("Pings go on")
        return min(
            self._interval,
            RETRY if self._has_missed else self._interval,
            *(job.ping_seconds for job in held if job.ping_seconds is not None),
            *(job.lease_seconds / 4 for job in held if job.lease_seconds is not None),
        )

    def step(self, began: float, held: list[Job]) -> None:
        """Renew the held leases, give a sign of life, and extend the deadlines of the children."""
        if self._connection is None:
            self._connection = open_worker_connection(
                silence=self._lease_seconds / 3, busy_timeout=BUSY_TIMEOUT
            )
        connection = self._connection
        pids = [os.getpid(), *self._pool.process_ids()]
        renewal = self._renew(connection, began, held)
        # Before the row is read: the worker may become idle after that.
        was_idle = self._state.is_idle
        asked = workers.touch(
            connection,
            worker_id=self._state.registered.id,
            incarnation=self._state.registration.incarnation,
            status=self._state.status.value,
            running_leases=len(held),
            trouble=self._pool.trouble,
            memory_bytes=memory_of(pids),
            cpu_percent=self._processor_share.look(pids),
        )
        if asked is None:
            self._state.is_replaced = True
            self._state.wake()
            return
        self._state.set_request(asked)
        self._state.set_wanted(asked.wanted)
        if was_idle:
            self._state.check_idle(is_idle=asked.is_idle)
        self._tell_taken_up(connection)
        # The main thread ends running bodies, after their grace periods.
        ended = {job.lease_id for job in held if job.started_at is None} & renewal.ended
        # A lease whose row was locked was skipped, not renewed: it may be taken over as soon as the
        # row is free.
        known = renewal.renewed | renewal.ended
        self._has_missed = any(job.lease_id not in known for job in held)
        safe = known - ended
        self._extend(began, [job for job in held if job.lease_id in safe])
        if renewal.ended or renewal.stops:
            self._state.renewals.append(renewal)
            self._state.wake()

    def _tell_taken_up(self, connection: BaseDatabaseWrapper) -> None:
        """Write changes of the worker's slots and queues, by requests or because of its bodies."""
        taken, excluded = self._state.taken_up, self._state.limits.excluded
        if (taken, excluded) == self._told:
            return
        workers.take_up(
            connection,
            worker_id=self._state.registered.id,
            incarnation=self._state.registration.incarnation,
            at=taken.at if taken else "",
            terms=self._state.terms,
        )
        self._told = taken, excluded

    def _renew(self, connection: BaseDatabaseWrapper, began: float, held: list[Job]) -> Renewal:
        if not held:
            return Renewal(frozenset(), frozenset(), frozenset(), ())
        dialect = dialect_for(connection)
        leases = [
            Held(
                job.lease_id,
                job.lease_seconds or self._lease_seconds,
                None if job.started_at is None else began - job.started_at,
            )
            for job in held
        ]
        with transaction(connection):
            renewal = dialect.renew(connection, leases)
            if renewal.stops:
                dialect.see_stops(connection, [stop.lease_id for stop in renewal.stops])
        return self._apply_live_changes(connection, held, renewal)

    def _apply_live_changes(
        self, connection: BaseDatabaseWrapper, held: list[Job], renewal: Renewal
    ) -> Renewal:
        """Apply changed options of tasks; options of locked tasks follow with a later ping.

        This is a separate transaction, so that leases are renewed even while the tasks are locked.
        """
        try:
            with self._tally.guard(), transaction(connection):
                terms = apply_live_changes(
                    connection,
                    worker=self._state.options.name,
                    lease_ids=sorted(renewal.renewed),
                    policy=self._policy,
                    tally=self._tally,
                )
        except OperationalError as error:
            if not is_lock_refused(error):
                raise
            return renewal
        for job in held:
            if job.lease_id in renewal.renewed:
                job.ping_seconds = terms.ping_seconds.get(job.lease_id)
        return renewal._replace(ended=renewal.ended | terms.ended)

    def _extend(self, began: float, renewed: Iterable[Job]) -> None:
        """Extend the deadlines of children, but not beyond that of a job added meanwhile."""
        for job in renewed:
            job.renewed(began)
        for child in list(self._pool.children):
            child.deadline.extend(began + FENCE * self._lease_seconds)

    def _on_error(self, error: Exception) -> float:
        if self._connection is not None and is_busy(error):
            # No other session can write either, so nobody can take over: no reason to fence.
            self._extend(time.monotonic(), list(self._leases.held.values()))
            self._vitals.delayed()
            return RETRY_BUSY
        self._vitals.failed()
        if not self._is_lost:
            self._is_lost = True
            logger.error("Pings fail, bodies end when leases run out error=%s", one_line(error))
        self._close()
        # The deadline of a child whose last job has ended meanwhile need not move while the
        # database is away.
        for child in list(self._pool.children):
            child.deadline.extend(child.deadline.at)
        return RETRY * (0.5 + random.random())  # noqa: S311

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        close_quietly(connection)
