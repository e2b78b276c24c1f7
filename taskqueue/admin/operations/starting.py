"""Verbs on many tasks: the list's actions, the choice of tasks, the confirmation, the start."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from taskqueue import control
from taskqueue.access.permissions import STOP, VIEW_TASKS
from taskqueue.access.users import has_all
from taskqueue.admin.acts import noted
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.confirming import Question, confirm
from taskqueue.admin.denied import Denied
from taskqueue.admin.operations.choosing import Choice, ticked, uuids
from taskqueue.admin.operations.form import StartForm
from taskqueue.admin.operations.undoing import UNDO_SECONDS
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING
from taskqueue.control import TaskFilter
from taskqueue.core.states import TaskStatus
from taskqueue.core.uuid7 import uuid7
from taskqueue.display import labelled
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.engine.operations.walking import estimate
from taskqueue.models import Operation
from taskqueue.monitoring.counts import Count
from taskqueue.monitoring.read_models.worker import read_workers
from taskqueue.monitoring.searching.search import NEEDED_TO_SEE, without
from taskqueue.monitoring.searching.search_tokens import SearchError


class OperationStart(ReadOnlyAdmin):
    """`start/?verb=retry&q=status:failed`: nothing begins before it is confirmed by POST."""

    start_template = "admin/taskqueue/operation/start.html"

    def start_view(self, request: HttpRequest) -> HttpResponse:
        """Show the confirmation, or start the operation once it is confirmed."""
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        given = request.POST if request.method == "POST" else request.GET
        verb = BULK_VERBS.get(given.get("verb", ""))
        needed = (VIEW_TASKS, *(verb.permissions if verb else ()))
        if not has_all(request.user, needed):
            raise Denied(*needed)
        if verb is None:
            raise Http404(_("There is nothing of that name to do."))
        choice = Choice.of(given)
        form = StartForm(verb, request.POST if "confirmed" in request.POST else None)
        answer = self._start(request, verb, choice, form) if form.is_valid() else None
        return answer or self.ask(request, verb, choice, form)

    def ask(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> HttpResponse:
        """Show the page that asks for confirmation. It changes nothing."""
        shown: dict[str, Any] = {}
        try:
            which = _chosen(choice, verb, request.user)
            found = estimate(verb.name, which)
            shown = {
                "found": found,
                "doable": Count(found.doable, found.is_capped),
                "left_out": found.fitting - found.doable,
                "has_errors": any(task.error_class for task in found.sample),
                "has_more": found.is_capped or found.doable > len(found.sample),
                "held_by_lost": control.count_held_by_lost(which, verb.name),
            }
        except SearchError as error:
            shown = {"problem": str(error)}
        return confirm(
            self,
            request,
            self._question(verb, choice, shown),
            template=self.start_template,
            form=form,
            verb=verb,
            choice=choice,
            leaves_out_running=verb.leaves_out_running(request.user),
            has_worker=any(worker.is_alive for worker in read_workers()),
            **shown,
        )

    def _question(self, verb: TaskVerb, choice: Choice, shown: dict[str, Any]) -> Question:
        """Return the question; its button says how many tasks are affected, if that is known."""
        count, button = shown.get("doable"), ""
        if count is not None and (count.value or count.is_capped):
            button = str(verb.label)
            if count.value:
                told = ngettext(
                    "%(verb)s: %(count)s task", "%(verb)s: %(count)s tasks", count.value
                )
                button = told % {"verb": verb.label, "count": count}
        told = ngettext(
            "It starts %(count)s second after you confirm it. You can undo it until then.",
            "It starts %(count)s seconds after you confirm it. You can undo it until then.",
            UNDO_SECONDS,
        )
        return Question(
            title=str(verb.title),
            about=[told % {"count": UNDO_SECONDS}] if button and not verb.is_urgent else [],
            url=self.links.url("operation_start"),
            hidden=[
                ("verb", verb.name),
                ("operation", uuid7()),
                *choice.fields,
                ("confirmed", "yes"),
            ],
            button=button,
            is_grave=verb.is_grave,
            back=self.links.url("task_changelist") + choice.address,
        )

    def _start(
        self, request: HttpRequest, verb: TaskVerb, choice: Choice, form: StartForm
    ) -> HttpResponse | None:
        """Start it, or find what an earlier submit started.

        Return None if the form shows an error.
        """
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
                delay=0 if verb.is_urgent else UNDO_SECONDS,
            )
        except ValueError as error:  # InvalidTask and SearchError are ValueErrors.
            form.add_error(None, refused(error))
            return None
        if operation.is_new:
            told = labelled(verb.label, without(NEEDED_TO_SEE, choice.words))
            self.log_addition(request, operation, noted(told, operation.reason))
            told = _("It is asked for; a worker does it in the background.")
            if not verb.is_urgent:
                told = _("It starts shortly; until then you can undo it.")
            self.message_user(request, told, messages.SUCCESS)
        else:
            self.message_user(request, _("This was requested already."), messages.INFO)
        if self.has_view_permission(request):
            return self.links.redirect("operation_change", operation.pk)
        return self.links.redirect("task_changelist")


def _chosen(choice: Choice, verb: TaskVerb, user: Any) -> TaskFilter:
    """Return the filter for the tasks that the user may change. Raises `SearchError`.

    A user who ticks a running task means it: its retry ends the attempt of a lost worker.
    """
    which = choice.which(user)
    if which.ids is not None and verb.also_of_one and user.has_perm(STOP):
        which = replace(which, statuses=sorted(TaskStatus))
    return verb.permitted(which, user)


def _action(verb: TaskVerb) -> Any:
    def ask(page: TaskBulk, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return page.ask(request, verb)

    ask.__name__ = f"{verb.name}_many"
    return admin.action(description=verb.label)(ask)


# By the names of the actions.
VERBS = {f"{verb.name}_many": verb for verb in BULK_VERBS.values()}


class TaskBulk(ReadOnlyAdmin):
    """Users can neither see nor request an action that they may not use."""

    actions: Any = tuple(map(_action, VERBS.values()))

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> dict[str, Any]:
        """Return the actions that the user may use. Django 6.1 asks for those of a location."""
        location = () if action_location is None else (action_location,)
        return {
            name: action
            for name, action in super().get_actions(request, *location).items()
            if name not in VERBS or VERBS[name].is_for(request.user)
        }

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Answer a post of an action that is not offered, which Django would ignore."""
        asked = request.POST.getlist("action") if request.method == "POST" else []
        offered = self.get_actions(request) if asked else {}
        if any(name and name not in offered for name in asked):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Leave out ticked values that are not ids, because the ORM would refuse them."""
        request.POST = request.POST.copy()
        request.POST.setlist(ACTION_CHECKBOX_NAME, list(map(str, ticked(request))))
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def ask(self, request: HttpRequest, verb: TaskVerb) -> HttpResponse:
        """Ask about the choice without reading the rows: "all" may mean millions."""
        if request.POST.get("select_across") == "1":
            choice = Choice(query=request.GET.get("q", "").strip(), is_all=True)
        else:
            choice = Choice(ids=ticked(request))
        operations = self.admin_site.get_model_admin(Operation)
        assert isinstance(operations, OperationStart)
        return operations.ask(request, verb, choice, StartForm(verb))
