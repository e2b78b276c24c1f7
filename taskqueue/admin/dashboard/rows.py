"""Rows of the dashboard's tables, with the buttons that the user may press."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import Func, IntegerField, Subquery
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.text import Truncator
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue.access.permissions import CONTROL_QUEUES, STOP
from taskqueue.admin.dashboard.buttons import queue_buttons, stop_button, worker_buttons
from taskqueue.admin.links import Links
from taskqueue.admin.queues.pages import queue_line
from taskqueue.admin.schedules.rule_words import rule_words
from taskqueue.admin.workers.rows import line_of
from taskqueue.display import DAY, badge, breakable, rounded_age, short_moment
from taskqueue.engine.connections import database_alias
from taskqueue.engine.schedules.reading import OVERDUE
from taskqueue.models import Schedule, Task, Worker
from taskqueue.models.clock import DatabaseClock
from taskqueue.monitoring.read_models.failure_group import FailureGroup
from taskqueue.monitoring.read_models.queue import ShownQueue
from taskqueue.monitoring.read_models.running_task import RunningTask
from taskqueue.monitoring.read_models.worker import LOST, ShownWorker

LONGEST_MESSAGE = 160


def queue_rows(
    request: HttpRequest, links: Links, queues: Sequence[ShownQueue]
) -> list[dict[str, Any]]:
    """Return the queues, with pause and resume for users who may control them."""
    may_control = request.user.has_perm(CONTROL_QUEUES)
    return [
        {
            **queue_line(queue, links),
            "oldest": "" if queue.oldest_seconds is None else rounded_age(queue.oldest_seconds),
            "paused_at": short_moment(queue.paused_at),
            "paused_until": short_moment(queue.paused_until),
            "buttons": queue_buttons(queue, links) if may_control else [],
        }
        for queue in queues
    ]


def worker_rows(
    request: HttpRequest, links: Links, workers: Sequence[ShownWorker]
) -> list[dict[str, Any]]:
    """Return the running workers, and those lost within a day."""
    may_stop = request.user.has_perm(STOP)
    return [
        {
            **line_of(worker, links),
            "buttons": worker_buttons(worker, links) if may_stop else [],
        }
        for worker in workers
        if worker.is_alive or (worker.state == LOST and worker.seen_seconds < DAY)
    ]


def running_rows(
    request: HttpRequest,
    links: Links,
    running: Sequence[RunningTask],
    workers: Sequence[ShownWorker],
) -> list[dict[str, Any]]:
    """Return the running tasks, with a stop button for users who may stop."""
    ids = {worker.name: worker.id for worker in workers}
    may_stop = request.user.has_perm(STOP)
    may_view_workers = request.user.has_perm("taskqueue.view_worker")
    return [
        {
            "task": links.to_row(Task, task.task_id, breakable(task.name)),
            "queue": task.queue_name,
            "attempt": task.attempt,
            "worker": (
                links.to_row(Worker, ids[task.worker_name], task.worker_name)
                if may_view_workers and task.worker_name in ids
                else task.worker_name
            ),
            "since": short_moment(task.started_at),
            "age": rounded_age(task.running_seconds),
            "percent": "" if task.progress is None else f"{task.progress:.0f}",
            "message": Truncator(task.progress_message).chars(LONGEST_MESSAGE),
            "is_stopping": task.is_stopping,
            "is_wedged": task.is_wedged,
            "buttons": [stop_button(task, links)] if may_stop and not task.is_stopping else [],
        }
        for task in running
    ]


def failure_rows(groups: Sequence[FailureGroup], links: Links) -> list[dict[str, Any]]:
    """Return the groups of failed tasks, each with its newest task."""
    return [
        {
            "error": breakable(group.error_class or _("no error class")),
            "name": breakable(group.name),
            "count": group.count,
            "url": links.list_url(Task, q=group.q),
            "last_seen": short_moment(group.last_seen),
            "example": links.to_row(Task, group.example_id, _line(group.example_message)),
        }
        for group in groups
    ]


def _line(message: str) -> str:
    return Truncator(" ".join(message.split())).chars(LONGEST_MESSAGE) or _("no message")


MOST = 6


def schedules_shown(links: Links) -> dict[str, Any]:
    """Return the next scheduled runs, and how many schedules are paused."""
    rows = Schedule.objects.using(database_alias())
    paused = rows.filter(paused_at__isnull=False)
    counted = paused.annotate(number=Func("id", function="COUNT", output_field=IntegerField()))
    found: Any = list(
        rows.filter(next_at__isnull=False, is_enabled=True, removed_at=None, paused_at=None)
        .annotate(now=DatabaseClock(), paused=Subquery(counted.order_by().values("number")))
        .only("name", "rule", "next_at")
        .order_by("next_at", "id")[:MOST]
    )
    return {
        "schedules": [
            {
                "name": links.to_row(Schedule, schedule.pk, schedule.name),
                "rule": rule_words(schedule),
                "next_at": short_moment(schedule.next_at),
                "badge": badge("overdue") if schedule.next_at < schedule.now - OVERDUE else "",
            }
            for schedule in found
        ],
        "schedules_url": links.list_url(Schedule),
        "paused": _paused_words(found[0].paused if found else paused.count()),
        "paused_url": links.list_url(Schedule, state="paused"),
    }


def _paused_words(count: int) -> str:
    words = ngettext("%(count)s schedule is paused", "%(count)s schedules are paused", count)
    return words % {"count": number_format(count, force_grouping=True)} if count else ""
