"""The forms of a task: other arguments, another time, other terms."""

from __future__ import annotations

from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.forms import FORMS
from taskqueue.core.uuid7 import uuid7
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.exceptions import TaskDoesNotExist, TaskQueueError, TransitionRefused
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import visible_arguments


class TaskEditing(TaskActs):
    """A form, one verb, a message."""

    edit_template = "admin/taskqueue/task/edit_form.html"

    def edit_view(self, request: HttpRequest, object_id: UUID, what: str) -> HttpResponse:
        """Show the form, or do its verb; the form tells what is wrong with it."""
        if what not in FORMS:
            raise Http404
        verb = TASK_VERBS[what]
        if not (self.has_view_permission(request) and verb.is_for(request.user)):
            raise PermissionDenied
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        task = Task.objects.using(database_alias()).filter(pk=object_id).first()
        if task is None:
            return self.missing(request)
        if not verb.fits(task):
            return self.refuse(request, task, _("What you wanted cannot be done in that state."))
        data = request.POST if request.method == "POST" else None
        form = FORMS[what](data, verb=verb, task=task, user=request.user)
        if form.is_valid():
            reason = form.cleaned_data["reason"]
            try:
                shown = self.do(request, task, verb, reason, **form.arguments())
            except (TaskDoesNotExist, TransitionRefused) as error:
                return self.refuse(request, task, str(error))
            except TaskQueueError as error:
                form.add_error(None, str(error))
            else:
                return self.links.redirect("task_change", shown)
        shows_arguments = "args" in form.fields
        call = visible_arguments(task.name, task.args, task.kwargs, request.user)
        return report(
            self, request, self.edit_template, str(verb.label),
            task=task, form=form, redacted=REDACTED,
            is_hidden=shows_arguments and call is None,
            is_partly=shows_arguments and call and REDACTED in [*call.args, *call.kwargs.values()],
            once=uuid7() if ENQUEUE in verb.permissions else None,
        )  # fmt: skip
