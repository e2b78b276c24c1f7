"""A schedule: a rule in time that creates tasks or workflows; an occurrence: one of its times."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.states import Missed, Overlap
from taskqueue.models.parts import LOOSE, VIEW_ONLY, DatabaseClock, choices, one_of
from taskqueue.models.task import LONGEST_NAME, Task
from taskqueue.models.workflow import Workflow


class ScheduleSource(StrEnum):
    """Where a schedule is edited."""

    # Declared beside its task: the code says all but whether it is paused.
    CODE = "code"
    # Created at run time: people edit it.
    ROW = "row"


class Schedule(models.Model):
    """Every nominal time of the rule up to `served_until` has its occurrence.

    A run is a task or a whole workflow. What its runs share is kept in `request`, as it was when
    code that knows the definition last looked at it: who serves the schedule need not know the
    definition.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    # The name of the definition or workflow that it runs.
    task_name = models.CharField(max_length=LONGEST_NAME)
    is_workflow = models.BooleanField(default=False)
    rule = models.JSONField()
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    # What its runs have in place of the options of their definition or workflow.
    options = models.JSONField(default=dict)
    request = models.JSONField()
    missed = models.CharField(max_length=10, choices=choices(Missed), default=Missed.LATEST)
    missed_window = models.DurationField(null=True)
    overlap = models.CharField(max_length=10, choices=choices(Overlap), default=Overlap.SKIP)
    pause_after_failures = models.PositiveIntegerField(null=True)
    # Each run starts up to so much after its nominal time: `engine.schedules.times` says how much.
    jitter = models.DurationField(null=True)
    # After so many runs of its rule the schedule is over; null: never.
    max_runs = models.PositiveIntegerField(null=True)
    is_enabled = models.BooleanField(default=True)

    source = models.CharField(
        max_length=10, choices=choices(ScheduleSource), default=ScheduleSource.ROW
    )
    # When code was last seen to declare it.
    declared_at = models.DateTimeField(null=True)
    # Since when no code declares it any more: it rests, and its history stays.
    removed_at = models.DateTimeField(null=True)
    # While it is paused its nominal times are recorded as skipped.
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, default="")
    pause_reason = models.CharField(max_length=1000, default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # When its rule, arguments, options or policies were last changed.
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    served_until = models.DateTimeField()
    # Its next nominal time; null where there is none, or none before a run has ended.
    next_at = models.DateTimeField(null=True)
    # Runs of its rule since that was last changed; what was skipped is none, nor one by hand.
    run_count = models.PositiveIntegerField(default=0)
    failures_in_row = models.PositiveIntegerField(default=0)
    # Why it could not be served; empty when all is well.
    trouble = models.TextField(default="")

    # Of the last run that was enqueued.
    last_nominal_at = models.DateTimeField(null=True)
    last_task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    last_workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, null=True, related_name="+", **LOOSE
    )
    # What the run that ended last came to; this and what follows outlives its rows.
    last_status = models.CharField(max_length=10, default="")
    last_finished_at = models.DateTimeField(null=True)
    last_return_value = models.JSONField(null=True)
    last_error = models.TextField(default="")

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        permissions = [
            (
                "edit_schedules",
                "Can pause and delete schedules; with enqueue also create, edit and run them",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_at"],
                name="taskqueue_schedule_next",
                condition=Q(next_at__isnull=False, is_enabled=True, removed_at__isnull=True),
            )
        ]
        constraints = [
            one_of("missed", Missed, name="taskqueue_schedule_missed"),
            one_of("overlap", Overlap, name="taskqueue_schedule_overlap"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def paused_itself(self) -> bool:
        """Whether it is paused after so many failures in a row, and nobody paused it by hand."""
        limit = self.pause_after_failures
        has_failed = limit is not None and self.failures_in_row >= limit
        return self.paused_at is not None and not self.paused_by and has_failed

    @property
    def is_active(self) -> bool:
        """Whether its nominal times are looked after; a paused schedule records them as skipped."""
        return self.is_enabled and self.removed_at is None


class OccurrenceStatus(StrEnum):
    """Where one nominal time stands; `ended` and `skipped` are final."""

    # It is enqueued once the run before it has ended.
    WAITING = "waiting"
    # Its task or workflow has not ended yet.
    ENQUEUED = "enqueued"
    # Its task or workflow has ended, and may have been pruned since.
    ENDED = "ended"
    # It was not enqueued; `reason` says why.
    SKIPPED = "skipped"


OPEN = (OccurrenceStatus.WAITING.value, OccurrenceStatus.ENQUEUED.value)


class Occurrence(models.Model):
    """There is at most one for a schedule and a nominal time, whatever became of its run."""

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, models.CASCADE, related_name="occurrences", db_index=False
    )
    nominal_at = models.DateTimeField()
    # The last nominal time, where one row stands for many that were skipped together.
    nominal_until = models.DateTimeField(null=True)
    # How many nominal times the row stands for.
    count = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=choices(OccurrenceStatus))
    reason = models.CharField(max_length=1000, default="")
    # What it was enqueued as: one of the two.
    task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    # The final status of that.
    task_status = models.CharField(max_length=10, default="")
    # Who had it run by hand; null for a nominal time of the rule.
    requested_by = models.CharField(max_length=150, null=True)
    # The id of that request, if it had one: sent twice, it makes one run.
    requested_as = models.UUIDField(null=True)
    # What it runs in place of the request of its schedule: a run by hand with other arguments.
    request = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    enqueued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        indexes = [
            # Not a partial one: SQLite cannot use that where the status is a parameter.
            models.Index(
                fields=["status", "schedule", "nominal_at"], name="taskqueue_occurrence_open"
            )
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["schedule", "nominal_at"], name="taskqueue_occurrence_nominal"
            ),
            models.UniqueConstraint(
                fields=["schedule", "requested_as"],
                name="taskqueue_occurrence_requested",
                condition=Q(requested_as__isnull=False),
            ),
            one_of("status", OccurrenceStatus, name="taskqueue_occurrence_status"),
        ]

    def __str__(self) -> str:
        return f"{self.schedule_id} at {self.nominal_at.isoformat()}"
