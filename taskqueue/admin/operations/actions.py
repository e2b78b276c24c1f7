"""Actions of the list of tasks: for what is ticked, or for all that the search finds.

Each only asks; `OperationStart` begins it once it is confirmed.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from taskqueue.access.authority import may
from taskqueue.access.permissions import OPERATE, PURGE, STOP
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.operations.choosing import Choice, ticked
from taskqueue.admin.operations.starting import OperationStart
from taskqueue.admin.operations.verbs import VERBS
from taskqueue.models import Operation


class TaskBulk(ReadOnlyAdmin):
    """Nobody sees an action, or has it done by a request of their own, who may not use it."""

    actions: Any = (
        "retry_many", "run_now_many", "reschedule_many", "update_many", "cancel_many", "stop_many",
        "duplicate_many", "delete_many",
    )  # fmt: skip

    def has_operate_permission(self, request: HttpRequest) -> bool:
        """Whether they may retry, cancel, reschedule and change."""
        return bool(request.user.has_perm(OPERATE))

    def has_duplicate_permission(self, request: HttpRequest) -> bool:
        """Whether they may make tasks like those that there are."""
        return may(request.user, "duplicate")

    def has_stop_permission(self, request: HttpRequest) -> bool:
        """Whether they may stop what runs."""
        return bool(request.user.has_perm(STOP))

    def has_purge_permission(self, request: HttpRequest) -> bool:
        """Whether they may delete."""
        return bool(request.user.has_perm(PURGE))

    @admin.action(permissions=["operate"], description=VERBS["retry"].label)
    def retry_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "retry")

    @admin.action(permissions=["operate"], description=VERBS["run_now"].label)
    def run_now_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "run_now")

    @admin.action(permissions=["operate"], description=VERBS["reschedule"].label)
    def reschedule_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "reschedule")

    @admin.action(permissions=["operate"], description=VERBS["update"].label)
    def update_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "update")

    @admin.action(permissions=["operate"], description=VERBS["cancel"].label)
    def cancel_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "cancel")

    @admin.action(permissions=["stop"], description=VERBS["stop"].label)
    def stop_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "stop")

    @admin.action(permissions=["duplicate"], description=VERBS["duplicate"].label)
    def duplicate_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "duplicate")

    @admin.action(permissions=["purge"], description=VERBS["delete"].label)
    def delete_many(self, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse:
        return self._ask(request, "delete")

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Django answers a post of an action that is not offered as if nothing had been asked."""
        asked = request.POST.getlist("action") if request.method == "POST" else []
        offered = self.get_actions(request) if asked else {}
        if any(name and name not in offered for name in asked):
            raise PermissionDenied
        return super().changelist_view(request, extra_context)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Of what was ticked, what is no id is left out: the ORM would refuse it."""
        given = request.POST.copy()
        ids = ticked(request, ACTION_CHECKBOX_NAME)
        given.setlist(ACTION_CHECKBOX_NAME, list(map(str, ids)))
        request.POST = given
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def search_of(self, request: HttpRequest) -> str:
        """The search whose tasks the list shows."""
        return request.GET.get("q", "").strip()

    def _ask(self, request: HttpRequest, verb_name: str) -> HttpResponse:
        """The rows themselves are not read: who chose all may mean millions."""
        if request.POST.get("select_across") == "1":
            choice = Choice(query=self.search_of(request), is_all=True)
        else:
            choice = Choice(ids=ticked(request, ACTION_CHECKBOX_NAME))
        operations = self.admin_site.get_model_admin(Operation)
        assert isinstance(operations, OperationStart)
        verb = VERBS[verb_name]
        return operations.ask(request, verb, choice, verb.form())
