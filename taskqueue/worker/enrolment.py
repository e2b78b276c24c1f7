"""Registration of a worker under its name."""

from __future__ import annotations

import logging
import os
import platform
import socket
import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

import django
from django.db import DatabaseError, InterfaceError

from taskqueue.conf import Settings, get_settings
from taskqueue.core import __version__
from taskqueue.engine import workers
from taskqueue.engine.connections import project_connection
from taskqueue.engine.retention import EndPolicy
from taskqueue.engine.tally import Tally
from taskqueue.engine.workers import Holder, Registered, Registration
from taskqueue.worker.options import WorkerOptions
from taskqueue.worker.presence import Departures, is_left
from taskqueue.worker.shutdown import until_reached

logger = logging.getLogger("taskqueue.worker")

LOOK_AGAIN = 0.2  # Seconds between two checks whether the holder of the name is alive.


class NameTaken(Exception):
    """Another worker that is alive has that name."""


def registration_of(options: WorkerOptions, settings: Settings) -> Registration:
    """Describe this process."""
    return Registration(
        name=options.name,
        host=socket.gethostname()[:255],
        pid=os.getpid(),
        queues=options.queues.weights,
        concurrency=options.concurrency,
        pool=options.pool,
        versions={
            "taskqueue": __version__,
            "django": django.get_version(),
            "python": platform.python_version(),
        },
        lease_seconds=settings.LEASE_DURATION.total_seconds(),
    )


def enrol(registration: Registration, *, is_stopping: Callable[[], bool]) -> Registered | None:
    """Take the name; wait for the end of a holder that has fallen silent.

    Raises `NameTaken` where the holder gives a sign of life meanwhile. None when this worker was
    told to stop before it had the name.
    """
    replacing: datetime | None = None
    seen_at: datetime | None = None
    while True:
        take_name = partial(_take_name, registration, replacing)
        answer = until_reached(take_name, is_stopping=is_stopping)
        if answer is None:
            return None
        if isinstance(answer, Registered):
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
        # First: under a new incarnation the name would not tell whose leases these are.
        Departures(EndPolicy.of(get_settings()), Tally()).step(project_connection())
        return workers.register(registration, replacing=replacing)
    except (DatabaseError, InterfaceError):
        project_connection().close()
        raise


def _is_dead(holder: Holder) -> bool:
    """Whether the process that held the name has ended, on this host, and left nothing to end.

    A child may outlive it for a moment. Its leases end only then, and under its own incarnation:
    until then the name is left to it, or until it has been silent for its lease.
    """
    if holder.host != socket.gethostname()[:255] or is_left(holder.incarnation):
        return False
    if holder.pid == os.getpid():
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
