"""Runs of a schedule: each an occurrence and the task that it is enqueued as, until its end."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Exists, OuterRef, QuerySet

from taskqueue.core.states import FINISHED, Overlap, TaskStatus
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.engine.control.audit import Act, Person, audit
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.enqueue import enqueue
from taskqueue.engine.schedules.reading import resting_reason
from taskqueue.engine.specs import Enqueued, EnqueueSpec, Payload
from taskqueue.exceptions import InvalidSchedule
from taskqueue.models import Occurrence, Schedule, Task
from taskqueue.models.schedule import OccurrenceStatus

# The number of open runs that are looked at; under `allow` there may be any number.
MOST_ENQUEUED = 100
# The number of waiting runs that are tried at once where each finds its unique key held.
MOST_BEGUN = 100
# The number of ended runs that are noted at once.
MOST_SETTLED = 500
LONGEST_REASON = 1000
# The name under which the app itself pauses a schedule.
ITSELF = "taskqueue"


class Runs:
    """The runs of one locked schedule that have not ended, in the order of their times."""

    def __init__(self, connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime) -> None:
        self.connection = connection
        self.schedule = schedule
        self.now = now
        rows = Occurrence.objects.using(connection.alias).filter(schedule_id=schedule.id)
        rows = rows.order_by("nominal_at", "id")
        most = 1 if schedule.overlap == Overlap.ALLOW else MOST_ENQUEUED
        self._enqueued = list(rows.filter(status=OccurrenceStatus.ENQUEUED)[:most])
        self._waiting = rows.filter(status=OccurrenceStatus.WAITING)
        self._last_waiting = self._waiting.last()

    @property
    def has_open(self) -> bool:
        """Return whether a run has not ended."""
        return bool(self._enqueued) or self._last_waiting is not None

    def refusal(self) -> str:
        """Return why a further run is not accepted now; empty where it is, at once or later."""
        overlap, queued = self.schedule.overlap, self._last_waiting
        if overlap == Overlap.SKIP and self._enqueued:
            return f"The run of {self._enqueued[-1].nominal_at.isoformat()} has not ended."
        if queued is not None and (
            overlap == Overlap.SKIP or (overlap == Overlap.QUEUE_ONE and self._enqueued)
        ):
            return f"The run of {queued.nominal_at.isoformat()} waits already."
        return ""

    def accept(self, nominal_at: datetime, *, requested_by: str | None = None) -> Occurrence:
        """Take one in that is not refused: enqueued, waiting, or skipped for its unique key."""
        occurrence = Occurrence(
            schedule_id=self.schedule.id,
            nominal_at=nominal_at,
            status=OccurrenceStatus.WAITING,
            requested_by=requested_by,
            created_at=self.now,
        )
        if self.schedule.overlap == Overlap.CANCEL:
            self._make_way(nominal_at)
        if self.schedule.overlap == Overlap.ALLOW or not self.has_open:
            self._enqueue(occurrence)
        else:
            occurrence.save(using=self.connection.alias)
            self._last_waiting = occurrence
        return occurrence

    def go_on(self) -> None:
        """Enqueue the run that waits longest, where none is before it any more."""
        if self._enqueued or self._last_waiting is None:
            return
        if reason := resting_reason(self.schedule):
            _skip(self._waiting.filter(requested_by=None), reason)
        for occurrence in self._waiting[:MOST_BEGUN]:
            self._enqueue(occurrence)
            if self._enqueued:
                break
        self._last_waiting = self._waiting.last()

    def _make_way(self, nominal_at: datetime) -> None:
        """Cancel what has not ended; whoever waits gives way to the new one."""
        reason = f"The run of {nominal_at.isoformat()} has come."
        _skip(self._waiting, reason)
        self._last_waiting = None
        selection = Selection(
            connection=self.connection,
            ids=[row.task_id for row in self._enqueued if row.task_id is not None],
            statuses=UNFINISHED,
            person=Person(f"schedule {self.schedule.name}"[:150], reason),
        )
        # No person: an attempt of a lost worker is waited for until its lease runs out.
        statuses = cancel_each(selection, ended_by="")
        # One that had not started is over. What runs is asked to stop, and waited for.
        over = [task_id for task_id, status in statuses.items() if status == TaskStatus.CANCELLED]
        self._enqueued = [row for row in self._enqueued if row.task_id not in over]

    def _enqueue(self, occurrence: Occurrence) -> None:
        """Enqueue its task; skip it if the task's unique key is held by another."""
        enqueued = self._insert(occurrence.nominal_at)
        task_id = UUID(enqueued.id)
        if enqueued.created:
            schedule, nominal_at = self.schedule, occurrence.nominal_at
            tasks = Task.objects.using(self.connection.alias).filter(id=task_id)
            tasks.update(schedule_id=schedule.id, nominal_at=nominal_at)
            occurrence.status = OccurrenceStatus.ENQUEUED
            occurrence.task_id = task_id
            occurrence.enqueued_at = self.now
            self._enqueued.append(occurrence)
            schedule.last_nominal_at, schedule.last_task_id = nominal_at, task_id
        else:
            occurrence.status = OccurrenceStatus.SKIPPED
            occurrence.reason = f"Its unique key is held by task {task_id}."
        occurrence.save(using=self.connection.alias)

    def _insert(self, nominal_at: datetime) -> Enqueued:
        snapshot = self.schedule.request
        spec = spec_from(snapshot)
        options = json.loads(spec.options) | {
            "schedule": self.schedule.name,
            "nominal_at": nominal_at.isoformat(),
        }
        # Whoever holds the unique key is another run, or somebody else's task: it is left alone.
        spec = replace(spec, options=json.dumps(options, separators=(",", ":")), restart=None)
        payload = Payload(uuid7_hex(), snapshot["args"], snapshot["kwargs"], snapshot["unique_key"])
        return enqueue(spec, payload, on_duplicate="return")


