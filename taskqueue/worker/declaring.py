"""Synchronisation of declared schedules with the database, in a child."""

from __future__ import annotations

import logging
import time

from django.db import InterfaceError, OperationalError

from taskqueue.core.log_text import one_line
from taskqueue.engine.connections import project_connection
from taskqueue.engine.schedules.syncing import sync_schedules
from taskqueue.worker import frames
from taskqueue.worker.forks import unforked
from taskqueue.worker.reporting import Channel

logger = logging.getLogger("taskqueue.worker")

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 5.0  # Seconds between two tries.


def declare_schedules(channel: Channel, *, worker_name: str) -> None:
    """Synchronise, and tell the parent; try again while the database is away."""
    pause = FIRST_PAUSE
    while True:
        try:
            with unforked():
                synced = sync_schedules(worker=worker_name)
        except (OperationalError, InterfaceError) as error:
            logger.warning("Schedules not synchronised yet error=%s", one_line(error))
            _close()
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, pause * 2)
            continue
        except Exception:
            logger.exception("Schedules not synchronised")
        else:
            for message in synced.refused:
                logger.error("Schedule refused reason=%s", one_line(message))
            for name in synced.removed:
                logger.warning("No code declares the schedule any more schedule=%s", one_line(name))
        _close()
        channel.send((frames.SYNCED,))
        return


def _close() -> None:
    with unforked():
        project_connection().close()
