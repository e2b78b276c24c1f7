"""Serving all schedules: a duty of every worker, each schedule in its own transaction."""

from __future__ import annotations

import logging
import time
from datetime import datetime

from django.db import InterfaceError, OperationalError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, Q

from taskqueue.engine.connections import installed, orm_transaction
from taskqueue.engine.dialect import dialect_for
from taskqueue.engine.schedules.advancing import NOT_SERVED, ON_TIME, RESULT, advance
from taskqueue.engine.schedules.ends import ended_runs
from taskqueue.engine.statement import Moment
from taskqueue.models import Schedule

logger = logging.getLogger("taskqueue.worker")

# SQLite needs the condition of the index word by word, and Django 6.1 writes `= 1` there.
NEXT_SCHEDULE = Moment(
    postgresql="""
        SELECT min(next_at)
        FROM taskqueue_schedule
        WHERE next_at IS NOT NULL AND is_enabled AND removed_at IS NULL
    """,
    sqlite="""
        SELECT min(next_at)
        FROM taskqueue_schedule
        WHERE next_at IS NOT NULL AND is_enabled AND is_enabled = 1 AND removed_at IS NULL
    """,
)
# The most schedules of one step; between two steps the worker claims and records.
BATCH = 20
# Of these, the most schedules that are behind by more than a minute, and have much to make up for.
BATCH_BEHIND = 3
# Seconds for which a schedule is left alone after it could not be served.
REST = 30.0


class Scheduler:
    """Serves due schedules; remembers for a while the schedules that made trouble."""

    def __init__(self) -> None:
        self._resting: dict[int, float] = {}
        self._behind_after = 0
        # Whether the last step served a schedule.
        self.has_served = False
        # Whether other sessions had locked all schedules of the last step.
        self.is_kept_out = False

    def step(self, connection: BaseDatabaseWrapper, *, now: datetime | None = None) -> float | None:
        """Serve due schedules. Return the seconds until the next is due, None if none is known.

        `now` is for simulations; the default is the database's clock, read under each lock.
        """
        with installed(connection):
            at = now or dialect_for(connection).now(connection)
            rested = time.monotonic()
            self._resting = {key: until for key, until in self._resting.items() if until > rested}
            needy = self._needy(connection, at)
            served = [
                schedule_id for schedule_id in needy if self._serve(connection, schedule_id, now)
            ]
            at = now or dialect_for(connection).now(connection)
            schedules = Schedule.objects.using(connection.alias).filter(
                is_enabled=True, removed_at=None, next_at__isnull=False
            )
            first = schedules.exclude(id__in=list(self._resting)).order_by("next_at")
            next_at = first.values_list("next_at", flat=True).first()
        self.has_served = bool(served)
        self.is_kept_out = bool(needy) and not served
        return None if next_at is None else max(0.0, (next_at - at).total_seconds())

    def _needy(self, connection: BaseDatabaseWrapper, now: datetime) -> list[int]:
        """Return schedules that are due or have an ended run; then, in turn, those that are behind.

        A schedule that catches up after a long outage must not delay the others.
        """
        rows = Schedule.objects.using(connection.alias).exclude(id__in=list(self._resting))
        active = Q(is_enabled=True, removed_at=None)
        late = active & Q(next_at__lte=now - ON_TIME)
        due = active & Q(next_at__lte=now)
        has_ended = Exists(ended_runs(connection, OuterRef("id")))
        fresh = rows.filter(due | has_ended).exclude(late).order_by("next_at", "id")
        ids = list(fresh.values_list("id", flat=True)[:BATCH])
        behind = rows.filter(late).order_by("id").values_list("id", flat=True)
        after = behind.filter(id__gt=self._behind_after)
        turn = list(dict.fromkeys([*after[:BATCH_BEHIND], *behind[:BATCH_BEHIND]]))[:BATCH_BEHIND]
        self._behind_after = turn[-1] if turn else 0
        return ids + turn

    def _serve(
        self, connection: BaseDatabaseWrapper, schedule_id: int, now: datetime | None
    ) -> bool:
        """Serve one schedule. Return False if another session had locked it."""
        rows = Schedule.objects.using(connection.alias).filter(id=schedule_id)
        try:
            with orm_transaction(connection):
                schedule = rows.select_for_update(skip_locked=True).defer(*RESULT).first()
                if schedule is not None:
                    at = now or dialect_for(connection).now(connection)
                    advance(connection, schedule, at)
                return schedule is not None
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # One schedule must not keep a worker from the others.
            logger.exception("Schedule not served schedule=%s", schedule_id)
            self._resting[schedule_id] = time.monotonic() + REST
            rows.update(trouble=f"{NOT_SERVED}{type(error).__name__}: {error}"[:1000])
            return True
