"""The parent of a worker, from its registration to its end."""

from __future__ import annotations

import logging
import os
from contextlib import closing

from django.db import DatabaseError, InterfaceError

from taskqueue.conf import Settings
from taskqueue.core import __version__
from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.duties import rest_schedules
from taskqueue.worker.enrolment import enrol, registration_of
from taskqueue.worker.main_loop import MainLoop
from taskqueue.worker.meter import Meter
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.pool import Pool
from taskqueue.worker.presence import Presence
from taskqueue.worker.shutdown import Signals
from taskqueue.worker.state import WorkerState
from taskqueue.worker.wakeup import WakePipe
from taskqueue.worker.watchdog import Watchdog

logger = logging.getLogger("taskqueue.worker")


class WorkerFailed(Exception):
    """The worker could not do its work; the message says why."""


def run_worker(options: WorkerOptions, settings: Settings, meter: Meter) -> None:
    """Register a worker, and work until told to stop, or drained.

    Raises `NameTaken` and `WorkerFailed`.
    """
    # The handlers come before the registration: whoever sees the worker may stop it.
    with (
        closing(WakePipe()) as wake_pipe,
        closing(Watchdog()) as watchdog,
        Signals(wake_pipe.wake) as signals,
    ):
        state = WorkerState(options, settings, meter, wake_pipe.wake)
        dispatcher = Dispatcher(state, Pool(state, watchdog))
        meter.begin(options.name, options.pool, dispatcher.occupancy, named=options.queues.weights)
        state.registration = registration_of(options, settings)
        with closing(Presence(state.registration.incarnation)) as presence:
            registered = None
            try:
                registered = enrol(state.registration, is_stopping=lambda: signals.count > 0)
            finally:
                if registered is None:
                    presence.withdraw()
            if registered is None:
                return
            state.registered, state.presence = registered, presence.fileno
            loop = MainLoop(dispatcher, watchdog, signals, wake_pipe)
            _log_start(options, settings)
            loop.start()
            try:
                loop.run()
            finally:
                _sign_off(state, presence, has_work=loop.end())
    loop.summary.end(options.name)
    if state.is_replaced:
        raise WorkerFailed("Another worker took this one's name.")
    if loop.is_hopeless:
        raise WorkerFailed(dispatcher.pool.trouble)


def _log_start(options: WorkerOptions, settings: Settings) -> None:
    logger.info(
        "Worker started name=%s pid=%s pool=%s concurrency=%s queues=%s database=%s engine=%s "
        "version=%s",
        options.name,
        os.getpid(),
        options.pool,
        options.concurrency,
        ",".join(options.queues.weights) or "all",
        settings.DATABASE,
        project_connection().vendor,
        __version__,
    )


def _sign_off(state: WorkerState, presence: Presence, *, has_work: bool) -> None:
    if state.is_replaced:
        presence.withdraw()  # Its name is another worker's now.
    else:
        try:
            workers.unregister(
                worker_id=state.registered.id, incarnation=state.registration.incarnation
            )
            if not has_work:
                presence.withdraw()
            rest_schedules(project_connection())
        except (DatabaseError, InterfaceError) as error:
            logger.error("Worker could not sign off error=%s", one_line(error))
    project_connection().close()
