"""The pages that create and edit schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import available_timezones

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.utils.translation import gettext as _

from taskqueue import schedules
from taskqueue.admin.filters import row_id
from taskqueue.admin.once import PressedBefore, made_before, pressed_once
from taskqueue.admin.refusals import refused
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.form import ScheduleForm
from taskqueue.admin.schedules.page import times_table
from taskqueue.admin.schedules.rule_form import rule_typed, starts_typed
from taskqueue.admin.schedules.running import ScheduleRunning
from taskqueue.declarations.redaction import REDACTED
from taskqueue.display import labelled
from taskqueue.engine.schedules.reading import preview_typed
from taskqueue.exceptions import ChangedMeanwhile, InvalidSchedule, TaskQueueError, UnknownTask
from taskqueue.models import Schedule
from taskqueue.models.schedule import ScheduleSource
from taskqueue.monitoring.read_models.schedule import MOST_TIMES, visible_arguments_of
from taskqueue.monitoring.reading import now


class ScheduleEditing(ScheduleRunning):
    """Rows are changed only by verbs: no form saves a model."""

    edit_template = "admin/taskqueue/schedule/edit_form.html"
    preview_template = "admin/taskqueue/schedule/preview.html"

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_edit_permission(request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        self.check_may_edit(request)
        key = request.GET.get("copy", "")
        copied = self.get_object(request, key) if row_id(key) is not None else None
        return self._edit(request, None, copied, request.GET.get("task", ""))

    def preview_view(self, request: HttpRequest) -> HttpResponse:
        """Return the next times of the rule that is being typed, or its error."""
        self.check_may_edit(request)
        if request.method not in LOOKING:
            return HttpResponseNotAllowed(LOOKING)
        rule, problem = rule_typed(request.GET)
        times: list[datetime] = []
        if rule is not None:
            try:
                times = preview_typed(
                    rule, self._edited(request), **starts_typed(request.GET), count=MOST_TIMES,
                    now=now(),
                )  # fmt: skip
            except InvalidSchedule as error:
                problem = refused(error)
        shown = times_table(rule, times) if rule is not None and times else ""
        return render(request, self.preview_template, {"times": shown, "problem": problem})

    def _edited(self, request: HttpRequest) -> Schedule | None:
        """Return the schedule that the form edits."""
        number = row_id(request.GET.get("schedule", ""))
        return None if number is None else Schedule.objects.filter(pk=number).first()

    def edit_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        self.check_may_edit(request)
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            self.message_user(request, _("This schedule no longer exists."), messages.ERROR)
            return self.links.redirect("schedule_changelist")
        if schedule.source == ScheduleSource.CODE:
            refusal = _(
                "The schedule “%(name)s” is declared in code, next to %(task)s, and can only be "
                "edited there."
            )
            named = {"name": schedule.name, "task": schedule.task_name}
            self.message_user(request, refusal % named, messages.ERROR)
            return self.links.redirect("schedule_change", schedule.pk)
        return self._edit(request, schedule)

    def _edit(
        self,
        request: HttpRequest,
        schedule: Schedule | None,
        copied: Schedule | None = None,
        chosen: str = "",
    ) -> HttpResponse:
        posted = request.POST if request.method == "POST" else None
        if posted is not None and has_other_fields(posted):
            chosen = posted.get("task", "")
            form = ScheduleForm(
                posted, schedule=schedule, viewer=request.user, copied=copied, chosen=chosen
            )
            form.show_fields_of(chosen)
            return self._form_page(request, form)
        form = ScheduleForm(
            posted, schedule=schedule, viewer=request.user, copied=copied, chosen=chosen
        )
        saved = ""
        if posted is not None:
            saved = self._save(request, form) if form.is_valid() else self._saved_before(request)
        if saved:
            return self.links.redirect("schedule_change", saved)
        return self._form_page(request, form)

    def _saved_before(self, request: HttpRequest) -> str:
        """Return the key of what an earlier press created, because its name is taken now."""
        made = made_before(request)
        if made:
            self.message_user(request, _("This was already done."), messages.WARNING)
        return made

    def _save(self, request: HttpRequest, form: ScheduleForm) -> str:
        """Return the key of the saved row; empty if it was refused, with the error in the form."""
        given: dict[str, Any] = {
            **form.changes(), "by": request.user, "reason": form.cleaned_data["reason"],
        }  # fmt: skip
        try:
            if form.schedule is None:
                with pressed_once(request) as press:
                    saved = schedules.create(form.cleaned_data["name"], **given)
                    press.made = str(saved.pk)
            else:
                saved = schedules.edit(form.schedule.name, seen=form.is_current, **given)
        except PressedBefore as error:
            self.message_user(request, _("This was already done."), messages.WARNING)
            return error.made
        except UnknownTask as error:
            form.add_error("task", refused(error))
        except ChangedMeanwhile:
            form.add_error(
                None,
                _(
                    "Somebody else has changed this schedule since you opened the form, so nothing "
                    "was saved. Save again to replace their changes with what you entered."
                ),
            )
        except TaskQueueError as error:
            form.add_error("kind" if str(error).startswith("The rule ") else None, refused(error))
        else:
            done = _("Created") if form.schedule is None else _("Edited")
            self.note(request, saved, f"{done}.")
            self.message_user(request, labelled(done, saved.name), messages.SUCCESS)
            return str(saved.pk)
        return ""

    def _form_page(self, request: HttpRequest, form: Any) -> HttpResponse:
        """Show the form."""
        schedule: Schedule | None = form.schedule
        return report(
            self,
            request,
            self.edit_template,
            _("Edit %(name)s") % {"name": schedule.name} if schedule else _("Create schedule"),
            form=form,
            hint=_hint(request, form),
            media=self.media + form.media,
            schedule=schedule,
            zones=sorted(available_timezones()),
        )


def has_other_fields(posted: Any) -> bool:
    """Return whether the form was sent to show another task's fields, or without showing them."""
    shown = posted.get("fields_for")
    return "_choose" in posted or (shown is not None and shown != posted.get("task", ""))


def _hint(request: HttpRequest, form: ScheduleForm) -> str:
    """Explain hidden and redacted arguments, as markup that contains nothing of the schedule."""
    if not form.call_names:
        if form.parameters or form["fields_for"].value():
            return _("It takes no arguments.")
        return _("Choose a task or a workflow above to see its arguments.")
    schedule = form.schedule
    if schedule is None or "args" not in form.fields:
        return ""
    shown = visible_arguments_of(schedule, request.user)
    if shown is None:
        return _(
            "The arguments are hidden because this process does not know the task's definition. "
            "Enter them again for the task that you choose."
        )
    if REDACTED not in [*shown.args, *shown.kwargs.values()]:
        return ""
    return _("Values shown as %(mark)s are kept only while no argument changes.") % {
        "mark": REDACTED
    }
