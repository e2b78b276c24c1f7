"""The page that asks before something is done to many tasks, and the start of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue import control
from taskqueue.access.permissions import STOP, VIEW_TASKS
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.links import Links
from taskqueue.admin.operations.choosing import Choice, hidden_fields, uuids
from taskqueue.admin.operations.forms import StartForm, form_for
from taskqueue.admin.reasons import LONGEST_REASON
from taskqueue.admin.reports import report
from taskqueue.control import TaskFilter
from taskqueue.core.states import TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.declarations.payload import storable
from taskqueue.display import badge, breakable, moment
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.operations import Estimate, estimate, start_or_find
from taskqueue.models import Operation, Task
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching import NEEDED_TO_SEE, SearchError, without

LONGEST_NOTE = LONGEST_REASON + 200


class OperationStart(ReadOnlyAdmin):
    """`start/?verb=retry&q=status:failed`: nothing begins before it is confirmed by POST."""

    start_template = "admin/taskqueue/operation/start.html"

    def start_view(self, request: HttpRequest) -> HttpResponse:
        """The question, and with the answer yes the start."""
        if request.method not in ("GET", "HEAD", "POST"):
            return HttpResponseNotAllowed(["GET", "HEAD", "POST"])
        given = request.POST if request.method == "POST" else request.GET
        verb = BULK_VERBS.get(given.get("verb", ""))
        if not request.user.has_perm(VIEW_TASKS):
            raise PermissionDenied
        if verb is None:
            raise Http404(_("There is nothing of that name to do."))
        if not verb.is_for(request.user):
            raise PermissionDenied
        choice = Choice.of(given)
        if request.method == "POST" and "confirmed" in request.POST:
            form = form_for(verb)(request.POST)
            if form.is_valid():
                begun = self._start(request, verb, choice, form)
                if begun is not None:
                    return self._after(request, *begun)
            return self.ask(request, verb, choice, form)
        return self.ask(request, verb, choice, form_for(verb)())

    def ask(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> HttpResponse:
        """The page that asks; it changes nothing."""
        found: Estimate | None = None
        problem, held_by_lost = "", 0
        try:
            which = _chosen(choice, verb, request.user)
            found = estimate(verb.name, which)
            held_by_lost = control.count_held_by_lost(which, verb.name)
        except SearchError as error:
            problem = str(error)
        return report(
            self,
            request,
            self.start_template,
            str(verb.title),
            verb=verb,
            choice=choice,
            form=form,
            hidden=hidden_fields(verb.name, choice, uuid7()),
            problem=problem,
            list_url=self.links.list_url(Task, **({"q": choice.query} if choice.query else {})),
            held_by_lost=held_by_lost,
            leaves_out_running=verb.leaves_out_running(request.user),
            has_worker=any(each.is_alive for each in read_workers()),
            **_shown(verb, found, self.links),
        )

    def _start(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> tuple[Operation, bool] | None:
        """The operation, and whether it is new; None where it was refused: the form says why."""
        try:
            operation, is_new = start_or_find(
                verb.name,
                _chosen(choice, verb, request.user),
                query=choice.query,
                by=request.user,
                reason=form.cleaned_data["reason"],
                arguments=form.arguments(),
                operation_id=next(iter(uuids(request.POST.getlist("operation"))), None),
            )
        except ValueError as error:  # InvalidTask and SearchError are such.
            form.add_error(None, str(error))
            return None
        if is_new:
            because = f" ({operation.reason})" if operation.reason else ""
            said = f"{verb.label}: {without(NEEDED_TO_SEE, choice.words)}{because}"
            self.log_addition(request, operation, storable(said, limit=LONGEST_NOTE))
        return operation, is_new

    def _after(self, request: HttpRequest, operation: Operation, is_new: bool) -> HttpResponse:
        if is_new:
            said = _("It is asked for; a worker does it in the background.")
            self.message_user(request, said, messages.SUCCESS)
        else:
            self.message_user(request, _("It was begun already."), messages.INFO)
        if self.has_view_permission(request):
            return self.links.redirect("operation_change", operation.pk)
        return self.links.redirect("task_changelist")


def _chosen(choice: Choice, verb: TaskVerb, user: Any) -> TaskFilter:
    """Return the filter for the tasks that the user may change. Raises `SearchError`.

    Who ticks a running task means it: its retry ends the attempt of a lost worker.
    """
    which = choice.which(user)
    if which.ids is not None and verb.also_of_one and user.has_perm(STOP):
        which = replace(which, statuses=sorted(TaskStatus))
    return verb.permitted(which, user)


def _shown(verb: TaskVerb, found: Estimate | None, links: Links) -> dict[str, Any]:
    if found is None:
        return {}
    doable = Count(found.doable, found.is_capped)
    return {
        "doable": doable,
        "is_empty": not found.doable and not found.is_capped,
        "left_out": found.fitting - found.doable,
        "confirm": _confirm(verb, doable),
        "sample": [_row(task, links) for task in found.sample],
        "has_more": found.is_capped or found.doable > len(found.sample),
    }


def _confirm(verb: TaskVerb, count: Count) -> str:
    """The words of the button."""
    if count.is_capped and not count.value:
        return str(verb.label)
    words = ngettext("%(verb)s: %(count)s task", "%(verb)s: %(count)s tasks", count.value)
    return words % {"verb": verb.label, "count": count}


def _row(task: Task, links: Links) -> dict[str, Any]:
    return {
        "link": links.to_row(Task, task.pk, breakable(task.name)),
        "status": badge(task.status),
        "queue": task.queue_name,
        "enqueued_at": moment(task.enqueued_at),
        "error": breakable(task.error_class),
    }