def skipped_row(schedule: Schedule, nominal_at: datetime, reason: str, now: datetime) -> Occurrence:
    """Return the occurrence of a nominal time that does not run, which is not saved yet."""
    return Occurrence(
        schedule_id=schedule.id,
        nominal_at=nominal_at,
        status=OccurrenceStatus.SKIPPED,
        reason=reason[:LONGEST_REASON],
        created_at=now,
    )


def _skip(rows: QuerySet[Occurrence], reason: str) -> None:
    rows.update(status=OccurrenceStatus.SKIPPED, reason=reason[:LONGEST_REASON])


def spec_from(snapshot: dict[str, Any]) -> EnqueueSpec:
    """The spec again. Raises `InvalidSchedule` if another version wrote it."""
    try:
        return EnqueueSpec.from_json(snapshot["spec"])
    except (KeyError, ValueError) as error:
        raise InvalidSchedule(
            f"Its tasks' options were stored by another version of taskqueue ({error}). They are "
            "stored again when a worker starts that knows the task."
        ) from None


def ended_runs(
    connection: BaseDatabaseWrapper, schedule_id: int | OuterRef
) -> QuerySet[Occurrence]:
    """Return the runs of a schedule whose task has ended since anybody looked."""
    tasks = Task.objects.using(connection.alias).filter(id=OuterRef("task_id"))
    return Occurrence.objects.using(connection.alias).filter(
        ~Exists(tasks.exclude(status__in=FINISHED)),
        schedule_id=schedule_id,
        status=OccurrenceStatus.ENQUEUED,
    )


def settle_ended(
    connection: BaseDatabaseWrapper, schedule: Schedule, now: datetime
) -> datetime | None:
    """Note the ends of a locked schedule's runs, in their order; when the last of them ended."""
    ended = list(ended_runs(connection, schedule.id).order_by("nominal_at")[:MOST_SETTLED])
    if not ended:
        return None
    # Without what they returned, which may be large: only the last one's is kept.
    lean = Task.objects.using(connection.alias).only(
        "status", "finished_at", "error_class", "error_message"
    )
    tasks: dict[Any, Task] = lean.in_bulk([row.task_id for row in ended if row.task_id])
    for row in ended:
        task = tasks.get(row.task_id)  # None: pruned or deleted before anybody looked.
        row.status = OccurrenceStatus.ENDED
        row.task_status = "" if task is None else str(task.status)
        row.finished_at = now if task is None else task.finished_at
    ended.sort(key=lambda row: row.finished_at or now)
    rows = Occurrence.objects.using(connection.alias)
    rows.bulk_update(ended, ["status", "task_status", "finished_at"])
    for row in ended:
        _count(connection, schedule, row, now)
    last = ended[-1]
    task = tasks.get(last.task_id)
    # Kept with the schedule, for it outlives the task.
    schedule.last_status, schedule.last_finished_at = last.task_status, last.finished_at
    schedule.last_return_value = None if task is None else task.return_value
    schedule.last_error = (
        "" if task is None else ": ".join(filter(None, [task.error_class, task.error_message]))
    )
    return last.finished_at


def _count(
    connection: BaseDatabaseWrapper, schedule: Schedule, row: Occurrence, now: datetime
) -> None:
    """Count failures in a row, and pause the schedule where they are too many."""
    if row.task_status == TaskStatus.SUCCEEDED:
        schedule.failures_in_row = 0
    elif row.task_status == TaskStatus.FAILED:
        schedule.failures_in_row += 1
        number, limit = schedule.failures_in_row, schedule.pause_after_failures
        if limit is not None and number >= limit and schedule.paused_at is None:
            reason = "1 run failed." if number == 1 else f"{number} runs failed in a row."
            schedule.paused_at = now
            schedule.paused_by, schedule.pause_reason = "", reason
            person = Person(ITSELF, reason)
            audit(connection, "schedule", "pause", [Act(schedule.name)], person=person)
