"""The parent of a worker, from its registration to its end."""

from __future__ import annotations

import logging
import os
import platform
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from functools import partial

import django
from django.db import DatabaseError, InterfaceError

from taskqueue.conf import Settings, get_settings
from taskqueue.core import __version__
from taskqueue.core.log_text import one_line
from taskqueue.engine.connections import (
    installed,
    open_worker_connection,
    project_connection,
    short_waits,
)
from taskqueue.engine.registration import Holder, Registered, Registration, register, unregister
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally
from taskqueue.models import Worker
from taskqueue.worker.dispatch import Dispatcher
from taskqueue.worker.forks import Template
from taskqueue.worker.main_loop import MainLoop
from taskqueue.worker.meter import Meter
from taskqueue.worker.pool import Pool
from taskqueue.worker.presence import Departures, Presence, is_left
from taskqueue.worker.shutdown import REPORT_TIMEOUT
from taskqueue.worker.state import WorkerOptions, WorkerState, this_host
from taskqueue.worker.wakeup import Signals, WakePipe, until_reached
from taskqueue.worker.watchdog import Watchdog

logger = logging.getLogger("taskqueue.worker")


class WorkerFailed(Exception):
    """The worker could not do its work; the message says why."""


def run_worker(
    options: WorkerOptions, settings: Settings, meter: Meter, template: Template
) -> None:
    """Register a worker, and work until told to stop, or drained.

    Raises `NameTaken` and `WorkerFailed`.
    """
    # The handlers come before the registration: anybody who sees the worker may stop it.
    with (
        closing(WakePipe()) as wake_pipe,
        closing(Watchdog()) as watchdog,
        Signals(wake_pipe.wake, writer=wake_pipe.writer) as signals,
    ):
        state = WorkerState(options, settings, meter, wake_pipe.wake)
        dispatcher = Dispatcher(state, Pool(state, watchdog, template))
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
        options.queues.choice or "all",
        settings.DATABASE,
        project_connection().vendor,
        __version__,
    )


def _sign_off(state: WorkerState, presence: Presence, *, has_work: bool) -> None:
    from taskqueue.worker.periodic_duties import rest_schedules  # See `main_loop`.

    if state.is_replaced:
        presence.withdraw()  # Another worker has its name now.
    else:
        try:
            # The project's own connection may wait without a limit, for a host or for a lock.
            connection = open_worker_connection(silence=state.lease_seconds / 3)
            with closing(connection), installed(connection):
                with short_waits(connection, REPORT_TIMEOUT):
                    unregister(
                        worker_id=state.registered.id, incarnation=state.registration.incarnation
                    )
                if not has_work:
                    presence.withdraw()
                with short_waits(connection, REPORT_TIMEOUT):
                    rest_schedules(connection)
        except (DatabaseError, InterfaceError) as error:
            logger.error("Worker could not sign off error=%s", one_line(error))
    project_connection().close()


LOOK_AGAIN = 0.2  # Seconds between two checks whether the holder of the name is alive.


class NameTaken(Exception):
    """Another live worker has that name."""


def registration_of(options: WorkerOptions, settings: Settings) -> Registration:
    """Describe this process."""
    return Registration(
        name=options.name,
        host=this_host(),
        pid=os.getpid(),
        queues=options.queues.weights,
        concurrency=options.concurrency,
        tags=list(options.tags),
        pool=options.pool,
        versions={
            **({"project": settings.VERSION} if settings.VERSION else {}),
            "taskqueue": __version__,
            "django": django.get_version(),
            "python": platform.python_version(),
        },
        lease_seconds=settings.LEASE_DURATION.total_seconds(),
        queue_slots=options.queues.slots,
        queue_order=list(options.queues.weights),
        is_strict=options.queues.is_strict,
        definition_slots=dict(options.definition_slots),
    )


def enrol(registration: Registration, *, is_stopping: Callable[[], bool]) -> Registered | None:
    """Take the name; wait for the end of a holder that has fallen silent.

    Raises `NameTaken` if the holder gives a sign of life meanwhile. Returns None if this worker was
    told to stop before it had the name.
    """
    replacing: datetime | None = None
    seen_at: datetime | None = None
    while True:
        take_name = partial(_take_name, registration, replacing)
        answer = until_reached(take_name, is_stopping=is_stopping)
        if not isinstance(answer, Holder):
            project_connection().close()
            return answer
        if seen_at is not None and answer.seen_at != seen_at:
            raise NameTaken(
                f"A worker named {registration.name!r} is alive on {answer.host} with pid "
                f"{answer.pid}. Stop it, or choose another --name."
            )
        if seen_at is None:
            logger.info(
                "Waiting for the name name=%s holder_host=%s holder_pid=%s",
                registration.name, answer.host, answer.pid,
            )  # fmt: skip
        seen_at = answer.seen_at
        if _is_dead(answer):
            replacing = seen_at
        else:
            time.sleep(LOOK_AGAIN)


def _take_name(registration: Registration, replacing: datetime | None) -> Registered | Holder:
    try:
        known = Worker.objects.using(project_connection().alias).filter(name=registration.name)
        if known.exists():
            # First, because under a new incarnation the name would not tell whose leases these are.
            # A new name has no old leases, and those of other workers are left to the duties.
            Departures(EndPolicy.of(get_settings()), Tally()).step(project_connection())
        return register(registration, replacing=replacing)
    except (DatabaseError, InterfaceError):
        project_connection().close()
        raise


def _is_dead(holder: Holder) -> bool:
    """Return whether the holder of the name has ended on this host, and left nothing to end.

    A child may outlive it for a moment. Its leases end only after that, under its own incarnation:
    until then the name stays taken, or until the holder has been silent for the duration of a
    lease.
    """
    if holder.host != this_host() or is_left(holder.incarnation):
        return False
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return holder.pid == os.getpid()
