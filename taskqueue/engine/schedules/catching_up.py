"""Serving what has come before a schedule is changed by hand, within bounds."""

from __future__ import annotations

import logging
from collections import deque
from datetime import datetime

from django.db import DatabaseError, InterfaceError
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.transaction import atomic

from taskqueue import rules
from taskqueue.engine.schedules.advancing import advance, save
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.occurrence import OccurrenceStatus

logger = logging.getLogger("taskqueue")

MOST_BATCHES = 20
"""Transactions' worth of nominal times that are served at once: whoever asked is waiting."""


def catch_up(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime, written_off: str = ""
) -> None:
    """Serve a locked schedule as it stands, up to now, in the caller's transaction.

    After a long outage that may be too much to wait for: with a reason in `written_off` the rest
    is recorded as skipped for it, in one row; without one it is left for the workers. Changes
    nothing of a schedule that this version cannot serve.
    """
    if not schedule.is_active:
        return
    for _ in range(MOST_BATCHES):
        try:
            with atomic(using=connection.alias):
                advance(connection, schedule, now)
        except (DatabaseError, InterfaceError):
            raise
        except Exception:  # Whatever is odd about it may be why it is changed.
            logger.exception("Schedule not served schedule=%s", schedule.name)
            schedule.refresh_from_db(using=connection.alias)
            return
        if schedule.next_at is None or schedule.next_at > now:
            return
    if written_off:
        _write_off(connection, schedule, now, written_off)


def _write_off(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime, reason: str
) -> None:
    rule = rules.from_json(schedule.rule)
    count, first = 0, None
    last: deque[datetime] = deque(maxlen=1)
    for nominal_at in rule.between(schedule.served_until, now):
        first = first or nominal_at
        count += 1
        last.append(nominal_at)
    if first is None:
        return
    Occurrence.objects.using(connection.alias).create(
        schedule_id=schedule.id,
        nominal_at=first,
        nominal_until=last[0] if count > 1 else None,
        count=count,
        status=OccurrenceStatus.SKIPPED,
        reason=reason[:1000],
        created_at=now,
    )
    schedule.served_until = last[0]
    schedule.next_at = rule.after(last[0])
    save(connection, schedule)
