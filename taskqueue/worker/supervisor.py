"""The parent of a worker, from its registration to its end."""

from __future__ import annotations

import logging
import os
import time
from contextlib import closing

from django.db import DatabaseError, InterfaceError

from taskqueue.conf import Settings
from taskqueue.core import __version__
from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import Registered, Registration
from taskqueue.worker.coordinator import Coordinator
from taskqueue.worker.database_thread import DatabaseThread
from taskqueue.worker.dispatch import Dispatcher, Prefetch
from taskqueue.worker.duties import Duties, rest_schedules
from taskqueue.worker.enrolment import enrol, registration_of
from taskqueue.worker.heartbeat import Heartbeat
from taskqueue.worker.leases import Leases
from taskqueue.worker.main_loop import MainLoop
from taskqueue.worker.meter import Meter
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pending_writes import PendingWrites
from taskqueue.worker.pool import Pool
from taskqueue.worker.presence import Presence
from taskqueue.worker.receiving import Receiver
from taskqueue.worker.requests import Inbox, Mode
from taskqueue.worker.shutdown import Signals
from taskqueue.worker.stopping import Stopper
from taskqueue.worker.summary import ProgressLine, Summary
from taskqueue.worker.wakeup import Reloader, WakePipe, Watch
from taskqueue.worker.watchdog import Watchdog
from taskqueue.worker.worker_session import WorkerSession

logger = logging.getLogger("taskqueue.worker")


class WorkerFailed(Exception):
    """The worker could not do its work; the message says why."""


class Supervisor:
    """Registers a worker, starts its threads and children, and ends them in order."""

    def __init__(
        self, options: WorkerOptions, settings: Settings, meter: Meter | None = None
    ) -> None:
        self._options = options
        self._settings = settings
        self._meter = meter or Meter()
        self._vitals = self._meter.vitals
        self._wake_pipe = WakePipe()
        self._inbox = Inbox(self._wake_pipe.wake, self._vitals)
        self._watchdog = Watchdog()
        mode = Mode()
        self._pool = Pool(options, self._watchdog, mode=mode, meter=self._meter)
        self._dispatcher = Dispatcher(
            options,
            self._pool,
            PendingWrites(),
            mode=mode,
            prefetch=Prefetch(settings.CLAIM_AHEAD),
        )
        occupancy = self._dispatcher.occupancy
        self._meter.begin(options.name, options.pool, occupancy, named=options.queues.weights)
        self._summary = Summary(self._meter, lambda: occupancy().busy, time.monotonic())
        self._leases = Leases(
            lease_seconds=settings.LEASE_DURATION.total_seconds(),
            meter=self._meter,
            progress=ProgressLine() if options.show_progress else None,
        )

    def run(self) -> None:
        """Work until told to stop, or drained. Raises `NameTaken` and `WorkerFailed`."""
        # The handlers come before the registration: whoever sees the worker may stop it.
        with closing(self._watchdog), Signals(self._wake_pipe.wake) as signals:
            registration = registration_of(self._options, self._settings)
            with closing(Presence(registration.incarnation)) as presence:
                registered = None
                try:
                    registered = enrol(registration, is_stopping=lambda: signals.count > 0)
                finally:
                    if registered is None:
                        presence.withdraw()
                if registered is None:
                    return
                self._pool.presence = presence.fileno
                loop = self._loop_of(registered, registration, signals)
                self._begin(loop, registration)
                try:
                    loop.run()
                finally:
                    self._end(loop)
                    self._sign_off(loop, registered, registration, presence)
        self._summary.end(self._options.name)
        if self._inbox.is_replaced:
            raise WorkerFailed("Another worker took this one's name.")
        if loop.is_hopeless:
            raise WorkerFailed(self._pool.trouble)

    # Beginning

    def _loop_of(
        self, registered: Registered, registration: Registration, signals: Signals
    ) -> MainLoop:
        options, settings, dispatcher = self._options, self._settings, self._dispatcher
        heartbeat = Heartbeat(
            registration,
            settings,
            worker_id=registered.id,
            dispatcher=dispatcher,
            leases=self._leases,
            inbox=self._inbox,
        )
        database = self._database_thread(registered, heartbeat)
        coordinator = Coordinator(
            options, settings, dispatcher=dispatcher, leases=self._leases, database=database
        )
        return MainLoop(
            options=options,
            signals=signals,
            inbox=self._inbox,
            heartbeat=heartbeat,
            database=database,
            coordinator=coordinator,
            leases=self._leases,
            dispatcher=dispatcher,
            receiver=Receiver(dispatcher),
            stopper=Stopper(dispatcher, settings),
            watchdog=self._watchdog,
            summary=self._summary,
            watch=Watch(),
            reloader=Reloader(self._wake_pipe.wake) if options.reload else None,
        )

    def _database_thread(self, registered: Registered, heartbeat: Heartbeat) -> DatabaseThread:
        def heard(payload: str) -> None:
            if payload == "stop":
                heartbeat.hurry()
            else:
                self._inbox.hear()

        # A drain serves only the times of schedules that came before it.
        until = registered.started_at if self._options.drain else None
        tally = Tally(self._leases.subject_of)
        session = WorkerSession(
            self._options, self._settings, registered=registered, heard=heard, tally=tally
        )
        duties = Duties(self._settings, worker_id=registered.id, tally=tally, schedules_until=until)
        return DatabaseThread(session, duties, self._wake_pipe.wake)

    def _begin(self, loop: MainLoop, registration: Registration) -> None:
        options, settings = self._options, self._settings
        logger.info(
            "Worker started name=%s pid=%s pool=%s concurrency=%s queues=%s database=%s "
            "engine=%s version=%s",
            options.name,
            os.getpid(),
            options.pool,
            options.concurrency,
            ",".join(options.queues.weights) or "all",
            settings.DATABASE,
            project_connection().vendor,
            __version__,
        )
        loop.watch.add(self._wake_pipe, self._wake_pipe.clear)
        loop.populate(time.monotonic())
        loop.heartbeat.start()
        self._vitals.begin(
            lease_seconds=registration.lease_seconds,
            threads=[loop.heartbeat.thread, loop.database.thread],
            obstacle=self._obstacle,
        )

    def _obstacle(self) -> str:
        """What keeps the worker from taking a task, if anything; from the thread of a port."""
        pool, mode = self._pool, self._dispatcher.mode
        if not mode.takes_tasks or self._inbox.is_replaced:
            return mode.status.value
        if not pool.is_guarded:
            return "no guardian can be started"
        return pool.trouble or ("" if pool.ready else "no child takes orders")

    # Ending

    def _end(self, loop: MainLoop) -> None:
        self._vitals.end()
        loop.heartbeat.stop()
        self._pool.end()
        loop.database.stop()
        loop.watch.close()
        self._wake_pipe.close()
        self._leases.end()

    def _sign_off(
        self,
        loop: MainLoop,
        registered: Registered,
        registration: Registration,
        presence: Presence,
    ) -> None:
        if self._inbox.is_replaced:
            presence.withdraw()  # Its name is another worker's now.
        else:
            try:
                workers.unregister(worker_id=registered.id, incarnation=registration.incarnation)
                if not loop.coordinator.has_work:
                    presence.withdraw()
                rest_schedules(project_connection())
            except (DatabaseError, InterfaceError) as error:
                logger.error("Worker could not sign off error=%s", one_line(error))
        project_connection().close()
