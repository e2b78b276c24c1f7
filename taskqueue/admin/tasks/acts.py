"""The buttons of a task: each one verb, refused ones told as messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.links import back
from taskqueue.admin.reasons import LONGEST_REASON, reason_of
from taskqueue.admin.reports import report
from taskqueue.admin.tasks.once import lead_to_first, new_id_of
from taskqueue.admin.tasks.verbs import BUTTONS
from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.declarations.payload import storable
from taskqueue.display import badge
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.lost import is_held_by_lost
from taskqueue.exceptions import EnqueuedBefore, TaskDoesNotExist, TaskQueueError
from taskqueue.models import Task

LONGEST_NOTE = LONGEST_REASON + 100
CANCEL, DELETE, STOP = (TASK_VERBS[name] for name in ("cancel", "delete", "stop"))


class TaskActs(ReadOnlyAdmin):
    """One address for all verbs, for those who have the permission of the verb's kind."""

    delete_template = "admin/taskqueue/task/act_delete.html"
    lost_template = "admin/taskqueue/task/act_lost.html"

    def act_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """A button of a page or a list."""
        may_any = any(verb.is_for(request.user) for verb in BUTTONS.values())
        if not (may_any and self.has_view_permission(request)):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb = BUTTONS.get(request.POST.get("verb", ""))
        if verb is DELETE:
            return self.delete_view(request, str(object_id))
        task = self.task_of(object_id)
        if task is None:
            return self.missing(request)
        here = self.links.url("task_change", task.pk)
        if verb is None:
            self.message_user(request, _("There is nothing of that name to do."), messages.ERROR)
            return back(request, here)
        verb = _permitted(verb, task, request)
        # The dialog of the dashboard confirms too, but does not know that the worker is lost.
        is_warned = request.POST.get("confirmed") == "lost"
        if not is_warned and _ends_lost(verb, task, request.user):
            return self._ask_first(request, task, self.lost_template, str(verb.label), verb=verb)
        made = self.act(request, task, verb)
        if isinstance(made, UUID):
            here = self.links.url("task_change", made)
        return back(request, here)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page that asks, and the deletion. Only that one task is read for it."""
        if not (self.has_view_permission(request) and DELETE.is_for(request.user)):
            raise PermissionDenied
        task = self.task_of(object_id)
        if task is None:
            return self.missing(request)
        here = self.links.url("task_change", task.pk)
        if task.status not in FINISHED:
            told = _("Only a finished task is deleted: cancel it first.")
            if is_held_by_lost(project_connection(), task.pk):
                told = _("Only a finished task is deleted. Its worker is lost: stop it first.")
            self.refuse(request, task, told)
            return HttpResponseRedirect(here)
        if request.method != "POST" or "post" not in request.POST:
            return self._ask_first(request, task, self.delete_template, _("Delete task"))
        self.act(request, task, DELETE)
        is_gone = self.task_of(task.pk) is None
        return (
            back(request, self.links.url("task_changelist"))
            if is_gone
            else HttpResponseRedirect(here)
        )

    def act(self, request: HttpRequest, task: Task, verb: TaskVerb) -> Any:
        """Do it, and tell that or why it was refused; what came of it."""
        reason = reason_of(request)
        try:
            more: dict[str, Any] = {}
            if ENQUEUE in verb.permissions:
                more["new_id"] = new_id_of(request)
            if verb is CANCEL:  # A button that says so does not stop what has started meanwhile.
                more["statuses"] = PENDING
            try:
                result = verb.act_by(request.user, task.pk, reason=reason, **more)
            except EnqueuedBefore as found:
                return lead_to_first(self, request, found, task.name)
        except TaskDoesNotExist:
            self.message_user(request, _("There is no such task any more."), messages.ERROR)
            return None
        except TaskQueueError as error:
            self.refuse(request, task, str(error))
            return None
        self.note(request, task, str(verb.done), reason)
        self.message_user(request, str(verb.done), messages.SUCCESS)
        return result

    def note(self, request: HttpRequest, task: Task, what: str, reason: str = "") -> None:
        """Keep it in the admin's own history too."""
        said = f"{what} ({reason})" if reason else what
        row = Task(pk=task.pk, name=task.name)
        self.log_change(request, row, storable(said, limit=LONGEST_NOTE))

    def refuse(self, request: HttpRequest, task: Task, why: str) -> None:
        """Tell that nothing was done, why, and what the task's state is now."""
        now = self.task_of(task.pk)
        if now is None:
            told = _("There is no such task any more.")
        else:
            told = _("Nothing was done. The task is %(status)s now. %(why)s") % {
                "status": now.status, "why": why,
            }  # fmt: skip
        self.message_user(request, told, messages.ERROR)

    def missing(self, request: HttpRequest) -> HttpResponse:
        """Back to the list, with a message."""
        self.message_user(request, _("There is no such task any more."), messages.ERROR)
        return self.links.redirect("task_changelist")

    def task_of(self, object_id: object) -> Task | None:
        """The row without what may be large; None where there is none."""
        try:
            task_id = UUID(str(object_id))
        except ValueError:
            return None
        rows = Task.objects.using(database_alias()).filter(pk=task_id)
        return rows.defer("args", "kwargs", "return_value", "error_message").first()

    def _ask_first(
        self, request: HttpRequest, task: Task, template: str, title: str, **more: Any
    ) -> HttpResponse:
        """The page that asks before something grave is done."""
        return report(
            self, request, template, title,
            task=task, badge=badge(task.status), reason=reason_of(request),
            next=request.POST.get("next", ""), **more,
        )  # fmt: skip


def _ends_lost(verb: TaskVerb, task: Task, user: Any) -> bool:
    """Whether it would end an attempt of a lost worker, whose body may still run."""
    if not (verb.ends_attempt and verb.is_for(user) and task.status in verb.statuses_of(user)):
        return False
    return task.status == TaskStatus.RUNNING and is_held_by_lost(project_connection(), task.pk)


def _permitted(verb: TaskVerb, task: Task, request: HttpRequest) -> TaskVerb:
    """The verb as it is meant for this task. Raises `PermissionDenied`.

    To cancel what runs is to stop it.
    """
    if verb is CANCEL and task.status == TaskStatus.RUNNING:
        verb = STOP
    if not verb.is_for(request.user):
        raise PermissionDenied
    return verb
