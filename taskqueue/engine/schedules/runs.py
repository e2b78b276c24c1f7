"""Runs of a schedule: an occurrence each, with its task or workflow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import QuerySet

from taskqueue.core.refusals import refusal as _
from taskqueue.core.refusals import why
from taskqueue.core.states import Overlap, TaskStatus
from taskqueue.core.uuid7 import uuid7_hex
from taskqueue.core.workflow_states import FINAL_WORKFLOWS
from taskqueue.declarations.workflows.graph_json import graph_from_json
from taskqueue.engine.control.audit import Person
from taskqueue.engine.control.locking import Selection
from taskqueue.engine.control.tasks import UNFINISHED, cancel_each
from taskqueue.engine.enqueue import enqueue
from taskqueue.engine.payloads import Enqueued, Payload
from taskqueue.engine.schedules.reading import resting_reason
from taskqueue.engine.specs import EnqueueSpec
from taskqueue.engine.workflows import verbs as workflow_verbs
from taskqueue.engine.workflows.enqueueing import enqueue_workflow
from taskqueue.engine.workflows.inserting import Origin
from taskqueue.exceptions import InvalidSchedule, TransitionRefused, WorkflowDoesNotExist
from taskqueue.models import Occurrence, Schedule, Task, Workflow
from taskqueue.models.schedule import OccurrenceStatus

# The most open runs that are read; with `allow` there may be any number.
MOST_ENQUEUED = 100
# The most waiting runs that are tried at once while each finds its unique key held.
MOST_BEGUN = 100
LONGEST_REASON = 1000


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
        """Return why a further run is not accepted now; empty if it is, at once or later."""
        overlap, queued = self.schedule.overlap, self._last_waiting
        if overlap == Overlap.SKIP and self._enqueued:
            return f"The run of {self._enqueued[-1].nominal_at.isoformat()} has not ended."
        if queued is not None and (
            overlap == Overlap.SKIP or (overlap == Overlap.QUEUE_ONE and self._enqueued)
        ):
            return f"The run of {queued.nominal_at.isoformat()} waits already."
        return ""

    def accept(
        self,
        nominal_at: datetime,
        *,
        requested_by: str | None = None,
        requested_as: UUID | None = None,
        request: dict[str, Any] | None = None,
    ) -> Occurrence:
        """Accept a run that is not refused.

        It is enqueued, waits, or is skipped for its unique key. `request` replaces the schedule's
        own for this run.
        """
        occurrence = Occurrence(
            schedule_id=self.schedule.id,
            nominal_at=nominal_at,
            status=OccurrenceStatus.WAITING,
            requested_by=requested_by,
            requested_as=requested_as,
            request=request,
            created_at=self.now,
        )
        if self.schedule.overlap == Overlap.CANCEL:
            self._make_way(nominal_at)
        if self.schedule.overlap == Overlap.ALLOW or not self.has_open:
            self._enqueue(occurrence)
        else:
            occurrence.save(using=self.connection.alias)
            self._last_waiting = occurrence
        if requested_by is None and occurrence.status != OccurrenceStatus.SKIPPED:
            self.schedule.run_count += 1
        return occurrence

    def go_on(self) -> None:
        """Enqueue the run that has waited longest, if no earlier run is open any more."""
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
        """Cancel the open runs: waiting ones, too, give way to the new one."""
        reason = f"The run of {nominal_at.isoformat()} has come."
        _skip(self._waiting, reason)
        self._last_waiting = None
        person = Person(f"schedule {self.schedule.name}"[:150], reason)
        # Workflows first: a session that holds a task never waits for a workflow.
        workflows = [row.workflow_id for row in self._enqueued if row.workflow_id is not None]
        over = self._cancel_workflows(workflows, person)
        tasks = [row.task_id for row in self._enqueued if row.task_id is not None]
        over |= self._cancel_tasks(tasks, person)
        self._enqueued = [
            row for row in self._enqueued if (row.task_id or row.workflow_id) not in over
        ]

    def _cancel_tasks(self, task_ids: Sequence[UUID], person: Person) -> set[UUID]:
        """Cancel waiting tasks and ask running ones to stop. Return those that ended at once."""
        selection = Selection(
            connection=self.connection, ids=list(task_ids), statuses=UNFINISHED, person=person
        )
        # No person: for an attempt of a lost worker, this waits until its lease runs out.
        statuses = cancel_each(selection, ended_by="")
        return {task_id for task_id, now in statuses.items() if now == TaskStatus.CANCELLED}

    def _cancel_workflows(self, workflow_ids: Sequence[UUID], person: Person) -> set[UUID]:
        """Cancel workflows. Return those that ended at once; others end when their tasks have."""
        rows = Workflow.objects.using(self.connection.alias).filter(id__in=workflow_ids)
        for workflow_id in sorted(workflow_ids):
            try:
                workflow_verbs.cancel(
                    self.connection, workflow_id, by=person.by, reason=person.reason
                )
            except (TransitionRefused, WorkflowDoesNotExist):
                continue  # It has ended, or is stopping already.
        over = rows.filter(status__in=sorted(FINAL_WORKFLOWS))
        return set(over.values_list("id", flat=True))

    def _enqueue(self, occurrence: Occurrence) -> None:
        """Enqueue the task or workflow of a run. Skip the run if its unique key is held."""
        begin = self._begin_workflow if self.schedule.is_workflow else self._begin_task
        if holder := begin(occurrence):
            occurrence.status = OccurrenceStatus.SKIPPED
            occurrence.reason = f"Its unique key is held by {holder}."
        else:
            schedule = self.schedule
            occurrence.status = OccurrenceStatus.ENQUEUED
            occurrence.enqueued_at = self.now
            self._enqueued.append(occurrence)
            schedule.last_nominal_at = occurrence.nominal_at
            schedule.last_task_id = occurrence.task_id
            schedule.last_workflow_id = occurrence.workflow_id
        occurrence.save(using=self.connection.alias)

    def _begin_task(self, occurrence: Occurrence) -> str:
        """Enqueue the task. Return the holder of its unique key; empty if there is none."""
        enqueued = self._insert(occurrence)
        task_id = UUID(enqueued.id)
        if not enqueued.created:
            return f"task {task_id}"
        tasks = Task.objects.using(self.connection.alias).filter(id=task_id)
        tasks.update(schedule_id=self.schedule.id, nominal_at=occurrence.nominal_at)
        occurrence.task_id = task_id
        return ""

    def _begin_workflow(self, occurrence: Occurrence) -> str:
        """Enqueue the workflow. Return the holder of its unique key; empty if there is none."""
        request = occurrence.request or self.schedule.request
        stored = graph_from_json(request.get("graph", {}))
        graph = replace(stored, on_duplicate="return")
        origin = Origin(schedule_id=self.schedule.id, nominal_at=occurrence.nominal_at)
        workflow, is_new = enqueue_workflow(self.connection, graph, origin=origin)
        if not is_new:
            return f"workflow {workflow.id}"
        occurrence.workflow_id = workflow.id
        return ""

    def _insert(self, occurrence: Occurrence) -> Enqueued:
        snapshot = occurrence.request or self.schedule.request
        spec = spec_from(snapshot)
        options = json.loads(spec.options) | {
            "schedule": self.schedule.name,
            "nominal_at": occurrence.nominal_at.isoformat(),
        }
        # The holder of the unique key is another run, or a task of somebody else: it is not
        # touched. A run is neither put off nor dropped silently: it is skipped, and says which task
        # holds the key.
        spec = replace(
            spec,
            options=json.dumps(options, separators=(",", ":")),
            restart=None,
            debounce_in=None,
            when_full=spec.when_full and "drop",
        )
        args, kwargs = snapshot["args"], snapshot["kwargs"]
        placement = spec.place(args, kwargs)
        payload = Payload(uuid7_hex(), args, kwargs, snapshot["unique_key"], placement)
        return enqueue(spec, payload, on_duplicate="return")


def skipped_row(schedule: Schedule, nominal_at: datetime, reason: str, now: datetime) -> Occurrence:
    """Return the unsaved occurrence of a nominal time that does not run."""
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
    """Return the spec from its stored form.

    Raises `InvalidSchedule` if another version wrote it.
    """
    try:
        return EnqueueSpec.from_json(snapshot["spec"])
    except (KeyError, ValueError) as error:
        raise InvalidSchedule(_(
            "Its tasks' options were stored by another version of taskqueue ({error}). They are "
            "stored again when a worker starts that knows the task.",
            error=why(error),
        )) from None  # fmt: skip
