"""A schedule as the API shows it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers

from taskqueue import schedules
from taskqueue.access.permissions import VIEW_ARGUMENTS
from taskqueue.api.fields import Anything
from taskqueue.api.rules import RuleField
from taskqueue.core.policies import Missed, Overlap
from taskqueue.core.states import FINISHED, TaskStatus
from taskqueue.declarations.redaction import redacted
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import conditions, due_at, rule_of, rule_text
from taskqueue.models import Occurrence, Schedule
from taskqueue.models.occurrence import OccurrenceStatus
from taskqueue.models.schedule import ScheduleSource

MOST_RUNS = 20
MOST_TIMES = 5
CONDITIONS = ("removed", "disabled", "trouble", "paused", "over", "overdue")
VIEW_OCCURRENCES = "taskqueue.view_occurrence"


class RunShown(serializers.Serializer[Any]):
    """What became of one nominal time, or of many that were skipped together."""

    nominal_at = serializers.DateTimeField()
    nominal_until = serializers.DateTimeField(
        allow_null=True, help_text="The last time, where the row stands for many."
    )
    count = serializers.IntegerField(help_text="How many nominal times it stands for.")
    status = serializers.ChoiceField(choices=[each.value for each in OccurrenceStatus])
    reason = serializers.CharField(help_text="Why it has no task.")
    task_id = serializers.UUIDField(allow_null=True, help_text="It may have been pruned since.")
    task_status = serializers.ChoiceField(
        choices=["", *(each.value for each in TaskStatus)], help_text="What its task came to."
    )
    requested_by = serializers.CharField(
        allow_null=True, help_text="Who had it run by hand; null: the rule."
    )
    enqueued_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class ScheduleShown(serializers.Serializer[Any]):
    """A schedule, its policies, and how it fares."""

    name = serializers.CharField()
    task = serializers.CharField(help_text="The name of the task type that it enqueues.")
    source = serializers.ChoiceField(  # type: ignore[assignment]
        choices=[each.value for each in ScheduleSource],
        help_text="`code`: declared beside its task, and edited there; `row`: edited here.",
    )
    rule = RuleField(
        allow_null=True, help_text="null: another version wrote it, and this one cannot read it."
    )
    rule_text = serializers.CharField(help_text="In words.")
    args = serializers.ListField(
        child=Anything(allow_null=True),
        allow_null=True,
        help_text="null: hidden, for want of a permission.",
    )
    kwargs = serializers.DictField(child=Anything(allow_null=True), allow_null=True)
    options = serializers.DictField(
        child=Anything(allow_null=True),
        help_text="In place of the task type's own; durations are seconds.",
    )
    missed = serializers.ChoiceField(choices=[each.value for each in Missed])
    missed_window = serializers.FloatField(allow_null=True, help_text="Seconds.")
    overlap = serializers.ChoiceField(choices=[each.value for each in Overlap])
    pause_after_failures = serializers.IntegerField(allow_null=True)
    enabled = serializers.BooleanField()
    conditions = serializers.ListField(
        child=serializers.ChoiceField(choices=CONDITIONS),
        help_text="What keeps it from running, the worst first; empty: nothing does.",
    )
    paused_at = serializers.DateTimeField(allow_null=True)
    paused_by = serializers.CharField()
    pause_reason = serializers.CharField()
    trouble = serializers.CharField(help_text="Why it could not be served.")
    failures_in_row = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    changed_at = serializers.DateTimeField()
    next_at = serializers.DateTimeField(
        allow_null=True, help_text="null also while it is paused: its times are skipped."
    )
    last_nominal_at = serializers.DateTimeField(allow_null=True)
    last_task_id = serializers.UUIDField(allow_null=True)
    last_status = serializers.ChoiceField(
        choices=["", *sorted(each.value for each in FINISHED)],
        help_text="What the run that ended last came to.",
    )
    last_finished_at = serializers.DateTimeField(allow_null=True)


class ScheduleWhole(ScheduleShown):
    """With the times to come, and the last runs."""

    next_times = serializers.ListField(
        child=serializers.DateTimeField(), help_text="None while it is paused."
    )
    last_return_value = Anything(allow_null=True)
    last_error = serializers.CharField()
    last_runs = RunShown(
        many=True, allow_null=True, help_text="The newest first; null: not for you to see."
    )


SAME = (
    "name", "source", "options", "missed", "overlap", "pause_after_failures", "paused_at",
    "paused_by", "pause_reason", "trouble", "failures_in_row", "created_at", "changed_at",
    "last_nominal_at", "last_task_id", "last_status", "last_finished_at",
)  # fmt: skip
"""What is shown under the name of its column."""
RUN = tuple(RunShown._declared_fields)


def shown(schedule: Schedule, user: Any, now: datetime) -> dict[str, Any]:
    """A schedule in a list."""
    rule, window = rule_of(schedule), schedule.missed_window
    call = redacted(schedule.task_name, schedule.args, schedule.kwargs)
    if call is None and user.has_perm(VIEW_ARGUMENTS):
        args, kwargs = schedule.args, schedule.kwargs
    else:
        args, kwargs = (None, None) if call is None else call
    values = {
        **{name: getattr(schedule, name) for name in SAME},
        "task": schedule.task_name,
        "rule": None if rule is None else rule.as_json(),
        "rule_text": rule_text(schedule),
        "args": args,
        "kwargs": kwargs,
        "missed_window": None if window is None else window.total_seconds(),
        "enabled": schedule.is_enabled,
        "conditions": conditions(schedule, now),
        "next_at": due_at(schedule),
    }
    return {name: values[name] for name in ScheduleShown._declared_fields}


def shown_whole(schedule: Schedule, user: Any, now: datetime) -> dict[str, Any]:
    """A schedule by itself."""
    is_due = due_at(schedule) is not None
    is_success = schedule.last_status == TaskStatus.SUCCEEDED
    return {
        **shown(schedule, user, now),
        "next_times": times_to_come(schedule, now, count=MOST_TIMES) if is_due else [],
        "last_return_value": schedule.last_return_value if is_success else None,
        "last_error": schedule.last_error,
        "last_runs": _last_runs(schedule) if user.has_perm(VIEW_OCCURRENCES) else None,
    }


def shown_run(run: Occurrence) -> dict[str, Any]:
    """What became of a nominal time."""
    return {name: getattr(run, name) for name in RUN}


def times_to_come(schedule: Schedule, now: datetime, *, count: int) -> list[datetime]:
    """The next nominal times, as if it was not paused; none of a rule that cannot be read."""
    rule = rule_of(schedule)
    if rule is None or not schedule.is_active or schedule.next_at is None:
        return []
    if rule.waits_for_end:
        return [schedule.next_at]
    return schedules.preview_rule(rule, count=count, after=now)


def runs_of(schedule: Schedule) -> QuerySet[Occurrence]:
    """What became of its nominal times, the newest first."""
    rows = Occurrence.objects.using(database_alias()).filter(schedule_id=schedule.pk)
    return rows.defer("created_at").order_by("-nominal_at")


def _last_runs(schedule: Schedule) -> list[dict[str, Any]]:
    return [shown_run(each) for each in runs_of(schedule)[:MOST_RUNS]]
