"""A workflow, its steps, their dependencies, and the notes of ends that advance it.

Rows change under the lock of their workflow, except the counts of a step: see
`engine.workflows`. As elsewhere, references have no constraint in the database.
"""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from taskqueue.core.uuid7 import uuid7
from taskqueue.core.workflow_states import After, OnFailure, StepKind, StepStatus, WorkflowStatus
from taskqueue.models.parts import LOOSE, VIEW_ONLY, DatabaseClock, choices, one_of

LONGEST_NAME = 100


class Workflow(models.Model):
    """Steps that depend on each other; the graph is these rows, whatever the code becomes."""

    id = models.UUIDField(primary_key=True, default=uuid7)
    name = models.CharField(max_length=LONGEST_NAME)
    # What the project says of its own changes.
    version = models.CharField(max_length=LONGEST_NAME, default="")
    status = models.CharField(
        max_length=12, choices=choices(WorkflowStatus), default=WorkflowStatus.RUNNING
    )
    # Of the stored graph: workers leave a newer one to others.
    format = models.SmallIntegerField()
    # References in the arguments of a child name steps of its parent.
    args = models.JSONField(default=list)
    kwargs = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    # The steps whose results are its own.
    last = models.JSONField(default=list)
    # The step that runs it as a child, and of a map as which of its members.
    parent_step_id = models.BigIntegerField(null=True)
    parent_place = models.IntegerField(null=True)
    schedule = models.ForeignKey(
        "Schedule", models.DO_NOTHING, null=True, related_name="+", **LOOSE
    )
    nominal_at = models.DateTimeField(null=True)

    unique_key = models.CharField(max_length=255, null=True)
    holds_unique_key = models.BooleanField(default=False)

    # Steps that have not ended.
    open_steps = models.IntegerField(default=0)
    total_steps = models.IntegerField(default=0)
    # The tasks and children that its steps are known to run.
    members = models.IntegerField(default=0)

    deadline_at = models.DateTimeField(null=True)
    paused_at = models.DateTimeField(null=True)
    stop_requested_at = models.DateTimeField(null=True)
    stop_requested_by = models.CharField(max_length=150, default="")
    stop_reason = models.CharField(max_length=1000, default="")
    # Up to which member of which step tasks were stopped: the next transaction goes on from there.
    stopped_step_id = models.BigIntegerField(default=0)
    stopped_place = models.IntegerField(default=-1)
    # When a stop next looks for what still runs; null: at once.
    stops_again_at = models.DateTimeField(null=True)

    # What is enqueued at its end: pairs of the end and the call.
    callbacks = models.JSONField(default=list)
    fail_fast = models.BooleanField(default=False)
    # `{"error_class": …, "message": …, "task_id": …}` of the step that failed first.
    error = models.JSONField(null=True)
    failed_step = models.CharField(max_length=LONGEST_NAME, default="")
    # Why it could not be advanced; empty when all is well.
    trouble = models.TextField(default="")
    retention = models.DurationField(null=True)
    created_at = models.DateTimeField(db_default=DatabaseClock())
    # When a step last ended or was released.
    moved_at = models.DateTimeField(db_default=DatabaseClock())
    # When its steps are counted anew, if it stands still until then: see `reconciling`.
    recount_at = models.DateTimeField(db_default=DatabaseClock())
    finished_at = models.DateTimeField(null=True)
    prune_after = models.DateTimeField(null=True)

    class Meta:
        default_permissions = VIEW_ONLY
        verbose_name = _("workflow")
        verbose_name_plural = _("workflows")
        indexes = [
            models.Index(fields=["status", "id"], name="taskqueue_workflow_status"),
            models.Index(
                # With the status: a stop reads those that run, and not all that have ended.
                fields=["parent_step_id", "status"],
                name="taskqueue_workflow_parent",
                condition=Q(parent_step_id__isnull=False),
            ),
            models.Index(
                fields=["deadline_at"],
                name="taskqueue_workflow_deadline",
                condition=Q(deadline_at__isnull=False, finished_at__isnull=True),
            ),
            models.Index(
                fields=["recount_at"],
                name="taskqueue_workflow_recount",
                condition=Q(finished_at__isnull=True, paused_at__isnull=True),
            ),
            models.Index(
                fields=["prune_after"],
                name="taskqueue_workflow_prune",
                condition=Q(prune_after__isnull=False),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["unique_key", "name"],
                name="taskqueue_workflow_unique_key",
                condition=Q(holds_unique_key=True),
            ),
            models.UniqueConstraint(
                fields=["parent_step_id", "parent_place"],
                name="taskqueue_workflow_place",
                condition=Q(parent_place__isnull=False),
            ),
            one_of("status", WorkflowStatus, name="taskqueue_workflow_status_known"),
            models.CheckConstraint(
                condition=Q(open_steps__gte=0, total_steps__gte=F("open_steps")),
                name="taskqueue_workflow_steps",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def is_held(self) -> bool:
        """Whether a pause keeps back what it is to release. Stops and compensations go on."""
        return self.paused_at is not None and self.status == WorkflowStatus.RUNNING


class Step(models.Model):
    """One step of a workflow: a task, a map of many, a child workflow, or a join."""

    id = models.BigAutoField(primary_key=True)
    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, related_name="steps", **LOOSE)
    name = models.CharField(max_length=LONGEST_NAME)
    kind = models.CharField(max_length=10, choices=choices(StepKind))
    status = models.CharField(
        max_length=10, choices=choices(StepStatus), default=StepStatus.WAITING
    )
    # Dependencies whose upstream step has not ended.
    waits = models.IntegerField(default=0)
    # Dependencies that call for it, and those that cancel it.
    taken = models.IntegerField(default=0)
    cancels = models.IntegerField(default=0)

    # Tasks or children that it runs; null until its release tells.
    members = models.IntegerField(null=True)
    # Of them, those that were sent, those that ended, and those that did not succeed.
    released = models.IntegerField(default=0)
    ended = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    # Of those that were sent before a retry, those that are to be sent again.
    held = models.IntegerField(default=0)
    # Of a step that a retry has let wait: the place from which on its tasks do not wait yet, and
    # whether all of them are to wait, or those that did not succeed. Null once they do.
    reopen_from = models.IntegerField(null=True)
    reopens_all = models.BooleanField(default=False)
    # When ends were last counted.
    counted_at = models.DateTimeField(null=True)
    # How many are sent at once; null for all.
    concurrency = models.IntegerField(null=True)
    # How many may fail; below 1 their share of all. `tolerated` is the number, once known.
    tolerate = models.FloatField(default=0)
    tolerated = models.IntegerField(default=0)
    # Whether there is something to do: an end decides something, the step is to send more members,
    # or tasks of it are still to wait again or to be cancelled. A flag, not a condition over the
    # counts, so that no index is written with each of them.
    is_due = models.BooleanField(default=False)

    on_failure = models.CharField(max_length=10, choices=choices(OnFailure), default=OnFailure.FAIL)
    when = models.JSONField(null=True)
    # What it runs, as far as its tasks do not say that themselves: see `engine.workflows.requests`.
    request = models.JSONField(default=dict)
    # The names of the steps that it reads.
    inputs = models.JSONField(default=list)
    compensate = models.JSONField(null=True)
    # The step whose member returned it as part of a fan-out, and which member.
    parent_step_id = models.BigIntegerField(null=True)
    parent_place = models.IntegerField(null=True)
    # The step that it compensates.
    compensates_id = models.BigIntegerField(null=True)
    released_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    # Why it was skipped, cancelled, or failed without a task that says so.
    reason = models.CharField(max_length=1000, default="")

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["workflow"], name="taskqueue_step_due", condition=Q(is_due=True)),
        ]
        constraints = [
            models.UniqueConstraint(fields=["workflow", "name"], name="taskqueue_step_name"),
            models.UniqueConstraint(
                fields=["parent_step_id", "parent_place"],
                name="taskqueue_step_parent",
                condition=Q(parent_step_id__isnull=False),
            ),
            one_of("status", StepStatus, name="taskqueue_step_status"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"

    @property
    def shown_failures(self) -> int:
        """Members without success; of a skipped step none, whose task was cancelled for that."""
        return 0 if self.status == StepStatus.SKIPPED else self.failures


class Dependency(models.Model):
    """`downstream` runs after that end of `upstream`."""

    pk = models.CompositePrimaryKey("upstream_id", "downstream_id", "when")
    upstream = models.ForeignKey(Step, models.DO_NOTHING, related_name="dependants", **LOOSE)
    downstream = models.ForeignKey(Step, models.DO_NOTHING, related_name="needs", **LOOSE)
    when = models.CharField(max_length=10, choices=choices(After), default=After.SUCCEEDED)

    class Meta:
        default_permissions = ()
        indexes = [models.Index(fields=["downstream"], name="taskqueue_dependency_down")]

    def __str__(self) -> str:
        return f"{self.downstream_id} after {self.upstream_id} {self.when}"


class StepCalls(models.Model):
    """Calls of a step that were not sent yet: a list of pairs of JSON texts, in their order."""

    pk = models.CompositePrimaryKey("step_id", "lease_id", "first_place")
    step = models.ForeignKey(Step, models.DO_NOTHING, related_name="+", **LOOSE)
    # The attempt that wrote them, for a fan-out; 0 once they are the step's own. What the fan-out
    # is stands before its calls, at place -1.
    lease_id = models.BigIntegerField(default=0)
    first_place = models.IntegerField()
    calls = models.JSONField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.step_id} from {self.first_place}"


class StepEnd(models.Model):
    """A note that tasks or children of a step have ended, until the step has counted them."""

    # The task or the child workflow; the first of those that have succeeded at once.
    subject = models.UUIDField(primary_key=True)
    workflow = models.ForeignKey(Workflow, models.DO_NOTHING, related_name="+", **LOOSE)
    step = models.ForeignKey(Step, models.DO_NOTHING, related_name="+", **LOOSE)
    status = models.CharField(max_length=12)
    # How many have ended like that.
    number = models.IntegerField(default=1)
    # What its body changes in the context of the workflow.
    updates = models.JSONField(null=True)
    # Whether its body returned calls that are to run in its place.
    has_fan = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(fields=["workflow", "step"], name="taskqueue_stepend_workflow"),
            # Those that a fold leaves to the advance.
            models.Index(
                fields=["workflow", "step"],
                name="taskqueue_stepend_special",
                condition=Q(updates__isnull=False) | Q(has_fan=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subject} {self.status}"


class Member(models.Model):
    """The task at one place of a step. Its key keeps a place from being sent twice."""

    pk = models.CompositePrimaryKey("step_id", "place")
    step = models.ForeignKey(Step, models.DO_NOTHING, related_name="+", **LOOSE)
    place = models.IntegerField()
    task = models.ForeignKey("Task", models.DO_NOTHING, related_name="+", **LOOSE)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.step_id}[{self.place}]"
