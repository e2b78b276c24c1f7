"""Tasks: a page with the attempts and the log lines of one, behind the list."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.safestring import SafeString

from taskqueue.admin.display import (
    EMPTY,
    as_json,
    link_to_list,
    link_to_row,
    moments,
    preformatted,
)
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.history import history
from taskqueue.admin.tasks.lists import TaskList
from taskqueue.models import Schedule, Task
from taskqueue.redaction import ShownArguments, redacted
from taskqueue.states import TaskStatus

VIEW_ARGUMENTS = "taskqueue.view_arguments"


class TaskAdmin(TaskList, TaskActs):
    """Arguments are shown without what their definition calls sensitive."""

    change_form_template = "admin/taskqueue/task/change_form.html"

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        hidden = redacted(obj.name, obj.args, obj.kwargs) is None
        arguments = "arguments"
        if hidden:
            may_view = request.user.has_perm(VIEW_ARGUMENTS)
            arguments = "unredacted_arguments" if may_view else "hidden_arguments"
        return (
            (None, {"fields": (*ABOUT, *_scheduled(obj), arguments, "result")}),
            ("Error", {"fields": ("error_class", "error")}),
            ("Times", {"fields": TIMES}),
            ("Attempts", {"fields": COUNTS}),
            *([("Workers", {"fields": WORKERS})] if obj.claimed_apart else []),
            ("Options", {"fields": OPTIONS, "classes": ("collapse",)}),
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        return super().change_view(
            request, object_id, form_url, {**history(request, object_id), **(extra_context or {})}
        )

    @admin.display(description="queue")
    def queue(self, task: Task) -> SafeString:
        return link_to_list(Task, task.queue_name, queue_name=task.queue_name)

    @admin.display(description="retry of")
    def origin(self, task: Task) -> SafeString:
        origin = task.retry_of_id
        return EMPTY if origin is None else link_to_row(Task, origin, origin)

    @admin.display(description="schedule")
    def of_schedule(self, task: Task) -> SafeString:
        name = task.options.get("schedule") or task.schedule_id
        return link_to_row(Schedule, task.schedule_id, name)

    @admin.display(description="worker names")
    def named(self, task: Task) -> SafeString:
        return EMPTY if task.worker_names is None else as_json(task.worker_names)

    @admin.display(description="arguments")
    def arguments(self, task: Task) -> SafeString:
        shown = redacted(task.name, task.args, task.kwargs)
        return EMPTY if shown is None else _as_call(shown)

    @admin.display(description="arguments")
    def unredacted_arguments(self, task: Task) -> SafeString:
        return _as_call(ShownArguments(task.args, task.kwargs))

    @admin.display(description="arguments")
    def hidden_arguments(self, task: Task) -> str:
        return (
            "Hidden: no definition of this name is known here, so nothing says which arguments "
            f"are sensitive. The permission {VIEW_ARGUMENTS} shows them."
        )

    @admin.display(description="return value")
    def result(self, task: Task) -> SafeString:
        return as_json(task.return_value) if task.status == TaskStatus.SUCCEEDED else EMPTY

    @admin.display(description="message")
    def error(self, task: Task) -> SafeString:
        return preformatted(task.error_message)

    @admin.display(description="retries and limits")
    def snapshot(self, task: Task) -> SafeString:
        return as_json(task.options)

    @admin.display(description="metadata")
    def shown_metadata(self, task: Task) -> SafeString:
        return as_json(task.metadata)


ABOUT = ("id", "name", "status", "queue", "priority", "origin")
WORKERS = ("workers", "named", "broadcast", "open_slots", "running_leases", "successes")
TIMES = moments(
    "enqueued_at", "run_after", "ready_at", "started_at", "finished_at", "deadline_at",
    "expires_at", "prune_after",
)  # fmt: skip
COUNTS = ("attempt", "failures", "max_attempts", "crashes", "max_crashes", "crash_delay")
OPTIONS = (
    "unique_key", "unique_for", "holds_unique_key", *moments("unique_until"), "lease_duration",
    "retention", "snapshot", "shown_metadata",
)  # fmt: skip


def _scheduled(task: Task) -> tuple[Any, ...]:
    """What only a task of a schedule has."""
    return () if task.schedule_id is None else ("of_schedule", *moments("nominal_at"))


def _as_call(shown: ShownArguments) -> SafeString:
    return as_json({"args": shown.args, "kwargs": shown.kwargs})
