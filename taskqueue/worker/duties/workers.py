"""Calling the roll of the workers, and resting schedules that no live worker declares."""

from __future__ import annotations

import logging

from django.db.backends.base.base import BaseDatabaseWrapper

from taskqueue.core.log_text import one_line
from taskqueue.engine import workers
from taskqueue.engine.schedules.syncing import rest_undeclared
from taskqueue.worker.duties.duty import Timed

logger = logging.getLogger("taskqueue.worker")


class CallRoll(Timed):
    """Marks workers that were not seen for a lease's time, and deletes those gone for a day."""

    interval = 15.0

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        lost = workers.mark_lost(connection)
        if lost:
            logger.warning("Workers lost count=%s", lost)
            rest_schedules(connection)
        workers.forget_gone(connection)
        return False


class RestSchedules(Timed):
    """Lets schedules rest that no code declares any more: a worker may have ended unseen."""

    interval = 60.0

    def run(self, connection: BaseDatabaseWrapper) -> bool:
        rest_schedules(connection)
        return False


def rest_schedules(connection: BaseDatabaseWrapper) -> None:
    """Let those rest that no code declares any more, now that a worker may have gone."""
    for name in rest_undeclared(connection):
        logger.warning("No code declares the schedule any more schedule=%s", one_line(name))
