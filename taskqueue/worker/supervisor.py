"""The supervisor: the parent's loop. It claims, hands out, records; it runs no user code."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from contextlib import closing

from django.db import DatabaseError, InterfaceError

from taskqueue.conf import Settings
from taskqueue.core import __version__
from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.limits import Limits
from taskqueue.engine.rows import Renewal
from taskqueue.engine.tally import Subject, Tally
from taskqueue.engine.workers import Asked, Registered, Registration
from taskqueue.models.worker import WorkerStatus
from taskqueue.worker.children import ChildProcess
from taskqueue.worker.coordinator import LONGEST_SLEEP, Coordinator
from taskqueue.worker.database_thread import Errands
from taskqueue.worker.duties import Duties
from taskqueue.worker.duties.workers import rest_schedules
from taskqueue.worker.enrolment import enrol, registration_of
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.jobs import Job
from taskqueue.worker.meter import Meter
from taskqueue.worker.options import QueueQuotas, WorkerOptions
from taskqueue.worker.pool import Pool
from taskqueue.worker.presence import Presence
from taskqueue.worker.record_and_claim import Intake
from taskqueue.worker.requests import Requests
from taskqueue.worker.shutdown import STOPPING_SIGNALS
from taskqueue.worker.stopping import Stopping
from taskqueue.worker.summary import Summary
from taskqueue.worker.wakeup import Alarm, Reloader, Signals, Watch
from taskqueue.worker.watchdog import Watchdog

logger = logging.getLogger("taskqueue.worker")

REPORT_TIMEOUT = 3.0
"""Seconds to wait for a database that is away, only to say that the worker has ended."""
REBALANCE_INTERVAL = 0.02
"""Seconds between two looks at orders that wait behind a body."""


class WorkerFailed(Exception):
    """The worker could not do its work; the message says why."""


class Supervisor:
    """One worker, from its registration to its end.

    The main thread serves the children; errands to the database and pings have threads of their
    own, and leave here what they found.
    """

    def __init__(
        self, options: WorkerOptions, settings: Settings, meter: Meter | None = None
    ) -> None:
        self._options = options
        self._settings = settings
        meter = meter or Meter()
        self._vitals = meter.vitals
        self._watchdog = Watchdog()
        self._pool = Pool(options, settings, self._watchdog, meter)
        meter.begin(options.name, options.pool, self._pool.standing, named=options.queues.weights)
        self._stopping = Stopping(self._pool, settings)
        self._summary = Summary(meter, lambda: self._pool.standing().busy, time.monotonic())
        self._alarm = Alarm()
        self._requests = Requests(self._alarm.ring)
        self._watch = Watch()
        self._lanes = QueueQuotas(options.queues)
        self._renewals: list[Renewal] = []
        self._is_replaced = False
        self._stop_at: float | None = None
        self._ear: int | None = None
        self._reloader = Reloader(self._alarm.ring) if options.reload else None

    # What the heartbeat asks, from its thread

    @property
    def held(self) -> dict[int, Job]:
        """The leases that this worker believes it holds."""
        return self._coordinator.held

    def _subject_of(self, lease_id: int) -> Subject | None:
        """What is known here of a lease; from the errands' thread."""
        job = self._coordinator.held.get(lease_id)
        return None if job is None else job.subject()

    def children(self) -> list[ChildProcess]:
        """The children that live."""
        return list(self._pool.children)

    def status(self) -> WorkerStatus:
        """What the worker says of itself."""
        if self._pool.is_closing:
            return WorkerStatus.STOPPING
        return WorkerStatus.QUIET if self._pool.is_quiet else WorkerStatus.RUNNING

    def trouble(self) -> str:
        """What keeps the worker from working."""
        return self._pool.trouble

    def on_renewal(self, renewal: Renewal) -> None:
        """Keep what a ping found for the main thread."""
        if renewal.ended or renewal.stops:
            self._renewals.append(renewal)
            self._alarm.ring()

    def on_asked(self, asked: Asked) -> None:
        """Keep what somebody asks of the worker for the main thread."""
        self._requests.take(asked)

    def on_replaced(self) -> None:
        """Another worker has this one's name: this one ends, and writes nothing more."""
        self._is_replaced = True
        self._alarm.ring()

    # Life

    def run(self) -> None:
        """Work until told to stop, or drained. Raises `NameTaken` and `WorkerFailed`."""
        # Before the worker can be seen: whoever sees it may tell it to stop.
        with closing(self._watchdog), Signals(self._alarm, STOPPING_SIGNALS) as self._signals:
            registration = registration_of(self._options, self._settings)
            with closing(Presence(registration.incarnation)) as self._presence:
                registered = None
                try:
                    registered = enrol(registration, is_stopping=lambda: self._signals.count > 0)
                finally:
                    if registered is None:
                        self._presence.withdraw()
                if registered is None:
                    return
                self._pool.presence = self._presence.fileno
                self._begin(registered, registration)
                try:
                    self._loop()
                finally:
                    self._end(registered, registration)
        self._summary.end(self._options.name)
        if self._is_replaced:
            raise WorkerFailed("Another worker took this one's name.")
        if self._is_hopeless:
            raise WorkerFailed(self._pool.trouble)

    def _begin(self, registered: Registered, registration: Registration) -> None:
        options, settings = self._options, self._settings
        # A drain has an end: what comes due while it works is no part of it.
        until = registered.started_at if options.drain else None
        tally = Tally(self._subject_of)
        duties = Duties(settings, worker_id=registered.id, tally=tally, schedules_until=until)
        self._intake = Intake(
            settings,
            lanes=self._lanes,
            worker_name=options.name,
            registered=registered,
            slots=options.concurrency,
            heard=self._hear,
            tally=tally,
        )
        self._errands = Errands(self._intake, duties, self._alarm.ring)
        self._coordinator = Coordinator(
            options,
            settings,
            pool=self._pool,
            intake=self._intake,
            duties=duties,
            errands=self._errands,
        )
        self._heartbeat = Heartbeat(
            self,
            name=options.name,
            worker_id=registered.id,
            incarnation=registration.incarnation,
            interval=settings.PING_INTERVAL.total_seconds(),
            lease_seconds=registration.lease_seconds,
            limits=Limits.of(settings),
            vitals=self._vitals,
        )
        logger.info(
            "Worker started name=%s pid=%s pool=%s concurrency=%s queues=%s database=%s "
            "engine=%s version=%s",
            options.name,
            os.getpid(),
            options.pool,
            options.concurrency,
            ",".join(self._lanes.names) or "all",
            settings.DATABASE,
            project_connection().vendor,
            __version__,
        )
        self._watch.add(self._alarm, self._alarm.silence)
        self._populate(time.monotonic())
        self._heartbeat.start()
        self._vitals.begin(
            lease_seconds=registration.lease_seconds,
            threads=[self._heartbeat.thread, self._errands.thread],
            obstacle=self._obstacle,
        )

    def _obstacle(self) -> str:
        """What keeps it from taking a task, if anything; from the thread of a port."""
        pool = self._pool
        if not pool.takes_more or self._is_replaced:
            return self.status().value
        if not self._watchdog.is_there:
            return "no guardian can be started"
        return pool.trouble or ("" if pool.is_ready else "no child takes orders")

    def _end(self, registered: Registered, registration: Registration) -> None:
        self._vitals.end()
        self._heartbeat.stop()
        self._pool.end()
        self._errands.stop()
        self._watch.close()
        self._alarm.close()
        self._coordinator.end()
        if not self._is_replaced:
            try:
                workers.unregister(worker_id=registered.id, incarnation=registration.incarnation)
                if not self._coordinator.has_work:
                    self._presence.withdraw()
                rest_schedules(project_connection())
            except (DatabaseError, InterfaceError) as error:
                logger.error("Worker could not sign off error=%s", one_line(error))
        else:
            self._presence.withdraw()  # Its name tells others nothing any more.
        project_connection().close()

    # The loop

    def _loop(self) -> None:
        while not self._is_replaced:
            now = time.monotonic()
            self._vitals.turned(now)
            self._heed_requests(now)
            self._heed_report(now)
            self._coordinator.enter_recorded()
            self._heed_renewals(now)
            self._populate(now)
            self._stopping.enforce(now)
            self._summary.step(now)
            self._pool.relax(now)
            self._pool.rebalance(now)
            self._pool.dispatch(now)
            if self._coordinator.is_due(now):
                self._cover_ear()
                self._coordinator.send(now)
            elif not self._coordinator.is_waiting and self._is_done():
                return
            for on_ready in self._watch.wait(self._pause(time.monotonic())):
                on_ready()
            self._watch_outgoing()

    def _heed_requests(self, now: float) -> None:
        stops = self._signals.count + self._requests.stops
        if self._requests.is_quiet != self._pool.is_quiet:
            self._pool.is_quiet = self._requests.is_quiet
            if self._pool.is_quiet:
                self._pool.hand_back_waiting()
            else:
                self._coordinator.hear()
            self._heartbeat.hurry()
        if stops and not self._pool.is_closing:
            logger.info("Stopping, a second signal returns what runs held=%s", len(self.held))
            self._pool.is_closing = True
            self._stop_at = now + self._options.shutdown_timeout
            self._pool.hand_back_waiting()
            self._heartbeat.hurry()
        if self._stop_at is not None and (stops > 1 or now >= self._stop_at):
            self._stop_at = None
            self._stopping.interrupt_all(now)

    def _heed_report(self, now: float) -> None:
        jobs = self._coordinator.enter_report(now)
        if jobs is None:
            return
        self._pool.add(jobs)
        if not self._pool.takes_more:
            self._pool.hand_back_backlog()
        if any(job.ping_seconds is not None or job.lease_seconds is not None for job in jobs):
            self._heartbeat.hurry()
        self._lend_ear()

    def _heed_renewals(self, now: float) -> None:
        while self._renewals:
            renewal = self._renewals.pop(0)
            # One that has succeeded was recorded by its own body, whose hooks may still run.
            for lease_id in renewal.ended - renewal.succeeded:
                if lease_id in self.held and not self._coordinator.is_reported(lease_id):
                    self._stopping.drop(lease_id)
                    self.held.pop(lease_id, None)
            for stop in renewal.stops:
                reason = stop.reason or "Asked to stop."
                by = f" (by {stop.by})" if stop.by else ""
                self._stopping.ask(stop.lease_id, reason + by, now)

    def _is_done(self) -> bool:
        if self._pool.is_closing:
            # Waiting for a database that is away ends with the time to shut down in, and sooner
            # where it is only to be told that the worker ends.
            return self._coordinator.is_settled or (self._coordinator.is_away and self._has_waited)
        return self._options.drain and (self._coordinator.is_drained or self._is_hopeless)

    @property
    def _has_waited(self) -> bool:
        if self._stop_at is None:
            return True
        began_at = self._stop_at - self._options.shutdown_timeout
        return not self._coordinator.has_work and time.monotonic() - began_at >= REPORT_TIMEOUT

    @property
    def _is_hopeless(self) -> bool:
        """Whether it was to drain, and no child starts that could."""
        return self._options.drain and self._pool.is_broken and self._coordinator.is_settled

    # Children

    def _populate(self, now: float) -> None:
        if self._reloader and self._reloader.has_changed():
            logger.info("Code changed, children are replaced file=%s", self._reloader.changed)
            self._pool.recycle()
        self._pool.retire(now)
        self._watchdog.ensure(now)
        for child in self._pool.populate(now):
            self._watch.add(child.socket, self._receiver(child))

    def _receiver(self, child: ChildProcess) -> Callable[[], None]:
        def on_ready() -> None:
            child.push()
            was_ready = child.is_ready
            # A buried child's socket is closed: it leaves the selector first.
            if not self._pool.receive(child, time.monotonic(), self._watch.remove):
                return
            if self._reloader and child.is_ready and not was_ready:
                self._reloader.watch(child.files)

        return on_ready

    def _watch_outgoing(self) -> None:
        for child in self._pool.children:
            if child.has_outgoing or child.is_blocked:
                child.is_blocked = child.has_outgoing
                self._watch.add(child.socket, self._receiver(child), writes=child.is_blocked)

    # Sleep

    def _hear(self, payload: str) -> None:
        """A notification came in; from the thread that uses the connection."""
        if payload == "stop":
            self._heartbeat.hurry()
        else:
            self._coordinator.hear()

    def _lend_ear(self) -> None:
        """Between errands, listen to the connection that they use."""
        listener = self._intake.listener
        if listener is not None:
            self._ear = listener.fileno()
            self._watch.add(self._ear, self._on_heard)

    def _cover_ear(self) -> None:
        """An errand begins: the connection is its thread's alone."""
        if self._ear is not None:
            self._watch.remove(self._ear)
            self._ear = None

    def _on_heard(self) -> None:
        listener = self._intake.listener
        if listener is None or self._coordinator.is_waiting:
            return
        try:
            listener.hear()
        except (DatabaseError, InterfaceError, OSError) as error:
            self._cover_ear()
            self._intake.close()
            self._coordinator.on_silence(error, time.monotonic())

    def _pause(self, now: float) -> float:
        """How long nothing needs to be done, if nobody wakes us."""
        pool = self._pool
        moments = [now + LONGEST_SLEEP]
        if pool.backlog or any(child.waiting() for child in pool.children):
            moments.append(now + REBALANCE_INTERVAL)
        limits = (self._stopping.next_limit(), pool.next_deadline(now))
        for moment in (pool.respawn_at, self._stop_at, *limits):
            if moment is not None:
                moments.append(moment)
        if not self._coordinator.is_waiting:
            moments.append(self._coordinator.next_at(now))
        return max(0.0, min(moments) - now)
