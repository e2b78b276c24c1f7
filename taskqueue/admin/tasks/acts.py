"""The buttons and forms of a task: each runs one verb, and refusals become messages."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.acts import noted, reason_of
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.confirming import confirm
from taskqueue.admin.denied import Denied
from taskqueue.admin.links import back
from taskqueue.admin.once import once_of
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.tasks.declared import fixed_options
from taskqueue.admin.tasks.forms import FORMS
from taskqueue.admin.tasks.questions import about_deleting, about_lost
from taskqueue.core.refusals import Refusal, why
from taskqueue.core.states import FINISHED, PENDING, TaskStatus
from taskqueue.declarations.definition import registry
from taskqueue.declarations.redaction import REDACTED
from taskqueue.display import status_word
from taskqueue.engine.connections import database_alias, project_connection
from taskqueue.engine.control.limits import is_halted
from taskqueue.engine.control.task_verbs import TASK_VERBS
from taskqueue.engine.control.verb import TaskVerb, Verb
from taskqueue.engine.lost import is_held_by_lost
from taskqueue.engine.verbs import VERBS
from taskqueue.exceptions import EnqueuedBefore, TaskDoesNotExist, TaskQueueError, TransitionRefused
from taskqueue.models import Task
from taskqueue.monitoring.read_models.base import visible_arguments

CANCEL, DELETE, STOP = (TASK_VERBS[name] for name in ("cancel", "delete", "stop"))


class TaskActs(ReadOnlyAdmin):
    """Verbs on one task, for users who have the permission of the verb's kind."""

    edit_template = "admin/taskqueue/task/edit_form.html"

    def act_view(self, request: HttpRequest, object_id: UUID) -> HttpResponse:
        """Handle a button of a page or a list."""
        name = request.POST.get("verb", "")
        may_any = any(verb.is_for(request.user) for verb in BUTTONS.values())
        if not (may_any and self.has_view_permission(request)):
            asked = BUTTONS.get(name)
            raise Denied(*self.needed_to_view, *(asked.permissions if asked else ()))
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        verb: Verb | None = RELEASE if name == RELEASE.name else BUTTONS.get(name)
        if verb is DELETE:
            return self.delete_view(request, str(object_id))
        task = self.task_of(object_id)
        if task is None:
            return self.missing(request)
        if verb is None:
            self.message_user(request, _("There is nothing of that name to do."), messages.ERROR)
            return back(request, self.links.url("task_change", task.pk))
        verb = _permitted(verb, task, request)
        # The dashboard's dialog asks too, but does not know that the worker is lost.
        if request.POST.get("confirmed") != "lost" and _ends_lost(verb, task, request.user):
            return confirm(self, request, about_lost(self.links, verb, task))
        # A button labelled cancel must not stop a task that has started meanwhile.
        only_pending = {"statuses": PENDING} if verb is CANCEL else {}
        try:
            shown = self.do(request, task, verb, reason_of(request), **only_pending)
        except TaskQueueError as error:
            return self.refuse(request, task, _refused(error))
        return back(request, self.links.url("task_change", shown))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Ask for confirmation, and delete. Only this task is read for it."""
        if not (self.has_view_permission(request) and DELETE.is_for(request.user)):
            raise Denied(*self.needed_to_view, *DELETE.permissions)
        task = self.task_of(object_id)
        if task is None:
            return self.missing(request)
        if task.status not in FINISHED:
            told = _("Only a finished task is deleted: cancel it first.")
            if is_held_by_lost(project_connection(), task.pk):
                told = _("Only a finished task is deleted. Its worker is lost: stop it first.")
            return self.refuse(request, task, told)
        if request.method != "POST" or "post" not in request.POST:
            return confirm(self, request, about_deleting(self.links, task))
        try:
            self.do(request, task, DELETE, reason_of(request))
        except TaskQueueError as error:
            return self.refuse(request, task, refused(error))
        return back(request, self.links.url("task_changelist"))

    def edit_view(self, request: HttpRequest, object_id: UUID, what: str) -> HttpResponse:
        """Show the form, or run its verb; the form shows its errors."""
        if what not in FORMS:
            raise Http404
        verb = TASK_VERBS[what]
        if not (self.has_view_permission(request) and verb.is_for(request.user)):
            raise Denied(*self.needed_to_view, *verb.permissions)
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        task = Task.objects.using(database_alias()).filter(pk=object_id).first()
        if task is None:
            return self.missing(request)
        if not verb.fits(task):
            return self.refuse(request, task, _("What you wanted cannot be done in that state."))
        data = request.POST if request.method == "POST" else None
        form = FORMS[what](data, verb=verb, task=task, user=request.user)
        is_asked = form.is_valid() and not form.is_confirmed()
        if form.is_valid() and not is_asked:
            reason = form.cleaned_data["reason"]
            try:
                shown = self.do(request, task, verb, reason, **form.arguments())
            except (TaskDoesNotExist, TransitionRefused) as error:
                return self.refuse(request, task, _refused(error))
            except TaskQueueError as error:
                form.add_error(None, refused(error))
            else:
                return self.links.redirect("task_change", shown)
        shows_arguments = "args" in form.fields
        call = visible_arguments(task.name, task.args, task.kwargs, request.user)
        return report(
            self, request, self.edit_template, str(verb.label),
            task=task, form=form, redacted=REDACTED,
            differences=form.differences if is_asked else (),
            is_hidden=shows_arguments and call is None,
            is_partly=shows_arguments and call and REDACTED in [*call.args, *call.kwargs.values()],
            fixed=fixed_options(registry.find(task.name)) if what == "update" else (),
            makes_task=ENQUEUE in verb.permissions,
        )  # fmt: skip

    def do(
        self, request: HttpRequest, task: Task, verb: Verb, reason: str, **arguments: Any
    ) -> UUID:
        """Run the verb and show a message. Return the id of the task to show.

        Raises `TaskQueueError`.
        """
        if ENQUEUE in verb.permissions:
            arguments["new_id"] = once_of(request)
        try:
            result = verb.act_by(request.user, task.pk, reason=reason, **arguments)
        except EnqueuedBefore as found:
            return self.lead_to_first(request, found, task.name)
        self.tell_done(request, task.pk, task.name, verb.told(str(task.pk)), reason)
        return result if isinstance(result, UUID) else task.pk

    def tell_done(self, request: HttpRequest, key: UUID, name: str, done: str, reason: str) -> None:
        """Show a message, and record the action in the admin's own history too."""
        self.log_change(request, Task(pk=key, name=name), noted(done, reason))
        self.message_user(request, done, messages.SUCCESS)

    def lead_to_first(self, request: HttpRequest, found: EnqueuedBefore, name: str) -> UUID:
        """Show that it was already done, and return the id of the task that was created then.

        Raises `TaskQueueError`, in the user's language, if that task has another name.
        """
        if found.name != name:
            told = _("This form was for another task and has been refreshed. Try again.")
            raise TaskQueueError(told)
        told = _("This was already done. Here is the task.")
        self.message_user(request, told, messages.WARNING)
        return found.task_id

    def refuse(self, request: HttpRequest, task: Task, why: str) -> HttpResponse:
        """Show that nothing was done, why, and the task's current state."""
        now = self.task_of(task.pk)
        if now is None:
            return self.missing(request)
        told = _("Nothing was done. The task is %(status)s now. %(why)s")
        told %= {"status": status_word(now.status), "why": why}
        self.message_user(request, told, messages.ERROR)
        return back(request, self.links.url("task_change", task.pk))

    def missing(self, request: HttpRequest) -> HttpResponse:
        """Redirect to where the user was, or to the list, with a message."""
        self.message_user(request, _("There is no such task any more."), messages.ERROR)
        return back(request, self.links.url("task_changelist"))

    def task_of(self, object_id: object) -> Task | None:
        """Return the row without columns that may be large; None if there is none."""
        try:
            task_id = UUID(str(object_id))
        except ValueError:
            return None
        rows = Task.objects.using(database_alias()).filter(pk=task_id)
        return rows.defer("args", "kwargs", "return_value", "error_message").first()


