"""A schedule, a rule in time that creates tasks or workflows; an occurrence, one of its times."""

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

    # Declared next to its task: the code decides everything except whether it is paused.
    CODE = "code"
    # Created at run time, and edited by people.
    ROW = "row"


class Schedule(models.Model):
    """Every nominal time of the rule up to `served_until` has its occurrence.

    A run is a task or a whole workflow. `request` stores what its runs share, as of the last time
    that code with the definition has seen it, so a worker that serves the schedule need not know
    the definition.
    """

    id = models.BigAutoField(primary_key=True)
    name = models.CharField(max_length=LONGEST_NAME, unique=True)
    # The name of the definition or workflow that it runs.
    task_name = models.CharField(max_length=LONGEST_NAME)
    is_workflow = models.BooleanField(default=False)
    rule = models.JSONField()
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    # Options of its runs that replace those of their definition or workflow.
    options = models.JSONField(default=dict)
    request = models.JSONField()
    missed = models.CharField(max_length=10, choices=choices(Missed), default=Missed.LATEST)
    missed_window = models.DurationField(null=True)
    overlap = models.CharField(max_length=10, choices=choices(Overlap), default=Overlap.SKIP)
    pause_after_failures = models.PositiveIntegerField(null=True)
    # The longest delay of a run after its nominal time; `engine.schedules.times` computes the
    # delay.
    jitter = models.DurationField(null=True)
    # After this many runs of its rule the schedule is over; null for never.
    max_runs = models.PositiveIntegerField(null=True)
    is_enabled = models.BooleanField(default=True)

    source = models.CharField(
        max_length=10, choices=choices(ScheduleSource), default=ScheduleSource.ROW
    )
    # When code last declared it.
    declared_at = models.DateTimeField(null=True)
    # Since when no code declares it any more: it is inactive, and its history is kept.
    removed_at = models.DateTimeField(null=True)
    # While it is paused, its nominal times are recorded as skipped.
    paused_at = models.DateTimeField(null=True)
    paused_by = models.CharField(max_length=150, default="")
    pause_reason = models.CharField(max_length=1000, default="")
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # When its rule, arguments, options or policies were last changed.
    changed_at = models.DateTimeField(db_default=DatabaseClock())

    served_until = models.DateTimeField()
    # Its next nominal time; null if there is none, or none before a run has ended.
    next_at = models.DateTimeField(null=True)
    # Runs of its rule since the rule was last changed, without skipped times and runs by hand.
    run_count = models.PositiveIntegerField(default=0)
    failures_in_row = models.PositiveIntegerField(default=0)
    # Why it could not be served; empty if it could.
    trouble = models.TextField(default="")

    # The last run that was enqueued.
    last_nominal_at = models.DateTimeField(null=True)
    last_task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    last_workflow = models.ForeignKey(
        Workflow, models.DO_NOTHING, null=True, related_name="+", **LOOSE
    )
    # How the run ended that ended last; these columns outlive the run's rows.
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
        """Whether it was paused after too many failures in a row, and not by a person."""
        limit = self.pause_after_failures
        has_failed = limit is not None and self.failures_in_row >= limit
        return self.paused_at is not None and not self.paused_by and has_failed

    @property
    def is_active(self) -> bool:
        """Whether its nominal times are served; a paused schedule records them as skipped."""
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
    """A schedule has at most one for each nominal time, however its run ended."""

    id = models.BigAutoField(primary_key=True)
    schedule = models.ForeignKey(
        Schedule, models.CASCADE, related_name="occurrences", db_index=False
    )
    nominal_at = models.DateTimeField()
    # The last nominal time, if one row stands for many that were skipped together.
    nominal_until = models.DateTimeField(null=True)
    # How many nominal times the row stands for.
    count = models.PositiveIntegerField(default=1)
    status = models.CharField(max_length=10, choices=choices(OccurrenceStatus))
    reason = models.CharField(max_length=1000, default="")
    # The task or workflow of the run; it has one of the two.
    task = models.ForeignKey(Task, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, null=True, related_name="+", **LOOSE)
    # The final status of that task or workflow.
    task_status = models.CharField(max_length=10, default="")
    # Who ran it by hand; null for a nominal time of the rule.
    requested_by = models.CharField(max_length=150, null=True)
    # The id of that request, if it had one: sent twice, it makes one run.
    requested_as = models.UUIDField(null=True)
    # What it runs instead of the schedule's request: a run by hand with other arguments.
    request = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    enqueued_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("occurrence")
        verbose_name_plural = _("occurrences")
        indexes = [
            # Not a partial index: SQLite cannot use that if the status is a parameter.
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
