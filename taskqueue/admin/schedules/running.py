"""The page that runs a schedule once with other arguments."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.utils.translation import gettext as _

from taskqueue.admin.acts import ReasonField
from taskqueue.admin.reports import LOOKING, report
from taskqueue.admin.schedules.acts import BUTTONS, ScheduleActs
from taskqueue.admin.tasks.call_fields import CallForm, fits
from taskqueue.declarations.call_differences import Call
from taskqueue.declarations.workflows.scheduling import Target
from taskqueue.engine.schedules.editing import target_of
from taskqueue.models import Schedule


class RunForm(CallForm):
    """The arguments of one run, and the reason.

    They are initially those of the schedule or, if these do not fit, the defaults.
    """

    reason = ReasonField()
    seen = forms.CharField(required=False, widget=forms.HiddenInput, max_length=40)
    call: Call | None = None

    def __init__(self, data: Any = None, *, schedule: Schedule, target: Target) -> None:
        super().__init__(data, initial={"seen": schedule.changed_at.isoformat()})
        self.schedule = schedule
        call = Call(schedule.args, schedule.kwargs)
        self.begins_as_stored = fits(target, call)
        self.add_call_fields(target, call if self.begins_as_stored else None)

    def clean(self) -> dict[str, Any]:
        """Read the arguments into `call`."""
        self.check_rest()
        if not self.errors:
            self.call = self.given_call()
        return self.cleaned_data

    def is_current(self, row: Schedule) -> bool:
        """Return whether the row is the one of the page, from which the fields were read."""
        current = row.changed_at.isoformat()
        read = self.schedule.changed_at.isoformat()
        return read == current and self.cleaned_data["seen"] in ("", current)

    def show_current(self) -> None:
        """Update the form's version to the row that it now shows."""
        data: Any = self.data.copy()  # type: ignore[attr-defined]  # (it is a request's POST)
        data["seen"] = self.schedule.changed_at.isoformat()
        self.data = data


class ScheduleRunning(ScheduleActs):
    """One run, for users who may run schedules: the same verb as that of the button "Run now"."""

    run_template = "admin/taskqueue/schedule/run.html"

    def run_view(self, request: HttpRequest, object_id: int) -> HttpResponse:
        """Show the form, or run the schedule and redirect to it."""
        self.check_may_edit(request)
        if request.method not in (*LOOKING, "POST"):
            return HttpResponseNotAllowed([*LOOKING, "POST"])
        schedule: Any = self.get_object(request, str(object_id))
        if schedule is None:
            return self.missing(request)
        target = target_of(schedule)
        if target is None:
            told = _(
                "This process does not know %(name)s, so it cannot check other arguments for it."
            )
            self.message_user(request, told % {"name": schedule.task_name}, messages.ERROR)
            return self.links.redirect("schedule_change", schedule.pk)
        data = request.POST if request.method == "POST" else None
        form = RunForm(data, schedule=schedule, target=target)
        if form.is_valid() and form.call is not None:
            args, kwargs = list(form.call.args), dict(form.call.kwargs)
            given = {"args": args, "kwargs": kwargs, "seen": form.is_current}
            if self.act(request, BUTTONS["run_now"], schedule, **given):
                return self.links.redirect("schedule_change", schedule.pk)
            form.show_current()
        return report(
            self, request, self.run_template, _("Run with other arguments"),
            schedule=schedule, form=form,
        )  # fmt: skip
