"""Write the project's declarations to the database: limits, handlers, alert rules, schedules."""

from __future__ import annotations

import logging
import math
import random
import time

from taskqueue.core.log_text import one_line
from taskqueue.engine.alerts.declaring import sync_rules
from taskqueue.engine.connections import project_connection
from taskqueue.engine.events.declaring import sync_handlers
from taskqueue.engine.limits.declaring import sync_limits
from taskqueue.engine.schedules.syncing import sync_schedules
from taskqueue.engine.transient_errors import is_of_session
from taskqueue.worker import frames
from taskqueue.worker.bodies.reporting import Channel
from taskqueue.worker.connections import unforked

logger = logging.getLogger("taskqueue.worker")

# Seconds between two tries, up to half as long again at random, and between two log lines.
FIRST_PAUSE, LONGEST_PAUSE, LOG_INTERVAL = 0.2, 20.0, 60.0


def declare(channel: Channel, *, worker_name: str) -> None:
    """Synchronise limits, schedules and alert rules, and tell the parent.

    This is repeated while the database is away.
    """
    pause, log_at = FIRST_PAUSE, -math.inf
    while True:
        try:
            with unforked():
                sync_limits()
                sync_handlers()
                refused = sync_rules()
                synced = sync_schedules(worker=worker_name)
        except Exception as error:
            if is_of_session(error):
                if time.monotonic() >= log_at:
                    log_at = time.monotonic() + LOG_INTERVAL
                    logger.warning("Declarations not synchronised yet error=%s", one_line(error))
                _close()
                time.sleep(pause * (1 + random.random() / 2))  # noqa: S311
                pause = min(LONGEST_PAUSE, pause * 2)
                continue
            logger.exception("Declarations not synchronised")
        else:
            for message in refused:
                logger.error("Alert rule refused reason=%s", one_line(message))
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
