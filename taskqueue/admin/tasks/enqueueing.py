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
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.tasks.acts import TaskActs, new_id_of
from taskqueue.admin.tasks.enqueue_form import EnqueueForm
from taskqueue.core.uuid7 import uuid7
from taskqueue.declarations.definition import BaseDefinition, registry
from taskqueue.exceptions import DuplicateTask, EnqueuedBefore, TaskQueueError, UnknownTask
from taskqueue.results.audited_enqueue import enqueue_by_hand


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
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        name = request.GET.get("name", "").strip()
        if not name:
            return self._choice(request)
        try:
            definition = registry.get(name)
        except UnknownTask as error:
            return self._choice(request, str(error))
        is_sent = request.method == "POST"
        form = EnqueueForm(request.POST if is_sent else None, definition=definition)
        answer = self._enqueue(request, form) if form.is_valid() else None
        return answer or report(
            self, request, self.enqueue_template, _("Enqueue a task"),
            form=form, name=definition.name, doc=_doc(definition), once=uuid7(),
        )  # fmt: skip

    def _choice(self, request: HttpRequest, trouble: str = "") -> HttpResponse:
        found = [(each.name, _doc(each).partition("\n")[0]) for each in registry.all()]
        return report(
            self, request, self.choose_template, _("Enqueue a task"),
            definitions=found, trouble=trouble, name=request.GET.get("name", ""),
        )  # fmt: skip

    def _enqueue(self, request: HttpRequest, form: EnqueueForm) -> HttpResponse | None:
        """Enqueue and redirect; return None if the form shows an error."""
        data = form.cleaned_data
        who = {"by": request.user, "reason": data["reason"]}
        try:
            try:
                new_id = new_id_of(request)
                result = enqueue_by_hand(data["chosen"], *data["call"], **who, new_id=new_id)
            except EnqueuedBefore as found:
                first = self.lead_to_first(request, found, form.task_name)
                return self._after(request, first, form.task_name)
        except TaskQueueError as error:
            form.add_error("unique_key" if isinstance(error, DuplicateTask) else None, str(error))
            return None
        if result.created or result.updated:
            created, updated = _("Enqueued."), _("The task with this unique key was updated.")
            told = created if result.created else updated
            self.tell_done(request, result.id, form.task_name, told, data["reason"])
        else:
            told = _("Nothing was enqueued: this task already holds the unique key.")
            self.message_user(request, told, messages.WARNING)
        return self._after(request, result.id, form.task_name)

    def _after(self, request: HttpRequest, task_id: UUID, name: str) -> HttpResponse:
        if self.has_view_permission(request):
            return self.links.redirect("task_change", task_id)
        return HttpResponseRedirect(f"{self.links.url('task_add')}?name={name}")


def _doc(definition: BaseDefinition[Any, Any]) -> str:
    """Return the docstring of the task's function."""
    return inspect.cleandoc(definition.__doc__ or "")
