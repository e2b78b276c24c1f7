"""Runs of a schedule: each an occurrence, and the task that it is enqueued as."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.policies import Overlap
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.enqueue import enqueue
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.occurrence import OccurrenceStatus

# The number of open runs that are looked at; under `allow` there may be any number.
MOST_ENQUEUED = 100
# The number of waiting runs that are tried at once where each finds its unique key held.
MOST_BEGUN = 100


class Runs:
    """The runs of one locked schedule that have not ended, in the order of their times."""

    def __init__(self, connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
        self._connection = connection
        self._schedule = schedule
        self._now = now
        rows = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule.id)
        enqueued = rows.filter(status=OccurrenceStatus.ENQUEUED)
        most = 1 if schedule.overlap == Overlap.ALLOW else MOST_ENQUEUED
        self._enqueued = list(enqueued.order_by("nominal_at", "id")[:most])
        self._waiting = rows.filter(status=OccurrenceStatus.WAITING)
        self._last_waiting = self._waiting.order_by("nominal_at", "id").last()

    @property
    def has_open(self) -> bool:
        """Return whether a run has not ended."""
        return bool(self._enqueued) or self._last_waiting is not None

    def refusal(self) -> str:
        """Why a further run is not accepted now; empty where it is, at once or later."""
        overlap = self._schedule.overlap
        if overlap == Overlap.SKIP and self._enqueued:
            return f"The run of {_shown(self._enqueued[-1])} has not ended."
        queued = self._last_waiting
        if queued is not None and (
            overlap == Overlap.SKIP or (overlap == Overlap.QUEUE_ONE and self._enqueued)
        ):
            return f"The run of {_shown(queued)} waits already."
        return ""

    def accept(self, nominal_at: datetime, *, requested_by: str | None = None) -> Occurrence:
        """Take one in: enqueued, waiting or skipped, by the overlap policy."""
        occurrence = Occurrence(
            schedule_id=self._schedule.id,
            nominal_at=nominal_at,
            status=OccurrenceStatus.WAITING,
            requested_by=requested_by,
            created_at=self._now,
        )
        if reason := self.refusal():
            return self._skip(occurrence, reason)
        if self._schedule.overlap == Overlap.CANCEL:
            self._make_way(nominal_at)
        if self._schedule.overlap != Overlap.ALLOW and self.has_open:
            occurrence.save(using=self._connection.alias)
            self._last_waiting = occurrence
            return occurrence
        return self._enqueue(occurrence)

    def go_on(self) -> None:
        """Enqueue the run that waits longest, where none is before it any more."""
        if self._enqueued or self._last_waiting is None:
            return
        if reason := resting_reason(self._schedule):
            self._skip_waiting(self._waiting.filter(requested_by=None), reason)
        for occurrence in self._waiting.order_by("nominal_at", "id")[:MOST_BEGUN]:
            self._enqueue(occurrence)
            if self._enqueued:
                break
        self._last_waiting = self._waiting.order_by("nominal_at", "id").last()

    def _skip_waiting(self, rows: QuerySet[Occurrence], reason: str) -> None:
        rows.update(status=OccurrenceStatus.SKIPPED, reason=reason[:1000])

    def _make_way(self, nominal_at: datetime) -> None:
        """Cancel what has not ended; whoever waits gives way to the new one."""
        reason = f"The run of {nominal_at.isoformat()} has come."
        self._skip_waiting(self._waiting, reason)
        self._last_waiting = None
        ids = [task_id for row in self._enqueued if (task_id := row.task_id) is not None]
        selection = Selection(
            connection=self._connection,
            ids=ids,
            statuses=UNFINISHED,
            person=Person(f"schedule {self._schedule.name}"[:150], reason),
        )
        # No person: an attempt of a lost worker is waited for until its lease runs out.
        statuses = cancel_each(selection, ended_by="")
        # One that had not started is over. What runs is asked to stop, and waited for.
        for row in list(self._enqueued):
            if row.task_id is not None and statuses.get(row.task_id) == "cancelled":
                self._enqueued.remove(row)

    def _skip(self, occurrence: Occurrence, reason: str) -> Occurrence:
        occurrence.status = OccurrenceStatus.SKIPPED
        occurrence.reason = reason[:1000]
        occurrence.save(using=self._connection.alias)
        return occurrence

    def _enqueue(self, occurrence: Occurrence) -> Occurrence:
        """Enqueue its task; skip it if the task's unique key is held by another."""
        schedule, alias = self._schedule, self._connection.alias
        enqueued = self._insert(occurrence.nominal_at)
        if not enqueued.created:
            return self._skip(occurrence, f"Its unique key is held by task {UUID(enqueued.id)}.")
        task_id = UUID(enqueued.id)
        Task.objects.using(alias).filter(id=task_id).update(
            schedule_id=schedule.id, nominal_at=occurrence.nominal_at
        )
        occurrence.status = OccurrenceStatus.ENQUEUED
        occurrence.task_id = task_id
        occurrence.enqueued_at = self._now
        occurrence.save(using=alias)
        self._enqueued.append(occurrence)
        schedule.last_nominal_at = occurrence.nominal_at
        schedule.last_task_id = task_id
        return occurrence

    def _insert(self, nominal_at: datetime) -> Enqueued:
        snapshot = self._schedule.request
        spec = spec_from(snapshot)
        options = json.loads(spec.options) | {
            "schedule": self._schedule.name,
            "nominal_at": nominal_at.isoformat(),
        }
        # Whoever holds the unique key is another run, or somebody else's task: it is left alone.
        spec = replace(spec, options=json.dumps(options, separators=(",", ":")), restart=None)
        payload = Payload(uuid7_hex(), snapshot["args"], snapshot["kwargs"], snapshot["unique_key"])
        return enqueue(spec, payload, on_duplicate="return")


def spec_from(snapshot: dict[str, Any]) -> EnqueueSpec:
    """The spec again. Raises `InvalidSchedule` if another version wrote it."""
    try:
        return EnqueueSpec.from_json(snapshot["spec"])
    except (KeyError, ValueError) as error:
        raise InvalidSchedule(
            f"Its tasks' options were stored by another version of taskqueue ({error}). They are "
            "stored again when a worker starts that knows the task."
        ) from None


def resting_reason(schedule: Schedule) -> str:
    """Why nothing of a schedule is begun now; empty where it is."""
    if schedule.removed_at is not None:
        return "No code declares the schedule any more."
    if not schedule.is_enabled:
        return "The schedule is not enabled."
    if schedule.paused_at is None:
        return ""
    by = f" by {schedule.paused_by}" if schedule.paused_by else ""
    return f"Paused{by}: {schedule.pause_reason}" if schedule.pause_reason else f"Paused{by}."


def _shown(occurrence: Occurrence) -> str:
    return occurrence.nominal_at.isoformat()
