"""The attempts of a task, its log lines (which a client can follow), and its `why`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from taskqueue.access.permissions import (
    VIEW_AUDITS,
    VIEW_LEASES,
    VIEW_LIMITS,
    VIEW_LOGS,
    VIEW_QUEUES,
    VIEW_TASKS,
    VIEW_WORKERS,
    VIEW_WORKFLOWS,
)
from taskqueue.access.users import has_all
from taskqueue.api.base import ApiView, endpoint
from taskqueue.api.describing import serializer_for
from taskqueue.api.fields import Strict
from taskqueue.api.tasks.waiting import LONGEST_WAIT, waited
from taskqueue.api.views import Digits
from taskqueue.core.states import FINISHED
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.locking import id_of
from taskqueue.models import Lease
from taskqueue.monitoring.following import LEVELS, LinePage, line_page
from taskqueue.monitoring.read_models.attempt import ShownAttempt, shown_attempts
from taskqueue.monitoring.read_models.base import about, json_form
from taskqueue.monitoring.read_models.task import STATUSES
from taskqueue.monitoring.timeline import TimelineEvent, timeline_of
from taskqueue.monitoring.why import Reason, why
from taskqueue.results.reading import row_of

LARGEST_ATTEMPT = 2**31 - 1
AttemptJSON = serializer_for(ShownAttempt)


class AttemptPage(serializers.Serializer[Any]):
    """A page of attempts, the oldest first."""

    results = AttemptJSON(many=True)
    next = serializers.URLField(allow_null=True, help_text="The page of later attempts.")


class WhichAttempts(Strict):
    """The parameters of a page."""

    after = Digits(
        default=0, max_value=LARGEST_ATTEMPT, help_text="Only attempts after this number."
    )
    limit = Digits(default=20, min_value=1, max_value=100)


class TaskAttempts(ApiView):
    """The attempts of a task."""

    needs = {"GET": (VIEW_TASKS, VIEW_LEASES)}
    tag = "tasks"
    has_etag = True

    @endpoint("listAttempts", answers={200: AttemptPage}, query=WhichAttempts, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Every attempt by every worker, oldest first, with its traceback."""
        after, limit = self.parameters["after"], self.parameters["limit"]
        known = id_of(task_id)
        name = row_of(known).name  # Raises 404.
        leases = Lease.objects.using(database_alias()).filter(task_id=known, attempt__gt=after)
        found = list(leases.defer("return_value").order_by("attempt")[: limit + 1])
        attempts, url = shown_attempts(found[:limit], name, request.user), None
        if len(found) > limit:
            last = str(attempts[-1].attempt)
            url = replace_query_param(request.build_absolute_uri(), "after", last)
        return self.shown({"results": attempts, "next": url})


class WhichLines(Strict):
    """The filter of lines."""

    after = Digits(default=0, help_text="Only lines after this id.")
    limit = Digits(default=200, min_value=1, max_value=1000)
    level = serializers.ChoiceField(
        choices=list(LEVELS), required=False, help_text="Only lines of this level or above."
    )
    attempt = Digits(max_value=LARGEST_ATTEMPT)
    wait = Digits(
        default=0,
        max_value=LONGEST_WAIT,
        help_text="Seconds to wait for a line or for the task's end.",
    )