def _refused(error: TaskQueueError) -> str:
    """Return why a verb was refused, without the status, which the page shows."""
    reason = why(error)
    allowed = reason.values.get("allowed") if isinstance(reason, Refusal) else None
    return str(allowed or refused(error))


def _ends_lost(verb: Verb, task: Task, user: Any) -> bool:
    """Return whether it would end an attempt of a lost worker, whose body may still be running."""
    if not isinstance(verb, TaskVerb):
        return False
    is_running = task.status == TaskStatus.RUNNING
    may_end = verb.ends_attempt and task.status in verb.statuses_of(user)
    return is_running and may_end and is_held_by_lost(project_connection(), task.pk)


def _permitted(verb: Verb, task: Task, request: HttpRequest) -> Verb:
    """Return the verb that applies to this task. Raises `PermissionDenied`.

    Cancelling a running task means stopping it.
    """
    if verb is CANCEL and task.status == TaskStatus.RUNNING:
        verb = STOP
    if not verb.is_for(request.user):
        raise Denied(*verb.permissions)
    return verb


# Verbs that need only a reason; the others have a form.
BUTTONS = {verb.name: verb for verb in TASK_VERBS.values() if verb.name not in FORMS}
# Only if a sequence is halted.
RELEASE = VERBS["task", "release"]


def is_offered(verb: TaskVerb, task: Task) -> bool:
    """Return whether the task shows the button; running tasks are stopped, not cancelled."""
    is_running = task.status == TaskStatus.RUNNING
    return verb.fits(task) and not (is_running and verb.name == "cancel")


def buttons(task: Task, user: Any) -> list[Verb]:
    """Return the verbs that this user may use on the task; deletion has its own page."""
    verbs = [verb for verb in BUTTONS.values() if verb.is_for_task(user, task)]
    released = [RELEASE] if RELEASE.is_for(user) and is_halted(task) else []
    return [*released, *(verb for verb in verbs if is_offered(verb, task))]


def edits(task: Task, user: Any) -> list[TaskVerb]:
    """Return the verbs whose forms this user may open for the task."""
    return [verb for verb in map(TASK_VERBS.__getitem__, FORMS) if verb.is_for_task(user, task)]
