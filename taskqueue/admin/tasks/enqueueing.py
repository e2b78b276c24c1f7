"""The page that enqueues a task: choose a definition, then fill in its form."""

from __future__ import annotations

import inspect
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.reports import report
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.enqueue_form import EnqueueForm
from taskqueue.admin.tasks.once import lead_to_first, new_id_of, once_field
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.exceptions import EnqueuedBefore, TaskQueueError, UnknownTask
from taskqueue.models import Task


class TaskEnqueueing(TaskActs):
    """Enqueue a task of any definition, for users who may."""

    choose_template = "admin/taskqueue/task/enqueue_choose.html"
    enqueue_template = "admin/taskqueue/task/enqueue_form.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_perm(ENQUEUE))

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Show the form of the named definition, or the choice of one."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        name = request.GET.get("name", "").strip()
        if not name:
            return self._choice(request)
        try:
            definition = registry.get(name)
        except UnknownTask as error:
            return self._choice(request, str(error))
        is_sent = request.method == "POST"
        form = EnqueueForm(request.POST if is_sent else None, definition=definition)
        if is_sent and form.is_valid():
            answer = self._enqueue(request, form)
            if answer is not None:
                return answer
        return report(
            self, request, self.enqueue_template, _("Enqueue a task"),
            form=form, name=definition.name, doc=_doc(definition), **once_field(),
        )  # fmt: skip

    def _choice(self, request: HttpRequest, trouble: str = "") -> HttpResponse:
        found = [
            (definition.name, _doc(definition).partition("\n")[0]) for definition in registry.all()
        ]
        return report(
            self, request, self.choose_template, _("Enqueue a task"),
            definitions=found, trouble=trouble, name=request.GET.get("name", ""),
        )  # fmt: skip

    def _enqueue(self, request: HttpRequest, form: EnqueueForm) -> HttpResponse | None:
        """Enqueue and redirect; return None if the form shows an error."""
        reason = form.cleaned_data["reason"]
        try:
            try:
                result = form.enqueue(by=request.user, reason=reason, new_id=new_id_of(request))
            except EnqueuedBefore as found:
                first = lead_to_first(self, request, found, form.task_name)
                return self._after(request, first, form)
        except TaskQueueError as error:
            form.add_error(None, str(error))
            return None
        if result is None:
            return None
        if result.created or result.updated:
            told = (
                _("Enqueued.")
                if result.created
                else _("The task with this unique key was updated.")
            )
            self.note(request, Task(pk=result.id, name=form.task_name), told, reason)
            self.message_user(request, told, messages.SUCCESS)
        else:
            told = _("Nothing was enqueued: this task already holds the unique key.")
            self.message_user(request, told, messages.WARNING)
        return self._after(request, result.id, form)

    def _after(self, request: HttpRequest, task_id: UUID, form: EnqueueForm) -> HttpResponse:
        if self.has_view_permission(request):
            return self.links.redirect("task_change", task_id)
        return HttpResponseRedirect(f"{self.links.url('task_add')}?name={form.task_name}")


def _doc(definition: BaseDefinition[Any, Any]) -> str:
    """Return the docstring of the task's function."""
    return inspect.cleandoc(definition.__doc__ or "")
