"""The buttons and actions of schedules."""

from __future__ import annotations

import logging
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.access.permissions import ENQUEUE
from taskqueue.admin.denied import Denied
from taskqueue.admin.filters import row_id
from taskqueue.admin.links import back
from taskqueue.admin.once import OnceForm, once_of
from taskqueue.admin.refusals import refused
from taskqueue.admin.schedules.deleting import DELETE, ScheduleDeleting
from taskqueue.engine.control.verb import Verb
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.exceptions import TaskQueueError

logger = logging.getLogger("taskqueue.admin")

BUTTONS = {name: SCHEDULE_VERBS[name] for name in ("run_now", "pause", "resume")}
RUN = BUTTONS["run_now"]


def _action(verb: Verb) -> Any:
    def act(page: ScheduleActs, request: HttpRequest, chosen: QuerySet[Any]) -> HttpResponse | None:
        if verb is DELETE and not request.POST.get("post"):
            return page.ask_before_deleting(request, list(chosen))
        for schedule in chosen:
            page.act(request, verb, schedule)
        return None

    act.__name__ = "delete_chosen" if verb is DELETE else verb.name
    permission = "edit" if ENQUEUE in verb.permissions else "pause"
    return admin.action(permissions=[permission], description=verb.label)(act)


class ScheduleActs(ScheduleDeleting):
    """Buttons of the page and actions of the list, for those who may edit schedules."""

    actions: Any = tuple(map(_action, (*BUTTONS.values(), DELETE)))
    action_form = OnceForm

    def has_pause_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may pause and delete, which creates no tasks."""
        return SCHEDULE_VERBS["pause"].is_for(request.user)

    def has_edit_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may also create, edit, resume and run, which creates tasks."""
        return SCHEDULE_VERBS["edit"].is_for(request.user)

    def check_may_edit(self, request: HttpRequest) -> None:
        """Raise `Denied` if the user may not."""
        if not self.has_edit_permission(request):
            raise Denied(*SCHEDULE_VERBS["edit"].permissions)

    def response_action(
        self, request: Any, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Leave out chosen values that are not keys, which a database may refuse."""
        posted = request.POST.copy()
        keys = posted.getlist(ACTION_CHECKBOX_NAME)
        posted.setlist(ACTION_CHECKBOX_NAME, [key for key in keys if row_id(key) is not None])
        request.POST = posted
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def act_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Handle a button of the page."""
        name = request.POST.get("verb", "")
        verb = BUTTONS.get(name)
        needed = verb or SCHEDULE_VERBS["pause"]
        if not needed.is_for(request.user):
            raise Denied(*needed.permissions)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            return self.missing(request)
        if verb is not None:
            self.act(request, verb, schedule)
        else:
            refusal = _("There is nothing called “%(verb)s” to do.") % {"verb": name}
            self.message_user(request, refusal, messages.ERROR)
        return back(request, self.links.url("schedule_change", schedule.pk))

    def act(self, request: HttpRequest, verb: Verb, row: Any, **arguments: Any) -> bool:
        """Run the verb. A stored rule may raise any error; other schedules are still handled."""
        try:
            if verb is RUN:
                arguments["request_id"] = once_of(request)
            return super().act(request, verb, row, **arguments)
        except TaskQueueError as error:
            self.message_user(request, refused(error), messages.ERROR)
            return False
        except Exception as error:
            logger.exception("Schedule not acted on verb=%s schedule=%s", verb.name, row.name)
            refusal = _("%(schedule)s: nothing was done for %(error)s. See the log.")
            named = {"schedule": row.name, "error": type(error).__name__}
            self.message_user(request, refusal % named, messages.ERROR)
            return False
