"""The details of a task: one line for each fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.links import Links, kept_tasks
from taskqueue.admin.tasks.arguments import folded_json
from taskqueue.display import badge, moment, short_duration
from taskqueue.models import Audit, Queue, Schedule, Task
from taskqueue.models.task import Route
from taskqueue.monitoring.read_models.base import fields_of
from taskqueue.monitoring.read_models.task import TaskDetails

Fact = tuple[str, object]


def facts(
    task: Task, user: Any, links: Links, retries: Sequence[Task], audits: Sequence[Audit]
) -> list[Fact]:
    """Return the most important facts."""
    return [
        (_("Name"), links.to_list(Task, task.name, q=f"name:{task.name}")),
        (_("Queue"), _queue(task, user, links)),
        (_("Priority"), task.priority),
        (_("Attempts"), _attempts(task)),
        *_times(task),
        *_origin(task, user, links),
        *_kin(task, links, retries, audits),
        *_workers(task),
    ]


def details(task: TaskDetails) -> list[Fact]:
    """The fields that have a label, without those that are empty or say nothing new."""
    found = [
        (str(field.metadata["label"]), _value(task, name))
        for name, field in fields_of(TaskDetails).items()
        if field.metadata.get("label") and not _is_left_out(task, name)
    ]
    return [(label, value) for label, value in found if value != ""]


def _is_left_out(task: TaskDetails, name: str) -> bool:
    """Whether the field says nothing: of a unique key that it lacks, or of a scope of its own."""
    if name == "unique_scope":
        return task.unique_scope == task.name
    return name in ("unique_for", "holds_unique_key") and not task.unique_key


def _value(task: TaskDetails, name: str) -> object:
    value = getattr(task, name)
    if name == "crashes":
        return _("%(count)s of %(most)s") % {"count": value, "most": task.max_crashes}
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, timedelta):
        return short_duration(value.total_seconds())
    if isinstance(value, dict | list):
        return folded_json(value) if value else ""
    return "" if value is None else value


def _queue(task: Task, user: Any, links: Links) -> SafeString:
    tasks = links.to_list(Task, task.queue_name, q=f"queue:{task.queue_name}")
    if not user.has_perm("taskqueue.view_queue"):
        return tasks
    queue = links.to_list(Queue, _("queue page"), q=task.queue_name)
    return format_html("{} ({})", tasks, queue)


def _attempts(task: Task) -> str:
    if task.failures or task.max_attempts > 1:
        return _("%(attempt)s (%(failures)s of %(most)s failures)") % {
            "attempt": task.attempt, "failures": task.failures, "most": task.max_attempts,
        }  # fmt: skip
    return str(task.attempt)


def _times(task: Task) -> Iterator[Fact]:
    yield _("Enqueued"), moment(task.enqueued_at)
    yield _("Due"), moment(task.run_after)
    if task.started_at is not None:
        yield _("Started"), moment(task.started_at)
    if task.finished_at is not None:
        yield _("Finished"), moment(task.finished_at)


def _origin(task: Task, user: Any, links: Links) -> Iterator[Fact]:
    """Return the schedule and the nominal time of a scheduled task."""
    if task.schedule_id is None:
        return
    name = task.options.get("schedule") or task.schedule_id
    sees = user.has_perm("taskqueue.view_schedule")
    yield _("Schedule"), links.to_row(Schedule, task.schedule_id, name) if sees else name
    if task.nominal_at is not None:
        yield _("Nominal time"), moment(task.nominal_at)


def _kin(
    task: Task, links: Links, retries: Sequence[Task], audits: Sequence[Audit]
) -> Iterator[Fact]:
    """Tasks that it was made from, and that were made from it."""
    copies = dict(_copies(audits))
    others = [*copies, *([task.retry_of_id] if task.retry_of_id else [])]
    kept = kept_tasks(others)
    if task.retry_of_id is not None:
        yield _("Retry of"), links.to_task(task.retry_of_id, is_kept=task.retry_of_id in kept)
    for word, label in (("of", _("Duplicate of")), ("as", _("Duplicates"))):
        ids = [task_id for task_id, how in copies.items() if how == word]
        if ids:
            yield label, _lines(links.to_task(each, is_kept=each in kept) for each in ids)
    if retries:
        retried = (
            format_html("{} {}", links.to_row(Task, each.pk, each.pk), badge(each.status))
            for each in retries
        )
        yield _("Retried as"), _lines(retried)


def _copies(audits: Iterable[Audit]) -> Iterator[tuple[UUID, str]]:
    """The tasks that the audit names as duplicates, and which way."""
    for line in audits:
        if line.verb == "duplicate":
            how, _space, task_id = line.detail.partition(" ")
            try:
                yield UUID(task_id), how
            except ValueError:
                continue


def _lines(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "<div>{}</div>", ((part,) for part in parts))


def _workers(task: Task) -> Iterator[Fact]:
    """Return which workers may run the task, if not all may."""
    if task.route == Route.ORDINARY:
        return
    if task.broadcast:
        yield _("Broadcast"), _("to every worker of the queue")
    if task.worker_names is not None:
        yield _("Worker names"), ", ".join(map(str, task.worker_names))
    if task.workers != 1 or task.broadcast:
        yield _("Workers"), _("%(done)s of %(wanted)s done, %(running)s running, %(open)s open") % {
            "done": task.successes, "wanted": task.workers, "running": task.running_leases,
            "open": task.open_slots,
        }  # fmt: skip
