"""The pages that create and edit a schedule: a form, one verb, a message."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from taskqueue import schedules
from taskqueue.admin.reports import report
from taskqueue.admin.schedules.acts import ScheduleActs
from taskqueue.admin.schedules.form import OWN_FIELDS, POLICIES, ScheduleForm
from taskqueue.declarations.redaction import REDACTED
from taskqueue.exceptions import ChangedMeanwhile, TaskQueueError, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.base import visible_arguments

RULE = ("kind", "tz", "expression", "interval", "first", "last", "every", "days", "at", "start",
        "end")  # fmt: skip
CALL = ("args", "kwargs", *OWN_FIELDS, "options")


class ScheduleEditing(ScheduleActs):
    """Rows are changed by verbs alone: no form saves a model."""

    edit_template = "admin/taskqueue/schedule/edit_form.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_edit_permission(request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_edit_permission(request):
            raise PermissionDenied
        return self._edit(request, None)

    def edit_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        if not self.has_edit_permission(request):
            raise PermissionDenied
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            self.message_user(request, _("This schedule no longer exists."), messages.ERROR)
            return self.links.redirect("schedule_changelist")
        if schedule.source == ScheduleSource.CODE:
            refusal = _(
                "%(name)s is declared in code, next to %(task)s, and can only be edited there."
            )
            named = {"name": schedule.name, "task": schedule.task_name}
            self.message_user(request, refusal % named, messages.ERROR)
            return self.links.redirect("schedule_change", schedule.pk)
        return self._edit(request, schedule)

    def _edit(self, request: HttpRequest, schedule: Schedule | None) -> HttpResponse:
        posted = request.POST if request.method == "POST" else None
        form = ScheduleForm(posted, schedule=schedule, viewer=request.user)
        if posted is not None and form.is_valid():
            saved = self._save(request, form)
            if saved is not None:
                return self.links.redirect("schedule_change", saved.pk)
        return self._form_page(request, form)

    def _save(self, request: HttpRequest, form: ScheduleForm) -> Schedule | None:
        """Return the saved row; None if it was refused, with the error in the form."""
        given: dict[str, Any] = {
            **form.changes(), "by": request.user, "reason": form.cleaned_data["reason"],
        }  # fmt: skip
        try:
            if form.schedule is None:
                saved = schedules.create(form.cleaned_data["name"], **given)
            else:
                saved = schedules.edit(form.schedule.name, seen=form.is_current, **given)
        except UnknownTask as error:
            form.add_error("task", str(error))
        except ChangedMeanwhile:
            form.add_error(
                None,
                _(
                    "Somebody else has changed this schedule since you opened the form, so nothing "
                    "was saved. Save again to replace their changes with what you entered."
                ),
            )
        except TaskQueueError as error:
            is_rule = str(error).startswith("The rule ")
            form.add_error("kind" if is_rule else None, str(error))
        else:
            done = _("Created") if form.schedule is None else _("Edited")
            self.note(request, saved, f"{done}.")
            self.message_user(request, f"{done}: {saved.name}", messages.SUCCESS)
            return saved
        return None

    def _form_page(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Show the form in the admin's layout, although it is not a model's form."""
        schedule: Schedule | None = form.schedule
        parts: Any = (
            (None, {"fields": ("task", "enabled") if schedule else ("name", "task", "enabled")}),
            (_("Rule"), {"fields": RULE}),
            (
                _("Arguments and options"),
                {"fields": CALL, "description": _hint(request, schedule)},
            ),
            (_("Policies"), {"fields": POLICIES}),
            (_("Audit"), {"fields": ("reason",)}),
        )
        return report(
            self,
            request,
            self.edit_template,
            _("Edit %(name)s") % {"name": schedule.name} if schedule else _("Create schedule"),
            adminform=AdminForm(form, parts, {}, model_admin=self),
            errors=AdminErrorList(form, []),
            media=self.media + form.media,
            original=schedule,
            add=schedule is None,
            has_view_permission=True,
            zones=sorted(available_timezones()),
        )


def _hint(request: HttpRequest, schedule: Schedule | None) -> str:
    """Explain hidden and redacted arguments, as markup that holds nothing of the schedule."""
    if schedule is None:
        return ""
    call = (schedule.task_name, schedule.args, schedule.kwargs)
    shown = visible_arguments(*call, request.user)
    if shown is None:
        return _(
            "The arguments are hidden because this process does not know the task's definition. "
            "Enter them again for the task that you choose."
        )
    if REDACTED not in [*shown.args, *shown.kwargs.values()]:
        return ""
    kept = _("Values shown as %(mark)s are kept unless you enter new ones.")
    return kept % {"mark": REDACTED}
