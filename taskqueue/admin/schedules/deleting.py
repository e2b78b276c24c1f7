"""Deleting schedules after a confirmation: one by its button, or several that are ticked."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from taskqueue.admin.acts import ActsAdmin
from taskqueue.admin.confirming import Question, confirm
from taskqueue.admin.denied import Denied
from taskqueue.engine.schedules.schedule_verbs import SCHEDULE_VERBS
from taskqueue.models import Schedule

DELETE = SCHEDULE_VERBS["delete"]


def is_deletable(schedule: Schedule) -> bool:
    """Return whether no code declares it."""
    return schedule.source != "code" or schedule.removed_at is not None


class ScheduleDeleting(ActsAdmin):
    """Deletes schedules that no code declares."""

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for confirmation, and delete. Its occurrences are not read for this."""
        if not DELETE.is_for(request.user):
            raise Denied(*DELETE.permissions)
        schedule: Any = self.get_object(request, object_id)
        if schedule is None:
            return self.missing(request)
        if request.method != "POST":
            return self.ask_before_deleting(request, [schedule])
        if self.act(request, DELETE, schedule):
            return self.links.redirect("schedule_changelist")
        return self.links.redirect("schedule_change", schedule.pk)

    def ask_before_deleting(self, request: HttpRequest, chosen: list[Schedule]) -> HttpResponse:
        """Show the page that asks for confirmation. It changes nothing."""
        deletable = [schedule for schedule in chosen if is_deletable(schedule)]
        told = _(
            "These schedules are deleted with all their occurrences. The tasks and workflows that "
            "they created are kept."
        )
        hidden: list[tuple[str, object]] = [("post", "yes")]
        if "action" in request.POST:
            hidden.append(("action", "delete_chosen"))
        question = Question(
            title=_("Delete schedules"),
            about=[told, *map(self._line, chosen)],
            url=request.get_full_path(),
            hidden=[*hidden, *((ACTION_CHECKBOX_NAME, str(row.pk)) for row in deletable)],
            button=str(DELETE.label) if deletable else "",
            back=self.links.url("schedule_changelist"),
        )
        return confirm(self, request, question)

    def missing(self, request: HttpRequest) -> HttpResponse:
        """Redirect to the list, with a message."""
        self.message_user(request, _("There is no such schedule any more."), messages.ERROR)
        return self.links.redirect("schedule_changelist")

    def _line(self, schedule: Schedule) -> SafeString:
        if is_deletable(schedule):
            return self.links.to_row(Schedule, schedule.pk, schedule.name)
        kept = _(
            "The schedule “%(name)s” is kept: it is declared in code, next to %(task)s, and can "
            "only be removed there."
        )
        return format_html("{}", kept % {"name": schedule.name, "task": schedule.task_name})
