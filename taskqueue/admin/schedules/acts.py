"""The buttons and actions of schedules, from the table of verbs; refusals are messages."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.base import ReadOnlyAdmin
from taskqueue.admin.filters import row_id
from taskqueue.admin.reasons import ReasonForm, reason_of
from taskqueue.admin.reports import report
from taskqueue.declarations.payload import storable
from taskqueue.declarations.scheduled import LONGEST_NAME
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.verbs import SCHEDULE_VERBS
from taskqueue.exceptions import TaskQueueError
from taskqueue.models import Schedule

logger = logging.getLogger("taskqueue.admin")

LONGEST_NOTE = 1100
VERBS = {name: SCHEDULE_VERBS[name] for name in ("run_now", "pause", "resume", "delete")}
"""By its name in addresses."""


def _action(verb: Verb) -> Any:
    def act(
        page: ScheduleActs, request: HttpRequest, queryset: QuerySet[Any]
    ) -> HttpResponse | None:
        if verb.is_grave and not request.POST.get("post"):
            return page.ask_before_deleting(request, list(queryset))
        for schedule in queryset:
            page.act(request, verb, schedule)
        return None

    act.__name__ = "delete_chosen" if verb.name == "delete" else verb.name
    permission = "edit" if ENQUEUE in verb.permissions else "pause"
    return admin.action(permissions=[permission], description=verb.label)(act)


def is_deletable(schedule: Schedule) -> bool:
    """Whether no code declares it."""
    return schedule.source != "code" or schedule.removed_at is not None


class ScheduleActs(ReadOnlyAdmin):
    """Buttons of the page and actions of the list, for those who may edit schedules."""

    actions: Any = tuple(map(_action, VERBS.values()))
    action_form = ReasonForm
    delete_template = "admin/taskqueue/schedule/delete.html"

    def has_pause_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether they may pause and delete: what makes no task."""
        return SCHEDULE_VERBS["pause"].is_for(request.user)

    def has_edit_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Whether they may also create, edit, resume and run: what makes tasks."""
        return SCHEDULE_VERBS["edit"].is_for(request.user)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Leave out chosen values that are no keys: a database may refuse them."""
        given = request.POST.copy()
        keys = given.getlist(ACTION_CHECKBOX_NAME)
        given.setlist(ACTION_CHECKBOX_NAME, [key for key in keys if row_id(key) is not None])
        request.POST = given
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """A button of the page."""
        verb = request.POST.get("verb", "")
        if not SCHEDULE_VERBS[verb if verb in VERBS else "pause"].is_for(request.user):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            self.message_user(request, _("There is no such schedule any more."), messages.ERROR)
            return self.links.redirect("schedule_changelist")
        if verb in VERBS and verb != "delete":
            self.act(request, VERBS[verb], schedule)
        else:
            refusal = _("There is nothing called “%(verb)s” to do.") % {"verb": verb}
            self.message_user(request, refusal, messages.ERROR)
        return self.links.redirect("schedule_change", schedule.pk)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The page that asks, and the deletion. Its occurrences are not read for it."""
        if not self.has_pause_permission(request):
            raise PermissionDenied
        schedule: Any = self.get_object(request, object_id)
        changelist = self.links.redirect("schedule_changelist")
        if schedule is None:
            self.message_user(request, _("There is no such schedule any more."), messages.ERROR)
            return changelist
        if request.method != "POST":
            return self.ask_before_deleting(request, [schedule])
        if self.act(request, VERBS["delete"], schedule):
            return changelist
        return self.links.redirect("schedule_change", schedule.pk)

    def act(self, request: HttpRequest, verb: Verb, schedule: Schedule) -> bool:
        """Whether it was done; if not, a message says why."""
        reason = reason_of(request)
        key = schedule.pk
        try:
            verb.act_by(request.user, schedule.name, reason=reason)
        except TaskQueueError as error:
            self.message_user(request, str(error), messages.ERROR)
            return False
        except Exception as error:  # Its rule may raise anything: the others are still acted on.
            logger.exception("Schedule not acted on verb=%s schedule=%s", verb.name, schedule.name)
            refusal = _("%(schedule)s: nothing was done for %(error)s. See the log.")
            named = {"schedule": schedule.name, "error": type(error).__name__}
            self.message_user(request, refusal % named, messages.ERROR)
            return False
        told = verb.told(schedule.name)
        self.note(request, key, schedule.name, f"{told} ({reason})" if reason else told)
        self.message_user(request, told, messages.SUCCESS)
        return True

    def note(self, request: HttpRequest, key: int, name: str, what: str) -> None:
        """Keep it in the admin's own history too."""
        shown = storable(name, limit=LONGEST_NAME)
        self.log_change(request, Schedule(pk=key, name=shown), storable(what, limit=LONGEST_NOTE))

    def ask_before_deleting(self, request: HttpRequest, chosen: list[Schedule]) -> HttpResponse:
        """Show the page that asks; it changes nothing."""
        return report(
            self,
            request,
            self.delete_template,
            _("Delete schedules"),
            chosen=[(schedule, is_deletable(schedule)) for schedule in chosen],
            is_any_deletable=any(map(is_deletable, chosen)),
            selected_name=ACTION_CHECKBOX_NAME,
            changelist_url=self.links.url("schedule_changelist"),
            reason=reason_of(request),
            is_action="action" in request.POST,
        )
