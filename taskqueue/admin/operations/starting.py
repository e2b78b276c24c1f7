"""The page that asks before something is done to many tasks, and the start of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue import control
from taskqueue.access.permissions import STOP, VIEW_TASKS
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.operations.choosing import Choice, uuids
from taskqueue.admin.operations.forms import StartForm
from taskqueue.admin.reasons import noted
from taskqueue.admin.reports import LOOKING, report
from taskqueue.control import TaskFilter
from taskqueue.core.states import TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.operations.walking import estimate
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching.search import NEEDED_TO_SEE, without
from taskqueue.monitoring.searching.search_tokens import SearchError


class OperationStart(ReadOnlyAdmin):
    """`start/?verb=retry&q=status:failed`: nothing begins before it is confirmed by POST."""

    start_template = "admin/taskqueue/operation/start.html"

    def start_view(self, request: HttpRequest) -> HttpResponse:
        """The question, and with the answer yes the start."""
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        given = request.POST if request.method == "POST" else request.GET
        verb = BULK_VERBS.get(given.get("verb", ""))
        if not request.user.has_perm(VIEW_TASKS) or (verb and not verb.is_for(request.user)):
            raise PermissionDenied
        if verb is None:
            raise Http404(_("There is nothing of that name to do."))
        choice = Choice.of(given)
        form = StartForm(verb, request.POST if "confirmed" in request.POST else None)
        answer = self._start(request, verb, choice, form) if form.is_valid() else None
        return answer or self.ask(request, verb, choice, form)

    def ask(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> HttpResponse:
        """The page that asks; it changes nothing."""
        shown: dict[str, Any] = {}
        try:
            which = _chosen(choice, verb, request.user)
            found = estimate(verb.name, which)
            shown = {
                "found": found,
                "doable": Count(found.doable, found.is_capped),
                "left_out": found.fitting - found.doable,
                "has_more": found.is_capped or found.doable > len(found.sample),
                "held_by_lost": control.count_held_by_lost(which, verb.name),
            }
        except SearchError as error:
            shown = {"problem": str(error)}
        return report(
            self,
            request,
            self.start_template,
            str(verb.title),
            verb=verb,
            choice=choice,
            form=form,
            operation_id=uuid7(),
            leaves_out_running=verb.leaves_out_running(request.user),
            has_worker=any(worker.is_alive for worker in read_workers()),
            **shown,
        )

    def _start(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> HttpResponse | None:
        """Start it, or find what an earlier submit started; None: the form says why not."""
        arguments = dict(form.cleaned_data)
        try:
            operation = control.start_operation(
                verb.name,
                _chosen(choice, verb, request.user),
                query=choice.query,
                by=request.user,
                reason=arguments.pop("reason"),
                arguments=arguments,
                operation_id=next(iter(uuids(request.POST.getlist("operation"))), None),
            )
        except ValueError as error:  # InvalidTask and SearchError are such.
            form.add_error(None, str(error))
            return None
        if operation.is_new:
            told = f"{verb.label}: {without(NEEDED_TO_SEE, choice.words)}"
            self.log_addition(request, operation, noted(told, operation.reason))
            told = _("It is asked for; a worker does it in the background.")
            self.message_user(request, told, messages.SUCCESS)
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
