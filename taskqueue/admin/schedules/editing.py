"""The pages that create and edit a schedule: a form, one verb, a message."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.contrib.admin.helpers import AdminErrorList, AdminForm
from django.core.exceptions import PermissionDenied
from django.db.transaction import atomic
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from taskqueue import schedules
from taskqueue.admin.schedules.acts import ScheduleActs
from taskqueue.admin.schedules.arguments import VIEW_ARGUMENTS, visible_arguments
from taskqueue.admin.schedules.form import ScheduleForm
from taskqueue.declarations.redaction import REDACTED
from taskqueue.engine.connections import database_alias
from taskqueue.exceptions import TaskQueueError, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource

RULE = ("kind", "tz", "expression", "interval", "first", "last", "step", "days", "at", "start",
        "end")  # fmt: skip
CALL = ("args", "kwargs", "queue_name", "priority", "options")
POLICIES = ("missed", "missed_window", "overlap", "pause_after_failures")


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
        form = ScheduleForm(
            request.POST if request.method == "POST" else None,
            schedule=schedule,
            sees_any=request.user.has_perm(VIEW_ARGUMENTS),
        )
        if request.method == "POST" and form.is_valid():
            saved = None if _is_stale(form) else self._save(request, form)
            if saved is not None:
                return self.links.redirect("schedule_change", saved.pk)
        return self._form_page(request, form)

    def _save(self, request: HttpRequest, form: ScheduleForm) -> Schedule | None:
        """Return the saved row; None if the verb refused, with the error in the form."""
        saved: Schedule | None
        who = {"by": request.user, "reason": form.cleaned_data["reason"]}
        try:
            if form.schedule is None:
                saved = schedules.create(form.cleaned_data["name"], **form.changes(), **who)
            else:
                saved = _edited(form, form.schedule, who)
        except UnknownTask as error:
            form.add_error("task", str(error))
            return None
        except TaskQueueError as error:
            is_rule = str(error).startswith("The rule ")
            form.add_error("kind" if is_rule else None, str(error))
            return None
        if saved is None:
            return None
        done = _("Created") if form.schedule is None else _("Edited")
        self.note(request, saved.pk, saved.name, f"{done}.")
        self.message_user(request, f"{done}: {saved.name}", messages.SUCCESS)
        return saved

    def _form_page(self, request: HttpRequest, form: Any) -> TemplateResponse:
        """Show the form in the admin's layout, although it is not a model's form."""
        schedule = form.schedule
        own = ("name",) if schedule is None else ()
        parts: Any = (
            (None, {"fields": (*own, "task", "enabled")}),
            (_("Rule"), {"fields": RULE}),
            (
                _("Arguments and options"),
                {"fields": CALL, "description": _hint(request, schedule)},
            ),
            (_("Policies"), {"fields": POLICIES}),
            (_("Audit"), {"fields": ("reason",)}),
        )
        shown = AdminForm(form, parts, {}, model_admin=self)
        context = {
            **self.admin_site.each_context(request),
            "title": _("Create schedule")
            if schedule is None
            else _("Edit %(name)s") % {"name": schedule.name},
            "adminform": shown,
            "errors": AdminErrorList(form, []),
            "inline_admin_formsets": [],
            "media": self.media + form.media,
            "opts": self.opts,
            "original": schedule,
            "add": schedule is None,
            "change": False,
            "is_popup": False,
            "save_on_top": False,
            "has_file_field": False,
            "has_view_permission": True,
            "form_url": "",
            "zones": sorted(available_timezones()),
        }
        return TemplateResponse(request, self.edit_template, context)


def _edited(form: ScheduleForm, schedule: Schedule, who: dict[str, Any]) -> Schedule | None:
    """Return the saved row; None if somebody else was faster, with the error in the form.

    Raises what the verb raises.
    """
    alias = database_alias()
    with atomic(using=alias):
        rows = Schedule.objects.using(alias).filter(pk=schedule.pk)
        # Locks the row for the verb, as a look at it would not on SQLite.
        same = rows.filter(changed_at=schedule.changed_at).update(changed_at=schedule.changed_at)
        if same or not rows.exists():  # Of one that is gone the verb tells so.
            return schedules.edit(schedule.name, **form.changes(), **who)
        _tell_stale(form, rows.get())
    return None


def _is_stale(form: ScheduleForm) -> bool:
    """Whether the schedule was changed since the form was shown; if so, the form says it."""
    seen = form.cleaned_data.get("seen")
    if form.schedule is None or not seen or seen == form.schedule.changed_at.isoformat():
        return False
    _tell_stale(form, form.schedule)
    return True


def _tell_stale(form: ScheduleForm, row: Schedule) -> None:
    """Refuse once: saving again replaces the current row knowingly."""
    form.add_error(
        None,
        _(
            "Somebody else has changed this schedule since you opened the form, so nothing was "
            "saved. Save again to replace their changes with what you entered."
        ),
    )
    data: Any = form.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
    data["seen"] = row.changed_at.isoformat()
    form.data = data


def _hint(request: HttpRequest, schedule: Schedule | None) -> str:
    """Explain hidden and redacted arguments, as markup that holds nothing of the schedule."""
    if schedule is None:
        return ""
    shown = visible_arguments(schedule, to_any=request.user.has_perm(VIEW_ARGUMENTS))
    if shown is None:
        return _(
            "The arguments are hidden because this process does not know the task's definition. "
            "Enter them again for the task that you choose."
        )
    if REDACTED not in [*shown.args, *shown.kwargs.values()]:
        return ""
    kept = _("Values shown as %(mark)s are kept unless you enter new ones.")
    return kept % {"mark": REDACTED}