class TaskLogs(ApiView):
    """The log lines of a task."""

    needs = {"GET": (VIEW_TASKS, VIEW_LOGS)}
    tag = "tasks"
    has_etag = True

    @endpoint("listLogLines", answers={200: LinePage}, query=WhichLines, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Lines in order. To follow them, repeat the request with `after` and `wait`."""
        query, known = dict(self.parameters), id_of(task_id)
        seconds = query.pop("wait")
        page = waited(
            self,
            lambda: line_page(known, **query),
            lambda page: bool(page.results) or page.status in FINISHED,
            seconds,
        )
        return self.shown(page)


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """The timeline of a task."""

    id: UUID
    events: list[TimelineEvent] = about("Oldest first.")


class TaskTimeline(ApiView):
    """The timeline of a task."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "tasks"
    has_etag = True

    @endpoint("getTimeline", answers={200: Timeline}, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """The events of the task, oldest first. While it is unfinished, its present state is last.

        That entry has the time at which the state began. Attempts, actions by hand and the step of
        a workflow require the permission to view them.
        """
        task = row_of(id_of(task_id))
        return self.shown(Timeline(id=task.id, events=timeline_of(task, request.user)))


class Redaction(NamedTuple):
    """The part of a reason that users without certain permissions see."""

    # The permissions that are all needed to see everything.
    needs: tuple[str, ...]
    # Replaces the sentence; empty: the remaining values have a sentence of their own.
    message: str = ""
    # Fields that are the task's own.
    is_kept: frozenset[str] = frozenset()


# Fields that are hidden, and the values in their place.
HIDDEN: dict[str, Any] = {"subject": "", "moment": None, "details": {}}
MOMENT, SUBJECT = frozenset({"moment"}), frozenset({"subject"})
# By code; all other reasons are the task's own.
REDACTIONS: dict[str, Redaction] = {
    "retry_due": Redaction((VIEW_LEASES,), is_kept=MOMENT),
    "all_paused": Redaction((VIEW_QUEUES,)),
    "definition_paused": Redaction((VIEW_QUEUES,), is_kept=SUBJECT),
    "queue_paused": Redaction((VIEW_QUEUES,), is_kept=SUBJECT),
    "workers_absent": Redaction(
        (VIEW_WORKERS,), "It waits for certain workers that are not running."
    ),
    "worker_trouble": Redaction((VIEW_WORKERS,), "A worker of its queue cannot work."),
    "slots_busy": Redaction(
        (VIEW_WORKERS,), "All slots of the workers of its queue are busy.", SUBJECT
    ),
    "too_few_workers": Redaction(
        (VIEW_WORKERS,), "It needs more workers of its queue than are running.", SUBJECT
    ),
    "worker_waits": Redaction(
        (VIEW_LEASES,), "A worker that has tried it lets other workers go first."
    ),
    **dict.fromkeys(
        ("queue_full", "limit_full", "own_full", "holder_ends"),
        Redaction((VIEW_LIMITS, VIEW_LEASES), "A limit of it is held by other tasks.", SUBJECT),
    ),
    "limit_zero": Redaction(
        (VIEW_LIMITS,), "One of its limits is set to 0, so all tasks of this limit wait.", SUBJECT
    ),
    "rate_used": Redaction((VIEW_LIMITS,), "A rate of it is used up.", SUBJECT | MOMENT),
    **dict.fromkeys(
        (
            "steps_wait",
            "member_runs",
            "member_parked",
            "child_runs",
            "step_limited",
            "workflow_stopping",
            "workflow_trouble",
        ),
        Redaction((VIEW_WORKFLOWS,), "It waits for other tasks of its workflow."),
    ),
    "running": Redaction((VIEW_LEASES,), "A worker is running it."),
    "claimed": Redaction((VIEW_LEASES,), "A worker has claimed it."),
    "lease_over": Redaction((VIEW_LEASES,), "The lease of its worker has expired."),
    "worker_lost": Redaction((VIEW_LEASES, VIEW_WORKERS), "Its worker sends no heartbeat."),
    "stop_requested": Redaction((VIEW_LEASES,), "It was asked to stop."),
    "wedged": Redaction(
        (VIEW_LEASES,), "It has produced no output for far longer than similar tasks."
    ),
    # An attempt or the audit says who did it.
    "cancelled": Redaction((VIEW_LEASES, VIEW_AUDITS), is_kept=MOMENT),
}


def visible_reason(reason: Reason, user: Any) -> dict[str, Any]:
    """Return the reason as this user may see it."""
    redaction = REDACTIONS.get(reason.code)
    if redaction is None or has_all(user, redaction.needs):
        return reason.as_dict()
    hidden = {name: value for name, value in HIDDEN.items() if name not in redaction.is_kept}
    return replace(reason, **hidden).as_dict(redaction.message)


@dataclass(frozen=True, kw_only=True)
class ReasonShown:
    """One reason."""

    code: str = about("For programs: it stays as it is.")
    message: str = about("A sentence for people.")
    subject: str = about("The queue, worker, type, person or error meant.")
    moment: datetime | None = about("Since when or until when, as the message says.")
    clears_at: datetime | None = about("When it clears by itself; null: nobody knows.")
    details: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reasons:
    """The reasons for the status of a task."""

    id: UUID
    status: str = about(choices=STATUSES)
    reasons: list[ReasonShown]


class TaskWhy(ApiView):
    """The reasons for the status of a task."""

    needs = {"GET": (VIEW_TASKS,)}
    tag = "tasks"

    @endpoint("explainTask", answers={200: Reasons}, problems=(404,))
    def get(self, request: Request, task_id: str) -> Response:
        """Explain why the task waits, which worker runs it and until when, or how it ended.

        Details of workers, attempts and pauses require the permission to view them. Without it, a
        reason has only its `code` and a `message` without names.
        """
        task = row_of(id_of(task_id))
        reasons = [ReasonShown(**visible_reason(each, request.user)) for each in why(task)]
        return Response(json_form(Reasons(id=task.id, status=task.status, reasons=reasons)))
