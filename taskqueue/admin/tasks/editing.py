"""The forms of a task: other arguments, another time, other terms."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.admin.reports import report
from taskqueue.admin.tasks.acts import TaskActs
from taskqueue.admin.tasks.forms import FORMS, TaskForm
from taskqueue.admin.tasks.once import lead_to_first, new_id_of, once_field
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.exceptions import EnqueuedBefore, TaskDoesNotExist, TaskQueueError, TransitionRefused
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import visible_arguments


class TaskEditing(TaskActs):
    """A form, one verb, a message."""

    edit_template = "admin/taskqueue/task/edit_form.html"

    def edit_view(self, request: HttpRequest, object_id: UUID, what: str) -> HttpResponse:
        """Show the form, or save it."""
        if what not in FORMS:
            raise Http404
        verb = TASK_VERBS[what]
        if not (self.has_view_permission(request) and verb.is_for(request.user)):
            raise PermissionDenied
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        task = Task.objects.using(database_alias()).filter(pk=object_id).first()
        if task is None:
            return self.missing(request)
        if not verb.fits(task):
            self.refuse(request, task, _("What you wanted cannot be done in that state."))
            return self.links.redirect("task_change", task.pk)
        form = FORMS[what](request.POST if request.method == "POST" else None,
                           task=task, user=request.user)  # fmt: skip
        if request.method == "POST" and form.is_valid():
            answer = self._save(request, task, verb, form)
            if answer is not None:
                return answer
        return self._form_page(request, task, verb, form)

    def _save(
        self, request: HttpRequest, task: Task, verb: TaskVerb, form: TaskForm
    ) -> HttpResponse | None:
        """Save and redirect; return None if the form shows an error."""
        reason = form.cleaned_data["reason"]
        try:
            more = {"new_id": new_id_of(request)} if form.makes_a_task else {}
            try:
                shown = form.act(by=request.user, reason=reason, **more)
            except EnqueuedBefore as found:
                first = lead_to_first(self, request, found, task.name)
                return self.links.redirect("task_change", first)
        except TaskDoesNotExist:
            return self.missing(request)
        except TransitionRefused as error:
            self.refuse(request, task, str(error))
            return self.links.redirect("task_change", task.pk)
        except TaskQueueError as error:
            form.add_error(None, str(error))
            return None
        self.note(request, task, str(verb.done), reason)
        self.message_user(request, str(verb.done), messages.SUCCESS)
        return self.links.redirect("task_change", shown)

    def _form_page(
        self, request: HttpRequest, task: Task, verb: TaskVerb, form: TaskForm
    ) -> HttpResponse:
        shown = (
            visible_arguments(task.name, task.args, task.kwargs, request.user)
            if verb.name == "retry_with"
            else None
        )
        is_hidden = verb.name == "retry_with" and shown is None
        is_partly = shown is not None and REDACTED in [*shown.args, *shown.kwargs.values()]
        return report(
            self, request, self.edit_template, str(verb.label),
            task=task, form=form, is_hidden=is_hidden, is_partly=is_partly, redacted=REDACTED,
            **(once_field() if form.makes_a_task else {}),
        )  # fmt: skip
