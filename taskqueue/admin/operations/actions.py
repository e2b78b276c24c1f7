"""Actions of the list of tasks: for what is ticked, or for all that the search finds.

Each only asks; `OperationStart` begins it once it is confirmed.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.operations.choosing import Choice, uuids
from taskqueue.admin.operations.forms import StartForm
from taskqueue.admin.operations.starting import OperationStart
from taskqueue.engine.control.task_verbs import BULK_VERBS
from taskqueue.engine.control.verb import TaskVerb
from taskqueue.models import Operation


def _action(verb: TaskVerb) -> Any:
    def ask(page: TaskBulk, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return page.ask(request, verb)

    ask.__name__ = f"{verb.name}_many"
    return admin.action(description=verb.label)(ask)


VERBS = {f"{verb.name}_many": verb for verb in BULK_VERBS.values()}
"""By the names of the actions."""


class TaskBulk(ReadOnlyAdmin):
    """Nobody sees an action, or has it done by a request of their own, who may not use it."""

    actions: Any = tuple(map(_action, VERBS.values()))

    def get_actions(self, request: HttpRequest, action_location: Any = None) -> dict[str, Any]:
        """Return the actions that the user may use; Django 6.1 asks for those of a location."""
        location = () if action_location is None else (action_location,)
        return {
            name: action
            for name, action in super().get_actions(request, *location).items()
            if name not in VERBS or VERBS[name].is_for(request.user)
        }

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Django answers a post of an action that is not offered as if nothing had been asked."""
        asked = request.POST.getlist("action") if request.method == "POST" else []
        offered = self.get_actions(request) if asked else {}
        if any(name and name not in offered for name in asked):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Leave out ticked values that are not ids: the ORM would refuse them."""
        request.POST = request.POST.copy()
        request.POST.setlist(ACTION_CHECKBOX_NAME, list(map(str, _ticked(request))))
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def ask(self, request: HttpRequest, verb: TaskVerb) -> HttpResponse:
        """The rows themselves are not read: who chose all may mean millions."""
        if request.POST.get("select_across") == "1":
            choice = Choice(query=request.GET.get("q", "").strip(), is_all=True)
        else:
            choice = Choice(ids=_ticked(request))
        operations = self.admin_site.get_model_admin(Operation)
        assert isinstance(operations, OperationStart)
        return operations.ask(request, verb, choice, StartForm(verb))


def _ticked(request: HttpRequest) -> tuple[UUID, ...]:
    return uuids(request.POST.getlist(ACTION_CHECKBOX_NAME))
